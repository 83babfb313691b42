//! Every call of the driver fails once, in every order of streams, while random graphs of launches run. Whatever fails, no
//! work is unordered and no memory is used after it was freed, which the emulated driver would tell; what was read is right;
//! and when the driver works again, so does everything, and no memory is lost.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::disallowed_methods, reason = "tests are pointed at devices by the environment")]
#![expect(unsafe_code, reason = "settings of the emulated driver")]

mod cuda_process;
mod emulator_settings;
#[path = "../../tests/launch_graphs/mod.rs"]
mod launch_graphs;
#[path = "../../tests/runtime_kernels/mod.rs"]
mod runtime_kernels;

use cuda_process::{device, free_bytes, in_every_order, with};
use emulator_settings::Emulator;
use launch_graphs::Graph;
use runtime_kernels::{accumulate, add, fill, scale, slow_fill, trap_at};
use titan::{Device, Error};
use titan_nv::runtime::{OPTIONAL_SYMBOLS, SYMBOLS};

/// `CUDA_ERROR_UNKNOWN` and its like end the context; these are what a driver may answer once and not again:
/// `CUDA_ERROR_OUT_OF_MEMORY`, `CUDA_ERROR_OPERATING_SYSTEM`.
const TRANSIENT: [u32; 2] = [2, 304];

/// Which calls fail: the first ones, and ever fewer of the later ones.
const NTH: [u32; 12] = [1, 2, 3, 4, 6, 9, 13, 19, 28, 41, 60, 90];

/// Calls that are made once in a process: they have a test of their own.
const START: [&str; 11] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceGetDefaultMemPool",
    "cuMemPoolSetAttribute",
];

/// Calls whose results are used again, so that only the first graph makes them.
const POOLED: [&str; 4] = ["cuEventCreate", "cuMemHostAlloc", "cuMemHostGetDevicePointer_v2", "cuMemFreeHost"];

/// Calls that follow on a failure, and the faults that lead to them.
const AFTER: [(&str, &str); 8] = [
    ("cuMemFreeAsync:1+:304", "cuMemFree_v2"),
    ("cuStreamWaitEvent:3+:304", "cuMemFree_v2"),
    ("cuModuleGetFunction:1:304", "cuModuleUnload"),
    ("cuEventRecord:1+:304", "cuStreamSynchronize"),
    ("cuEventRecord:2+:304", "cuCtxGetCurrent"),
    ("cuMemsetD8Async:2+:304", "cuStreamSynchronize"),
    ("cuEventSynchronize:1+:304,cuEventRecord:7+:304", "cuStreamSynchronize"),
    ("cuLaunchKernel:2+:701", "cuStreamWaitEvent"),
];

/// Calls that graphs of launches do not lead to: kernels with much shared memory and such without a grid of their own,
/// devices without pools, memory of others, tensor maps (tensor_launches.rs), times, counts and captures (cuda_host.rs), tensors that are given
/// away (cuda_exchange.rs); and the last resort, beside which nothing else may fail.
const ELSEWHERE: [&str; 17] = [
    "cuCtxSynchronize",
    "cuEventElapsedTime",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuStreamGetCaptureInfo_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphLaunch",
    "cuGraphExecDestroy",
    "cuGraphDestroy",
    "cuMemPoolGetAttribute",
    "cuTensorMapEncodeTiled",
    "cuMemAlloc_v2",
    "cuPointerGetAttribute",
    "cuFuncSetAttribute",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuStreamQuery",
];

/// A graph that must do all that it is asked for.
fn all_is_well(device: &Device, seed: u64) {
    let mut graph = Graph::new(device, seed).unwrap().without_traps().without_leaks();
    graph.run(20);
    graph.read_all();
    assert!(graph.unexplained.is_empty(), "{:?}", graph.unexplained);
}

