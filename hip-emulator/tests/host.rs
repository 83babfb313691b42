//! The operations of host code on tensors, through HIP: in every order of streams, and while each call of the runtime fails.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::disallowed_methods, reason = "tests are set by the environment")]

#[path = "../../tests/host_operations/mod.rs"]
mod host_operations;
mod process;

use host_operations::OPERATIONS;
use process::{in_every_order, is_child, with};
use titan::Device;
use titan_amd::runtime::SYMBOLS;

#[test]
fn host_code_runs_in_every_order() {
    in_every_order("host_code_runs_in_every_order", || {
        let device = Device::hip(0).unwrap();
        for (name, operation) in OPERATIONS {
            operation(&device).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    });
}

/// Whatever fails, the operation says so or is right, and the next one is right.
#[test]
fn every_call_may_fail_in_host_code() {
    let test = "every_call_may_fail_in_host_code";
    for function in SYMBOLS {
        for nth in [1, 4] {
            with(test, &[("HIP_EMULATOR_FAULT", &format!("{function}:{nth}:304"))], || {
                for (name, operation) in OPERATIONS {
                    let Ok(device) = Device::hip(0) else { continue };
                    if operation(&device).is_err() {
                        operation(&device).unwrap_or_else(|error| panic!("{name} after {function}:{nth}: {error}"));
                    }
                }
            });
            if is_child() {
                return;
            }
        }
    }
}
