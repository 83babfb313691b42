//! candle's tensors on a CUDA device, which is emulated: every operator beside candle's own on the CPU, in each element type, with strides and
//! offsets, in candle's stream; what an operator asks of the driver; failures; and bad input. `test.sh` runs them.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod bad;
#[path = "../../../tests/common/mod.rs"]
mod common;
mod operators;
mod process;
mod streams;
