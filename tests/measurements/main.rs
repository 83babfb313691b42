//! Comparisons, records and the choice of instances by speed, on every device: what is right, bad input, damaged files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod bench;
#[path = "../host_devices/mod.rs"]
mod host_devices;
mod kernels;
mod records;
#[path = "../runtime_kernels/mod.rs"]
mod runtime_kernels;
mod tune;
