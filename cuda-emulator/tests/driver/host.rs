//! The host's side: pinned memory, functions, calls that fail by request, symbols that are missing.

use crate::harness::{Cuda, KERNELS, LAUNCH_FAILED, NOT_SUPPORTED, OK, OUT_OF_MEMORY, call, peek, poke};
use std::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

#[test]
fn copies_to_pinned_memory_come_late() {
    let cuda = Cuda::new(&[]);
    let (stream, x, host) = (cuda.stream(), cuda.upload(&[5.0; 8]), cuda.pinned(8));
    let copy = || call!(cuda, cuMemcpyDtoHAsync_v2(host => *mut f32, x => u64, 32 => usize, stream => u64));
    assert_eq!(copy(), OK);
    // Too early: not what will be there.
    assert!(peek(host, 1)[0].is_nan());
    assert_eq!(cuda.sync(stream), OK);
    assert_eq!(peek(host, 8), [5.0; 8]);

    // Pinned memory is read when the copy runs, other memory when it is enqueued.
    let mut local = [1.0_f32; 8];
    poke(host, &[1.0]);
    let upload =
        |from: *const f32| call!(cuda, cuMemcpyHtoDAsync_v2(x => u64, from => *const f32, 4 => usize, stream => u64));
    assert_eq!(upload(host), OK);
    poke(host, &[2.0]);
    assert_eq!((cuda.sync(stream), cuda.download(x, 1)), (OK, Ok(vec![2.0])));
    assert_eq!(upload(local.as_ptr()), OK);
    local[0] = 3.0;
    assert_eq!((cuda.sync(stream), cuda.download(x, 1), local[0]), (OK, Ok(vec![1.0]), 3.0));

    assert_eq!(copy(), OK);
    assert_eq!(call!(cuda, cuMemFreeHost(host => *mut f32)), LAUNCH_FAILED);
}

#[test]
fn kernels_reach_pinned_memory() {
    for order in ["late", "early"] {
        let cuda = Cuda::new(&[("ORDER", order)]);
        let host = cuda.pinned(32);
        poke(host, &(0..32_u8).map(f32::from).collect::<Vec<_>>());
        let mut at = 0_u64;
        let mapped = call!(cuda, cuMemHostGetDevicePointer_v2(&raw mut at => *mut u64, host => *mut f32, 0 => u32));
        assert_eq!(mapped, OK);
        let scale = cuda.kernel(KERNELS, "scale");
        assert_eq!(cuda.launch(scale, (1, 16), 0, &[at]), OK);
        assert_eq!(cuda.sync(0), OK);
        let expected: Vec<f32> = (0..32_u8).map(|i| f32::from(i) * if i < 16 { 2.0 } else { 1.0 }).collect();
        assert_eq!(peek(host, 32), expected);
        assert_eq!(call!(cuda, cuMemFreeHost(host => *mut f32)), OK);
    }
}

struct Note {
    sender: Sender<(u64, u32)>,
    cuda: *const Cuda,
    host: *const f32,
}

extern "C" fn note(argument: *mut c_void) {
    // SAFETY: the test waits for this function before the note and the driver end.
    let (note, cuda) = unsafe {
        let note = &*argument.cast::<Note>();
        (note, &*note.cuda)
    };
    // What functions must not do.
    let answer = call!(cuda, cuCtxSynchronize());
    note.sender.send((u64::from(peek(note.host, 1)[0].to_bits()), answer)).unwrap();
}

#[test]
fn host_functions_run_in_stream_order_without_further_calls() {
    for order in ["late", "early", "random:9"] {
        let cuda = Cuda::new(&[("ORDER", order)]);
        let (stream, x, host) = (cuda.stream(), cuda.upload(&[1.0; 32]), cuda.pinned(32));
        let scale = cuda.kernel(KERNELS, "scale");
        assert_eq!(cuda.launch(scale, (1, 32), stream, &[x]), OK);
        assert_eq!(call!(cuda, cuMemcpyDtoHAsync_v2(host => *mut f32, x => u64, 128 => usize, stream => u64)), OK);
        let (sender, receiver) = channel();
        let mut argument = Note { sender, cuda: &raw const cuda, host };
        let enqueued = call!(cuda, cuLaunchHostFunc(
            stream => u64, note => extern "C" fn(*mut c_void), (&raw mut argument).cast::<c_void>() => *mut c_void));
        assert_eq!(enqueued, OK);
        let (bits, answer) = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!((bits, answer), (u64::from(2.0_f32.to_bits()), 800), "{order}");
        assert_eq!(cuda.sync(stream), OK);
        assert_eq!(call!(cuda, cuMemFreeHost(host => *mut f32)), OK);
    }
}

