//! Captured launches and their replays, on every device: order, updates, failures, lifetimes, and what cannot be captured.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

#[path = "../host_devices/mod.rs"]
mod host_devices;
mod lifetimes;
mod model;
mod refused;
mod replays;
#[path = "../runtime_kernels/mod.rs"]
mod runtime_kernels;

#[test]
fn random_replays_are_in_order_on_every_device() {
    for device in host_devices::devices() {
        for seed in 0..3 {
            model::run(&device, seed, 60).unwrap();
        }
    }
}
