//! The CUDA runtime, with a driver that needs no GPU: streams, drops, awaits, traps, and every bad input.
//!
//! Each test runs its body in a process of its own, with the emulated driver first on the library path and set as the test
//! says. With `TITAN_DEVICE=cuda`, tests without settings run on the real device instead.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a test that cannot go on stops; small numbers")]
#![expect(clippy::disallowed_methods, reason = "tests are pointed at devices by the environment")]

mod cuda_process;
#[path = "../../tests/runtime_kernels/mod.rs"]
mod runtime_kernels;

use cuda_process::{CHILD, device, driver, in_every_order, process, with};
use runtime_kernels::{add, fill, fill_beside, scale, slow_fill, trap_at};
use std::sync::Arc;
use titan::{Device, Error, Tensor};

#[test]
fn work_of_many_streams_is_in_order_and_tensors_may_be_dropped_at_once() {
    in_every_order("work_of_many_streams_is_in_order_and_tensors_may_be_dropped_at_once", || {
        let dev = device();
        let streams: Vec<_> = (0..3).map(|_| dev.stream().unwrap()).collect();
        let mut sum: Tensor<f32, 1> = dev.zeros([8]).unwrap();
        for round in 0..40 {
            let (s, t) = (&streams[round % 3], &streams[(round + 1) % 3]);
            let mut x = dev.zeros([8]).unwrap();
            fill(&mut x, round as f32).launch(s).unwrap();
            let mut y = dev.full([8], 0.5f32).unwrap();
            add(&x, &mut y, 1.0).launch(t).unwrap();
            drop(x);
            add(&y, &mut sum, 1.0).launch(s).unwrap();
        }
        assert_eq!(sum.to_vec().unwrap(), [41.0; 8]);
        let mut last = dev.zeros([4]).unwrap();
        fill(&mut last, 1.0).launch(&streams[0]).unwrap();
        drop(last);
        drop(streams);
    });
}

#[test]
fn memory_without_elements_is_freed_after_it_was_allocated() {
    in_every_order("memory_without_elements_is_freed_after_it_was_allocated", || {
        let dev = device();
        let stream = dev.stream().unwrap();
        for _ in 0..20 {
            let mut y = dev.zeros([4]).unwrap();
            let written: Tensor<f32, 1> = dev.tensor(&[], [0]).unwrap();
            let mut launched = written.copy().unwrap();
            fill_beside(&mut y, &mut launched, 1.0).launch(&stream).unwrap();
            assert!(written.to_vec().unwrap().is_empty());
            drop((written, launched));
            // Asks for all memory, so that everything that is dropped is freed.
            assert!(matches!(dev.zeros::<u8, 1>([1 << 40]), Err(Error::OutOfMemory { .. })));
            assert_eq!(y.to_vec().unwrap(), [1.0; 4]);
        }
    });
}

#[test]
fn threads_share_streams_and_tensors() {
    in_every_order("threads_share_streams_and_tensors", || {
        let dev = device();
        let stream = dev.stream().unwrap();
        let shared = dev.full([4], 1.0f32).unwrap();
        std::thread::scope(|scope| {
            for n in 0..4 {
                let (dev, stream, shared) = (&dev, &stream, &shared);
                scope.spawn(move || {
                    let mut own = dev.zeros([4]).unwrap();
                    for _ in 0..10 {
                        add(shared, &mut own, n as f32).launch(stream).unwrap();
                        scale(&mut own, 2.0).sync().unwrap();
                        assert_eq!(own.to_vec().unwrap(), [2.0 * (1.0 + n as f32); 4]);
                    }
                });
            }
        });
        stream.sync().unwrap();
    });
}