#[test]
fn calls_fail_by_request() {
    let cuda = Cuda::new(&[("FAULT", "cuMemAlloc_v2:2:2,cuStreamCreate:1+:999"), ("WITHOUT", "cuMemAllocAsync")]);
    let mut at = 0_u64;
    let answers = [(); 3].map(|()| call!(cuda, cuMemAlloc_v2(&raw mut at => *mut u64, 4 => usize)));
    assert_eq!(answers, [OK, OUT_OF_MEMORY, OK]);
    assert_eq!([(); 2].map(|()| call!(cuda, cuStreamCreate(&raw mut at => *mut u64, 1 => u32))), [999; 2]);
    assert_eq!(call!(cuda, cuMemAllocAsync(&raw mut at => *mut u64, 4 => usize, 0 => u64)), NOT_SUPPORTED);
    assert_eq!(cuda.set("FAULT", "cuInit"), 1);
    // Or do nothing: a wait that is left out.
    assert_eq!(cuda.set("FAULT", "cuStreamCreate:99:1,cuStreamWaitEvent:1+:0"), OK);
    let (one, other, event, x) = (cuda.stream(), cuda.stream(), cuda.event(), cuda.upload(&[1.0; 32]));
    let scale = cuda.kernel(KERNELS, "scale");
    assert_eq!(cuda.launch(scale, (1, 32), one, &[x]), OK);
    cuda.record(event, one);
    cuda.wait(other, event);
    assert_eq!(cuda.launch(scale, (1, 32), other, &[x]), OK);
    assert_eq!((cuda.sync(other), cuda.sync(one)), (OK, LAUNCH_FAILED));
}

#[test]
fn a_driver_may_lack_symbols() {
    let cuda = Cuda::loaded(&["cuStreamBeginCapture_v2", "cuMemAllocAsync"]);
    assert!(!cuda.has("cuStreamBeginCapture_v2") && !cuda.has("cuMemAllocAsync"));
    assert!(cuda.has("cuMemAlloc_v2") && cuda.has("cuMemFreeAsync"));
    let bytes = std::fs::read(crate::harness::library()).unwrap();
    assert_eq!(cuda_emulator::place::without(&bytes, &["cuFly"]), Err(vec!["cuFly".to_owned()]));
}

#[test]
fn nothing_works_before_it_is_started() {
    let cuda = Cuda::loaded(&[]);
    let mut n = 0;
    assert_eq!(call!(cuda, cuDeviceGetCount(&raw mut n => *mut i32)), 3);
    assert_eq!(call!(cuda, cuDriverGetVersion(&raw mut n => *mut i32)), OK);
    assert_eq!((n, call!(cuda, cuInit(1 => u32)), call!(cuda, cuInit(0 => u32))), (12_080, 1, OK));
    assert_eq!(call!(cuda, cuCtxSynchronize()), 201);
    assert_eq!(call!(cuda, cuDeviceGetCount(std::ptr::null_mut() => *mut i32)), 1);
    assert_eq!(call!(cuda, cuCtxSetCurrent(4711 => u64)), 201);
    // No device at all, and a setting that cannot be understood.
    let cuda = Cuda::loaded(&[]);
    assert_eq!((cuda.set("DEVICES", ""), call!(cuda, cuInit(0 => u32))), (OK, 100));
}

#[test]
fn threads_share_a_driver() {
    let cuda = Cuda::new(&[("ORDER", "random:3")]);
    let mut context = 0_u64;
    assert_eq!(call!(cuda, cuCtxGetCurrent(&raw mut context => *mut u64)), OK);
    let add = cuda.kernel(KERNELS, "add");
    std::thread::scope(|scope| {
        for i in 0..4_u8 {
            let cuda = &cuda;
            scope.spawn(move || {
                assert_eq!(call!(cuda, cuCtxSetCurrent(context => u64)), OK);
                let stream = cuda.stream();
                for n in 0..10_u8 {
                    let (a, b) = (cuda.upload(&[i.into(); 64]), cuda.upload(&[n.into(); 64]));
                    let c = cuda.alloc(256);
                    assert_eq!(cuda.launch(add, (2, 32), stream, &[a, b, c]), OK);
                    assert_eq!(cuda.sync(stream), OK);
                    assert_eq!(cuda.download(c, 64), Ok(vec![f32::from(i) + f32::from(n); 64]));
                }
            });
        }
    });
}
