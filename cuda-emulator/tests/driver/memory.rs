//! Memory: room, pools, poison, and frees that are too early, too late, or too many.

use crate::harness::{
    Cuda, ILLEGAL_ADDRESS, INVALID_VALUE, KERNELS, LAUNCH_FAILED, NOT_SUPPORTED, OK, OUT_OF_MEMORY, call,
};
use std::ffi::c_void;

const MIB: usize = 1 << 20;

fn room(cuda: &Cuda) -> (usize, usize) {
    let (mut free, mut total) = (0, 0);
    assert_eq!(call!(cuda, cuMemGetInfo_v2(&raw mut free => *mut usize, &raw mut total => *mut usize)), OK);
    (free, total)
}

#[test]
fn memory_runs_out_and_comes_back() {
    let cuda = Cuda::new(&[("DEVICES", "sm_80:memory=4")]);
    assert_eq!(room(&cuda), (4 * MIB, 4 * MIB));
    let first = cuda.alloc(3 * MIB);
    let mut at = 0_u64;
    assert_eq!(call!(cuda, cuMemAlloc_v2(&raw mut at => *mut u64, 2 * MIB => usize)), OUT_OF_MEMORY);
    // It is no error that stays.
    let small = cuda.alloc(1);
    assert_eq!(room(&cuda).0, MIB - 512);
    assert_eq!([first, small].map(|x| call!(cuda, cuMemFree_v2(x => u64))), [OK; 2]);
    assert_eq!(room(&cuda).0, 4 * MIB);
    assert_eq!(call!(cuda, cuMemAlloc_v2(&raw mut at => *mut u64, 0 => usize)), INVALID_VALUE);
}

#[test]
fn a_pool_reuses_what_a_stream_frees() {
    let cuda = Cuda::new(&[("DEVICES", "sm_80:memory=4")]);
    let stream = cuda.stream();
    for _ in 0..5 {
        let x = cuda.alloc_async(3 * MIB, stream);
        assert_eq!(call!(cuda, cuMemsetD8Async(x => u64, 7 => u8, MIB => usize, stream => u64)), OK);
        assert_eq!(call!(cuda, cuMemFreeAsync(x => u64, stream => u64)), OK);
    }
    assert_eq!(cuda.sync(stream), OK);
    assert_eq!(room(&cuda).0, 4 * MIB);
}

#[test]
fn allocations_are_used_in_the_order_of_their_stream() {
    for order in ["late", "early", "random:5"] {
        let cuda = Cuda::new(&[("ORDER", order)]);
        let (one, other) = (cuda.stream(), cuda.stream());
        let x = cuda.alloc_async(64, one);
        call!(cuda, cuMemsetD8Async(x => u64, 0 => u8, 64 => usize, other => u64));
        assert_eq!((cuda.sync(other), cuda.sync(one)).1, LAUNCH_FAILED, "{order}");
    }
}

#[test]
fn what_was_never_written_is_not_read() {
    let cuda = Cuda::new(&[]);
    let (a, c) = (cuda.upload(&[1.0; 32]), cuda.alloc(128));
    let b = cuda.alloc(128);
    let add = cuda.kernel(KERNELS, "add");
    assert_eq!(cuda.launch(add, (1, 32), 0, &[a, b, c]), OK);
    assert_eq!(call!(cuda, cuCtxSynchronize()), LAUNCH_FAILED);

    let cuda = Cuda::new(&[]);
    let x = cuda.alloc(128);
    assert_eq!(cuda.download(x, 32), Err(LAUNCH_FAILED));

    // Copies on the device carry what is undefined, and do not mind it.
    let cuda = Cuda::new(&[]);
    let (x, y) = (cuda.alloc(128), cuda.alloc(128));
    assert_eq!(call!(cuda, cuMemsetD8_v2(x => u64, 0 => u8, 64 => usize)), OK);
    assert_eq!(call!(cuda, cuMemcpyDtoD_v2(y => u64, x => u64, 128 => usize)), OK);
    assert_eq!(cuda.download(y, 16), Ok(vec![0.0; 16]));
    assert_eq!(cuda.download(y, 17), Err(LAUNCH_FAILED));
}