#[test]
fn a_driver_that_fails_while_it_starts_is_tried_again() {
    let settings = [("CUDA_EMULATOR_ORDER", "late")];
    with("a_driver_that_fails_while_it_starts_is_tried_again", &settings, || {
        let emulator = Emulator::loaded();
        let start = || Device::cuda(0).and_then(|device| device.full([4], 1.0f32));
        let calls = [
            ("cuInit", 1),
            ("cuDeviceGetCount", 1),
            ("cuDeviceGet", 1),
            ("cuDeviceGetName", 1),
            ("cuDeviceGetAttribute", 8),
            ("cuDeviceTotalMem_v2", 1),
            ("cuDriverGetVersion", 1),
            ("cuDevicePrimaryCtxRetain", 1),
            ("cuCtxGetCurrent", 1),
            ("cuCtxSetCurrent", 1),
            ("cuDeviceGetDefaultMemPool", 1),
            ("cuMemPoolSetAttribute", 1),
            ("cuStreamCreate", 3),
        ];
        for (call, times) in calls {
            for nth in 1..=times {
                emulator.fail(&format!("{call}:{nth}:304"));
                let started = start().map(|tensor| tensor.len());
                assert!(started.is_err() && emulator.struck(call) == 1, "{call} {nth}: {started:?}");
            }
        }
        emulator.fail("");
        assert_eq!(start().unwrap().to_vec().unwrap(), [1.0; 4]);
        all_is_well(&device(), 1);
    });
}

#[test]
fn every_call_may_fail_and_the_next_pass_recovers() {
    in_every_order("every_call_may_fail_and_the_next_pass_recovers", || {
        let (device, emulator) = (device(), Emulator::loaded());
        // A thread that the driver has never seen.
        let pass = |fault: &str, seed| {
            emulator.fail(fault);
            std::thread::scope(|scope| scope.spawn(|| faulty_pass(&device, &emulator, seed)).join().unwrap());
        };
        pass(&POOLED.map(|call| format!("{call}:1:304")).join(","), 1);
        POOLED.iter().for_each(|call| assert_eq!(emulator.struck(call), 1, "{call}"));
        // Other orders leave less to wait for.
        let late = std::env::var("CUDA_EMULATOR_ORDER").is_ok_and(|order| order == "late");
        let mut seed = 0;
        let mut sweep = |call: &str, before: &str| {
            let (room, mut met) = (free_bytes(&device), 0);
            let mut strike = |nth: u32| {
                let code = TRANSIENT[seed as usize % TRANSIENT.len()];
                seed += 1;
                pass(&format!("{before},{call}:{nth}:{code}"), seed);
                let struck = emulator.struck(call);
                emulator.fail("");
                all_is_well(&device, seed);
                struck
            };
            for nth in test_depth::cases(&NTH[..], &NTH[..2]).iter().copied() {
                // Not every graph makes every call; one that makes many ends the sweep if it makes no more.
                let graphs = if nth == 1 { 8 } else { 1 };
                let struck = (0..graphs).map(|_| strike(nth)).find(|struck| *struck > 0).unwrap_or(0);
                if struck == 0 {
                    break;
                }
                met += struck;
            }
            assert!(met > 0 || !late, "graphs do not lead to `{call}` after `{before}`");
            assert_eq!(free_bytes(&device), room, "memory is lost when `{before},{call}` fails");
        };
        let apart = [&START[..], &POOLED, &ELSEWHERE, &["cuMemFree_v2", "cuModuleUnload"]].concat();
        let calls = SYMBOLS.iter().chain(OPTIONAL_SYMBOLS);
        calls.filter(|call| !apart.contains(call)).for_each(|call| sweep(call, ""));
        AFTER.iter().for_each(|(before, call)| sweep(call, before));
    });
}

#[test]
fn memory_without_pools_is_not_lost_either() {
    let settings = [("CUDA_EMULATOR_POOLS", "0")];
    with("memory_without_pools_is_not_lost_either", &settings, || {
        let (device, emulator) = (device(), Emulator::loaded());
        let room = free_bytes(&device);
        for call in ["cuMemAlloc_v2", "cuMemFree_v2", "cuMemsetD8Async", "cuEventRecord", "cuEventQuery"] {
            for nth in test_depth::cases(&NTH[..], &NTH[..4]).iter().copied() {
                emulator.fail(&format!("{call}:{nth}:2"));
                faulty_pass(&device, &emulator, u64::from(nth));
                emulator.fail("");
                all_is_well(&device, u64::from(nth));
            }
            assert_eq!(free_bytes(&device), room, "memory is lost when `{call}` fails");
        }
    });
}