#[test]
fn a_long_queue_is_settled_without_recursion() {
    with("a_long_queue_is_settled_without_recursion", &[("CUDA_EMULATOR_ORDER", "late")], || {
        let dev = device();
        let (s, t) = (dev.stream().unwrap(), dev.stream().unwrap());
        let mut x = dev.full([1], 1.0f32).unwrap();
        for round in 0..3000 {
            scale(&mut x, 1.0).launch(if round % 2 == 0 { &s } else { &t }).unwrap();
        }
        assert_eq!(x.to_vec().unwrap(), [1.0]);
    });
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(result) => return result,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn awaits_are_woken_also_by_failures() {
    in_every_order("awaits_are_woken_also_by_failures", || {
        let dev = device();
        let mut x = dev.zeros([4]).unwrap();
        block_on(async {
            slow_fill(&mut x, 2.0, 10).await.unwrap();
            scale(&mut x, 3.0).await.unwrap();
        });
        assert_eq!(x.to_vec().unwrap(), [6.0; 4]);
        let error = block_on(trap_at(&mut x, 1).into_future()).unwrap_err();
        assert!(matches!(error, Error::Trap { .. }), "{error}");
        x.to_vec().unwrap();
    });
}

#[test]
fn a_trap_is_told_once_and_spoils_what_depends_on_it() {
    in_every_order("a_trap_is_told_once_and_spoils_what_depends_on_it", || {
        let dev = device();
        let (s, t) = (dev.stream().unwrap(), dev.stream().unwrap());
        let (mut x, mut y) = (dev.zeros([4]).unwrap(), dev.zeros([4]).unwrap());
        let mut z = dev.zeros([4]).unwrap();
        trap_at(&mut x, 2).launch(&s).unwrap();
        add(&x, &mut y, 1.0).launch(&t).unwrap();
        fill(&mut z, 1.0).launch(&s).unwrap();
        assert_eq!(z.to_vec().unwrap(), [1.0; 4], "work beside it is not spoiled");
        let error = t.sync().unwrap_err();
        assert!(error.to_string().contains("a launch that it depends on failed: kernel `trap_at::<f32>`"), "{error}");
        s.sync().unwrap();
        fill(&mut x, 1.0).sync().unwrap();
        add(&x, &mut y, 1.0).sync().unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0; 4]);
    });
}

#[test]
fn devices_without_pools_work_the_same() {
    with("devices_without_pools_work_the_same", &[("CUDA_EMULATOR_POOLS", "0")], || {
        let dev = device();
        let s = dev.stream().unwrap();
        for round in 0..20 {
            let mut x = dev.zeros([64]).unwrap();
            fill(&mut x, round as f32).launch(&s).unwrap();
        }
        s.sync().unwrap();
    });
}

#[test]
fn a_program_without_a_driver_says_why() {
    let test = "a_program_without_a_driver_says_why";
    let folder = driver(&[]);
    for name in cuda_emulator::place::NAMES {
        std::fs::write(folder.join(name), "no library").unwrap();
    }
    process(test, &folder, &[], || {
        let text = Device::best().unwrap_err().to_string();
        assert!(text.starts_with("TITAN_DEVICE is `cuda:0`, but the available devices are: cpu ("), "{text}");
        assert!(text.contains("; NVIDIA's driver library `libcuda.so.1` cannot be opened ("), "{text}");
        assert!(text.contains("help: install NVIDIA's driver"), "{text}");
        assert_eq!(Device::available(), [Device::cpu()]);
        assert!(Device::cuda(0).is_err());
    });
}

#[test]
fn a_driver_that_lacks_functions_is_named() {
    let folder = driver(&["cuMemAllocAsync", "cuMemFreeAsync"]);
    process("a_driver_that_lacks_functions_is_named", &folder, &[], || {
        let text = Device::best().unwrap_err().to_string();
        assert!(text.contains("has no function `cuMemAllocAsync`, and one more function is missing"), "{text}");
        assert!(text.contains("help: update NVIDIA's driver"), "{text}");
    });
}