#[test]
fn memory_is_freed_once_and_not_used_after() {
    let cuda = Cuda::new(&[]);
    let x = cuda.upload(&[1.0; 32]);
    assert_eq!(call!(cuda, cuMemFree_v2(x => u64)), OK);
    assert_eq!(call!(cuda, cuMemFree_v2(x => u64)), INVALID_VALUE);
    assert_eq!(call!(cuda, cuMemFree_v2(x + 4 => u64)), INVALID_VALUE);
    assert_eq!(call!(cuda, cuMemFreeAsync(x => u64, 0 => u64)), INVALID_VALUE);
    assert_eq!(call!(cuda, cuMemsetD8Async(x => u64, 0 => u8, 1 => usize, 0 => u64)), INVALID_VALUE);
    assert_eq!(cuda.download(x, 1), Err(INVALID_VALUE));
    let y = cuda.alloc_async(64, 0);
    assert_eq!(call!(cuda, cuMemFreeAsync(y => u64, 0 => u64)), OK);
    assert_eq!(call!(cuda, cuMemFreeAsync(y => u64, 0 => u64)), INVALID_VALUE);
    // A kernel finds out when it runs.
    let scale = cuda.kernel(KERNELS, "scale");
    assert_eq!(cuda.launch(scale, (1, 32), 0, &[x]), OK);
    assert_eq!(call!(cuda, cuCtxSynchronize()), ILLEGAL_ADDRESS);
    assert_eq!(call!(cuda, cuMemFree_v2(y => u64)), ILLEGAL_ADDRESS);
}

#[test]
fn memory_in_use_is_not_freed_from_a_pool() {
    for order in ["late", "early", "random:1", "random:2"] {
        let cuda = Cuda::new(&[("ORDER", order)]);
        let (one, other) = (cuda.stream(), cuda.stream());
        let scale = cuda.kernel(KERNELS, "scale");
        let x = cuda.alloc_async(128, one);
        assert_eq!(call!(cuda, cuMemsetD8Async(x => u64, 0 => u8, 128 => usize, one => u64)), OK);
        assert_eq!(cuda.sync(one), OK);
        assert_eq!(cuda.launch(scale, (1, 32), one, &[x]), OK);
        call!(cuda, cuMemFreeAsync(x => u64, other => u64));
        let told = (cuda.sync(other), cuda.sync(one)).1;
        assert!([LAUNCH_FAILED, ILLEGAL_ADDRESS].contains(&told), "{order}: {told}");
    }
    // Other memory is freed when the device is idle.
    let cuda = Cuda::new(&[]);
    let (stream, x) = (cuda.stream(), cuda.upload(&[1.0; 32]));
    let scale = cuda.kernel(KERNELS, "scale");
    assert_eq!(cuda.launch(scale, (1, 32), stream, &[x]), OK);
    assert_eq!(call!(cuda, cuMemFree_v2(x => u64)), OK);
    assert_eq!(cuda.sync(stream), OK);
}

#[test]
fn a_driver_may_have_no_pools() {
    let cuda = Cuda::new(&[("POOLS", "0")]);
    let (mut at, mut pool, mut supported) = (0_u64, 0_u64, -1);
    assert_eq!(call!(cuda, cuDeviceGetAttribute(&raw mut supported => *mut i32, 115 => u32, 0 => i32)), OK);
    assert_eq!(supported, 0);
    assert_eq!(call!(cuda, cuMemAllocAsync(&raw mut at => *mut u64, 64 => usize, 0 => u64)), NOT_SUPPORTED);
    assert_eq!(call!(cuda, cuDeviceGetDefaultMemPool(&raw mut pool => *mut u64, 0 => i32)), NOT_SUPPORTED);

    let cuda = Cuda::new(&[]);
    let mut threshold = u64::MAX;
    assert_eq!(call!(cuda, cuDeviceGetDefaultMemPool(&raw mut pool => *mut u64, 0 => i32)), OK);
    let value = (&raw mut threshold).cast::<c_void>();
    assert_eq!(call!(cuda, cuMemPoolSetAttribute(pool => u64, 4 => u32, value => *mut c_void)), OK);
    threshold = 0;
    assert_eq!(call!(cuda, cuMemPoolGetAttribute(pool => u64, 4 => u32, value => *mut c_void)), OK);
    assert_eq!(threshold, u64::MAX);
    assert_eq!(call!(cuda, cuMemPoolSetAttribute(pool + 1 => u64, 4 => u32, value => *mut c_void)), INVALID_VALUE);
}

#[test]
fn pointers_know_whose_they_are() {
    let cuda = Cuda::new(&[("DEVICES", "sm_80,sm_90")]);
    assert_eq!(cuda.retain(1), OK);
    let x = cuda.alloc(100);
    let ask = |attribute: u32, at: u64| {
        let mut word = 0_u64;
        let out = (&raw mut word).cast::<c_void>();
        let done = call!(cuda, cuPointerGetAttribute(out => *mut c_void, attribute => u32, at => u64));
        (done, word)
    };
    // Kind, ordinal, start, size.
    assert_eq!([2, 9, 11, 12].map(|n| ask(n, x + 60)), [(OK, 2), (OK, 1), (OK, x), (OK, 100)]);
    assert_eq!(ask(2, x + 100).0, INVALID_VALUE);
    let host = cuda.pinned(8);
    assert_eq!([2, 11, 12].map(|n| ask(n, host.addr() as u64 + 4)), [(OK, 1), (OK, host.addr() as u64), (OK, 32)]);
    let local = 0_u8;
    assert_eq!(ask(2, (&raw const local).addr() as u64).0, INVALID_VALUE);
}