/// A graph while the driver fails as it was told to.
fn faulty_pass(device: &Device, emulator: &Emulator, seed: u64) {
    let Ok(graph) = Graph::new(device, seed) else { return };
    let mut graph = graph.without_leaks();
    graph.run(80);
    assert!(device.zeros::<u8, 1>([1 << 40]).is_err());
    graph.read_all();
    let hits: u64 = SYMBOLS.iter().map(|call| emulator.struck(call)).sum();
    let told = graph.unexplained.len() as u64;
    assert!(told <= hits, "{told} errors of {hits} failing calls: {:?}", graph.unexplained);
}

#[test]
fn random_graphs_are_in_order_with_refused_and_failed_launches() {
    in_every_order("random_graphs_are_in_order_with_refused_and_failed_launches", || {
        let (device, emulator) = (device(), Emulator::loaded());
        let mut refused = 0;
        for seed in 0..test_depth::cases(100, 12) {
            let mut graph = Graph::new(&device, seed).unwrap();
            for call in ["cuLaunchKernel", "cuStreamWaitEvent", "cuEventRecord", "cuEventCreate", "cuLaunchKernel"] {
                graph.run(12);
                emulator.fail(&format!("{call}:1:701"));
                graph.run(3);
            }
            emulator.fail("");
            graph.read_all();
            refused += graph.refused;
        }
        assert!(refused > test_depth::cases(60, 4), "{refused}");
    });
}

#[test]
fn graphs_of_many_threads_and_of_rayon_tasks_are_in_order() {
    in_every_order("graphs_of_many_threads_and_of_rayon_tasks_are_in_order", || {
        let device = device();
        let graph = |seed| {
            let mut graph = Graph::new(&device, seed).unwrap();
            graph.run(30);
            graph.read_all();
            assert!(graph.unexplained.is_empty(), "{:?}", graph.unexplained);
        };
        std::thread::scope(|scope| (0..3).for_each(|seed| drop(scope.spawn(move || graph(seed)))));
        rayon::scope(|scope| (3..9).for_each(|seed| scope.spawn(move |_| graph(seed))));
        // Tasks that launch, wait, and use one tensor.
        let shared = std::sync::Mutex::new(device.zeros([4]).unwrap());
        rayon::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|_| {
                    let one = device.full([4], 1.0f32).unwrap();
                    let mut sum = shared.lock().unwrap();
                    accumulate(&one, &mut sum, 1).sync().unwrap();
                });
            }
        });
        assert_eq!(shared.lock().unwrap().to_vec().unwrap(), [16.0; 4]);
    });
}

/// Launches on `x` that run, one that the device refuses, and what uses `x` then.
fn refused_between(test: &str, refuse: impl Fn(&Emulator, &Device, &mut titan::Tensor<f32, 1>) -> Error) {
    in_every_order(test, || {
        let (device, emulator) = (device(), Emulator::loaded());
        let (s, t) = (device.stream().unwrap(), device.stream().unwrap());
        // A reader and a writer are on their way: the refused launch forgets neither.
        let (mut x, mut y) = (device.zeros([4]).unwrap(), device.zeros([4]).unwrap());
        slow_fill(&mut x, 2.0, 200).launch(&s).unwrap();
        add(&x, &mut y, 1.0).launch(&t).unwrap();
        refuse(&emulator, &device, &mut x);
        assert_eq!(x.to_vec().unwrap(), [2.0; 4]);
        slow_fill(&mut x, 3.0, 200).launch(&s).unwrap();
        add(&x, &mut y, 1.0).launch(&t).unwrap();
        refuse(&emulator, &device, &mut x);
        fill(&mut x, 9.0).launch(&s).unwrap();
        assert_eq!(y.to_vec().unwrap(), [4.0; 4]);
        // A stream waits for what it was given before.
        slow_fill(&mut x, 5.0, 200).launch(&s).unwrap();
        refuse(&emulator, &device, &mut x);
        s.sync().unwrap();
        assert_eq!(x.to_vec().unwrap(), [5.0; 4]);
        // Memory is freed after the launches that run.
        slow_fill(&mut x, 4.0, 200).launch(&s).unwrap();
        refuse(&emulator, &device, &mut x);
        drop(x);
        let mut z = device.zeros([4]).unwrap();
        fill(&mut z, 1.0).sync().unwrap();
        // A failure of an earlier launch is not forgotten either.
        let mut x = device.zeros([4]).unwrap();
        trap_at(&mut x, 0).launch(&s).unwrap();
        let error = refuse(&emulator, &device, &mut x);
        assert!(!matches!(error, Error::Trap { .. }), "{error}");
        assert!(matches!(x.to_vec(), Err(Error::Trap { .. })));
        x.to_vec().unwrap();
        all_is_well(&device, 7);
    });
}