#[test]
fn a_driver_that_does_not_start_says_why() {
    let cases = [
        ("cuInit:1+:803", "the kernel module and the library of the driver have different versions"),
        ("cuInit:1+:100", "there is no CUDA device"),
    ];
    for (fault, _) in cases {
        with("a_driver_that_does_not_start_says_why", &[("CUDA_EMULATOR_FAULT", fault)], || {
            let fault = std::env::var("CUDA_EMULATOR_FAULT").unwrap();
            let says = cases.iter().find(|c| c.0 == fault).unwrap().1;
            let text = Device::best().unwrap_err().to_string();
            assert!(text.contains(&format!("NVIDIA's driver does not start: {says}")), "{text}");
        });
        if std::env::var(CHILD).is_ok() {
            return;
        }
    }
}

#[test]
fn a_device_that_gives_no_context_fails_when_it_is_used() {
    let settings = [("CUDA_EMULATOR_FAULT", "cuDevicePrimaryCtxRetain:1+:46")];
    with("a_device_that_gives_no_context_fails_when_it_is_used", &settings, || {
        let error = device().zeros::<f32, 1>([1]).unwrap_err();
        assert!(error.to_string().contains("CUDA_ERROR_DEVICE_UNAVAILABLE"), "{error}");
    });
}

#[test]
fn out_of_memory_tells_how_much_there_is() {
    let settings = [("CUDA_EMULATOR_DEVICES", "sm_80:sms=1:memory=1")];
    with("out_of_memory_tells_how_much_there_is", &settings, || {
        let dev = device();
        let error = dev.zeros::<f32, 1>([1 << 19]).unwrap_err();
        let Error::OutOfMemory { bytes: 2_097_152, free: Some((free, 1_048_576)), .. } = &error else {
            panic!("{error}");
        };
        assert!(
            error
                .to_string()
                .contains(&format!("is out of memory: it could not allocate 2097152 bytes ({free} of 1048576")),
            "{error}"
        );
        let most: Tensor<f32, 1> = dev.zeros([1 << 17]).unwrap();
        drop(most);
        dev.zeros::<f32, 1>([1 << 17]).unwrap().to_vec().unwrap();
    });
}

#[test]
fn grids_without_programs_do_not_reach_the_driver() {
    with("grids_without_programs_do_not_reach_the_driver", &[("CUDA_EMULATOR_FAULT", "cuLaunchKernel:1+:1")], || {
        let dev = device();
        let mut x = dev.full([4], 7.0f32).unwrap();
        assert!(matches!(fill(&mut x, 1.0).grid([0]).sync(), Err(Error::Grid { .. })));
        fill(&mut dev.zeros([0]).unwrap(), 1.0).grid([0]).sync().unwrap();
        fill(&mut dev.zeros([0]).unwrap(), 1.0).launch(&dev.default_stream()).unwrap();
        assert_eq!(x.to_vec().unwrap(), [7.0; 4]);
    });
}

#[test]
fn tensors_and_streams_of_two_devices_do_not_mix() {
    let settings = [("CUDA_EMULATOR_DEVICES", "sm_80,sm_90:sms=4")];
    with("tensors_and_streams_of_two_devices_do_not_mix", &settings, || {
        let (a, b) = (Device::cuda(0).unwrap(), Device::cuda(1).unwrap());
        assert_eq!(Device::available()[..2], [b.clone(), a.clone()], "the best one first");
        assert_eq!(Device::named("cuda").unwrap(), b);
        let x = a.full([4], 1.0f32).unwrap();
        let mut y = b.zeros([4]).unwrap();
        let text = add(&x, &mut y, 1.0).sync().unwrap_err().to_string();
        assert!(text.contains("`x` is on cuda:0 (") && text.contains("`y` is on cuda:1 ("), "{text}");
        assert!(fill(&mut y, 1.0).launch(&a.default_stream()).is_err());
        add(&x.to_device(&b).unwrap(), &mut y, 1.0).sync().unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0; 4]);
        assert!(Device::cuda(2).unwrap_err().to_string().contains("cuda:0 ("));
    });
}

