//! The operations of host code on tensors, through CUDA: in every order of streams, and while each call of the driver fails once.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::disallowed_methods, reason = "tests are pointed at devices by the environment")]
#![expect(unsafe_code, reason = "settings of the emulated driver")]

mod cuda_process;
mod emulator_settings;
#[path = "../../tests/host_operations/mod.rs"]
mod host_operations;
#[path = "../../tests/graphs/model.rs"]
mod model;
#[path = "../../tests/runtime_kernels/mod.rs"]
mod runtime_kernels;

use cuda_process::{device, free_bytes, in_every_order};
use emulator_settings::Emulator;
use host_operations::OPERATIONS;
use titan_nv::runtime::{OPTIONAL_SYMBOLS, SYMBOLS};

#[test]
fn host_code_runs_in_every_order() {
    in_every_order("host_code_runs_in_every_order", || {
        let device = device();
        for (name, operation) in OPERATIONS {
            operation(&device).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    });
}

#[test]
fn host_code_of_rayon_tasks_is_in_order() {
    in_every_order("host_code_of_rayon_tasks_is_in_order", || {
        let device = device();
        rayon::scope(|scope| {
            for (name, operation) in OPERATIONS.iter().cycle().take(3 * OPERATIONS.len()) {
                let device = &device;
                scope.spawn(move |_| operation(device).unwrap_or_else(|error| panic!("{name}: {error}")));
            }
        });
    });
}

#[test]
fn random_replays_are_in_every_order() {
    in_every_order("random_replays_are_in_every_order", || {
        let device = device();
        for seed in 0..test_depth::cases(&[(); 5][..], &[()][..]).len() as u64 {
            model::run(&device, seed, 80).unwrap();
        }
    });
}

/// Whatever fails in random captures, replays and updates, what does not fail is right, and the next ones are.
#[test]
fn every_call_of_graphs_may_fail() {
    in_every_order("every_call_of_graphs_may_fail", || {
        let (device, emulator) = (device(), Emulator::loaded());
        model::run(&device, 0, 80).unwrap();
        let calls = SYMBOLS.iter().filter(|call| call.contains("Graph") || call.contains("Capture"));
        for call in calls.chain(&["cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent", "cuStreamCreate"]) {
            let mut met = 0;
            for nth in test_depth::cases(&[1u32, 2, 3, 5, 8, 13][..], &[2][..]) {
                emulator.fail(&format!("{call}:{nth}:304"));
                let told = model::run(&device, u64::from(*nth), 60);
                met += emulator.struck(call);
                emulator.fail("");
                drop(told);
                model::run(&device, 100 + u64::from(*nth), 20)
                    .unwrap_or_else(|error| panic!("after {call}:{nth}: {error}"));
            }
            assert!(met > 0, "graphs do not lead to `{call}`");
        }
    });
}

/// Whatever fails, the operation says so or is right, the next one is right, and no memory is lost.
#[test]
fn every_call_may_fail_in_host_code() {
    in_every_order("every_call_may_fail_in_host_code", || {
        let (device, emulator) = (device(), Emulator::loaded());
        for (which, (name, operation)) in OPERATIONS.iter().enumerate() {
            operation(&device).unwrap();
            let room = free_bytes(&device);
            let few: &[u32] = if which < 3 { &[1, 3] } else { &[1] };
            for call in SYMBOLS.iter().chain(OPTIONAL_SYMBOLS) {
                for nth in test_depth::cases(&[1, 2, 3, 5, 8, 13][..], few) {
                    emulator.fail(&format!("{call}:{nth}:304"));
                    let told = operation(&device);
                    let struck = emulator.struck(call);
                    emulator.fail("");
                    assert!(told.is_ok() || struck == 1, "{name}, {call}: {told:?}");
                    operation(&device).unwrap_or_else(|error| panic!("{name} after {call}:{nth}: {error}"));
                    if struck == 0 {
                        break;
                    }
                }
            }
            assert_eq!(free_bytes(&device), room, "memory is lost when {name} fails");
        }
    });
}