#[test]
fn a_launch_that_the_driver_refuses_forgets_no_earlier_one() {
    refused_between("a_launch_that_the_driver_refuses_forgets_no_earlier_one", |emulator, device, x| {
        emulator.fail("cuLaunchKernel:1:701");
        let error = scale(x, 7.0).launch(&device.default_stream()).unwrap_err();
        assert_eq!(emulator.struck("cuLaunchKernel"), 1);
        emulator.fail("");
        error
    });
}

#[test]
fn a_launch_whose_grid_is_refused_forgets_no_earlier_one() {
    refused_between("a_launch_whose_grid_is_refused_forgets_no_earlier_one", |_, device, x| {
        let one = device.full([4], 1.0f32).unwrap();
        let error = accumulate(&one, x, 70_000).launch(&device.default_stream()).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        error
    });
}

#[test]
fn a_launch_that_cannot_be_ordered_is_refused_and_forgets_no_earlier_one() {
    refused_between("a_launch_that_cannot_be_ordered_is_refused_and_forgets_no_earlier_one", |emulator, device, x| {
        let one = device.full([4], 1.0f32).unwrap();
        emulator.fail("cuStreamWaitEvent:1:304");
        let refused = accumulate(&one, x, 1).launch(&device.default_stream());
        // What it would wait for may have ended.
        let error = refused.err().filter(|_| emulator.struck("cuStreamWaitEvent") == 1);
        emulator.fail("");
        error.unwrap_or_else(|| accumulate(&one, x, 70_000).launch(&device.default_stream()).unwrap_err())
    });
}

#[test]
fn a_launch_without_an_event_is_waited_for() {
    in_every_order("a_launch_without_an_event_is_waited_for", || {
        let (device, emulator) = (device(), Emulator::loaded());
        for call in ["cuEventRecord", "cuEventCreate"] {
            let s = device.stream().unwrap();
            let (x, mut y) = (device.full([4], 1.0f32).unwrap(), device.zeros([4]).unwrap());
            emulator.fail(&format!("{call}:1+:304"));
            for round in 0..6u8 {
                add(&x, &mut y, round.into()).launch(&s).unwrap();
                assert_eq!(y.to_vec().unwrap(), [1.0 + f32::from(round); 4]);
            }
            drop((x, y));
            emulator.fail("");
            all_is_well(&device, 3);
        }
    });
}

#[test]
fn a_stream_that_cannot_be_waited_for_is_asked() {
    in_every_order("a_stream_that_cannot_be_waited_for_is_asked", || {
        let (device, emulator) = (device(), Emulator::loaded());
        emulator.fail("cuEventSynchronize:1+:304,cuStreamSynchronize:1+:304");
        all_is_well(&device, 5);
        emulator.fail("cuEventQuery:1+:304,cuStreamQuery:1+:304");
        all_is_well(&device, 6);
        emulator.fail("");
        all_is_well(&device, 7);
    });
}

#[test]
fn a_driver_that_never_tells_the_end_of_work_is_given_up_and_nothing_hangs() {
    in_every_order("a_driver_that_never_tells_the_end_of_work_is_given_up_and_nothing_hangs", || {
        let (device, emulator) = (device(), Emulator::loaded());
        let s = device.stream().unwrap();
        let (x, mut y) = (device.full([4], 1.0f32).unwrap(), device.zeros([4]).unwrap());
        add(&x, &mut y, 1.0).launch(&s).unwrap();
        emulator.fail("cuEventSynchronize:1+:304,cuEventQuery:1+:304");
        let error = y.to_vec().unwrap_err();
        assert!(error.to_string().contains("CUDA_ERROR_OPERATING_SYSTEM"), "{error}");
        drop((x, y));
        emulator.fail("");
        assert!(device.zeros::<f32, 1>([4]).is_err(), "the driver cannot be trusted again");
    });
}