#[test]
fn a_refused_launch_is_told_at_once_and_spoils_nothing_later() {
    let settings = [("CUDA_EMULATOR_FAULT", "cuLaunchKernel:2:701")];
    with("a_refused_launch_is_told_at_once_and_spoils_nothing_later", &settings, || {
        let dev = device();
        let s = dev.stream().unwrap();
        let mut x = dev.zeros([4]).unwrap();
        fill(&mut x, 1.0).launch(&s).unwrap();
        let error = scale(&mut x, 2.0).launch(&s).unwrap_err();
        assert!(error.to_string().contains("kernel `scale` failed on cuda:0 ("), "{error}");
        assert!(error.to_string().contains("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"), "{error}");
        scale(&mut x, 3.0).launch(&s).unwrap();
        s.sync().unwrap();
        assert_eq!(x.to_vec().unwrap(), [3.0; 4]);
    });
}

#[test]
fn a_lost_device_is_told_with_the_kernel() {
    for fault in ["cuEventSynchronize:2+:700", "cuEventSynchronize:2+:702"] {
        with("a_lost_device_is_told_with_the_kernel", &[("CUDA_EMULATOR_FAULT", fault)], || {
            let dev = device();
            let mut x = dev.zeros([4]).unwrap();
            let error = (0..3).find_map(|_| fill(&mut x, 1.0).sync().err()).unwrap();
            assert!(matches!(error, Error::DeviceLost { .. } | Error::Timeout { .. }), "{error}");
            assert!(error.to_string().contains("kernel `fill`"), "{error}");
            assert!(error.to_string().contains("can no longer use the device"), "{error}");
        });
        if std::env::var(CHILD).is_ok() {
            return;
        }
    }
}

#[test]
fn code_that_does_not_fit_is_refused_with_numbers_and_logs() {
    let settings = [("CUDA_EMULATOR_DEVICES", "sm_80")];
    with("code_that_does_not_fit_is_refused_with_numbers_and_logs", &settings, || {
        let error = launch_variant("sm_80", "", 400_000);
        let Error::SharedMemory { needs: 400_000, limit, .. } = error else { panic!("{error}") };
        assert!(error.to_string().contains("needs 400000 bytes of shared memory per program, but cuda:0"));
        assert!(error.to_string().contains(&format!("has {limit}")), "{error}");
        let error = launch_variant("sm_80", "this is no PTX", 0);
        let Error::Code { log, .. } = &error else { panic!("{error}") };
        assert!(log.contains("line 1"), "{error}");
    });
}

#[test]
fn a_device_older_than_all_code_is_named() {
    let settings = [("CUDA_EMULATOR_DEVICES", "sm_80")];
    with("a_device_older_than_all_code_is_named", &settings, || {
        let error = launch_variant("sm_90a", "", 0);
        let Error::TooOld { capability, targets, .. } = &error else { panic!("{error}") };
        assert_eq!((capability.as_str(), targets.as_str()), ("8.0", "sm_90a"), "{error}");
        assert!(error.to_string().starts_with("kernel `odd` cannot run on cuda:0 ("), "{error}");
    });
}

/// A kernel with a variant of this target and payload, which needs so much shared memory, launched.
fn launch_variant(target: &str, payload: &str, shared_bytes: u32) -> Error {
    use titan_core::artifact::{Artifact, Variant};
    let source = "kernel @odd(%y: mut tensor<f32>[N]) grid(N) {
        %p = program_id<0> : i32
        %one = const 1.0 : f32
        set %y[%p], %one
        return
    }";
    let variant = |target: &str, payload: &str| Variant {
        target: target.to_owned(),
        payload: payload.as_bytes().to_vec(),
        threads: 32,
        shared_bytes,
        ..Variant::default()
    };
    let variants = vec![variant(target, payload), variant("cpu", source)];
    let artifact = Artifact { kernel: "odd".to_owned(), variants, refused: Vec::new() }.encode();
    let kernel = titan::__private::KernelRef::new("odd", artifact.leak(), "src/kernels.rs", [1, 8]);
    let mut y = device().zeros::<f32, 1>([2]).unwrap();
    titan::Launch::new(Box::leak(Box::new(kernel)), vec![(&mut y).into()]).sync().unwrap_err()
}
