//! The C interface, called directly: what TITAN's runtime does not call it with, and what callers get wrong.
//!
//! The numbers of errors are those of AMD's runtime for the same call (its sources: `ihipLaunchKernel_validate`, `ihipMemcpy_validate`).

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, unsafe_code, reason = "a test that cannot go on stops; the interface is one of C")]
#![expect(clippy::disallowed_methods, reason = "tests are set by the environment")]

mod process;

use process::{code_object, in_every_order, object_with_lds, with};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};
use titan_sim::engine::Rng;

// The library of the tests is linked: its functions have the names of the interface.
use hip_emulator as _;

type Handle = *mut c_void;

unsafe extern "C" {
    safe fn hipMalloc(at: &mut Handle, bytes: usize) -> c_uint;
    safe fn hipFree(at: Handle) -> c_uint;
    safe fn hipMemsetD8Async(at: Handle, value: u8, bytes: usize, stream: Handle) -> c_uint;
    fn hipMemcpyHtoDAsync(at: Handle, from: *const c_void, bytes: usize, stream: Handle) -> c_uint;
    fn hipMemcpyDtoHAsync(to: *mut c_void, at: Handle, bytes: usize, stream: Handle) -> c_uint;
    fn hipModuleLoadData(module: &mut Handle, image: *const u8) -> c_uint;
    fn hipModuleGetFunction(function: &mut Handle, module: Handle, name: *const c_char) -> c_uint;
    fn hipModuleLaunchKernel(
        function: Handle,
        gx: c_uint,
        gy: c_uint,
        gz: c_uint,
        bx: c_uint,
        by: c_uint,
        bz: c_uint,
        lds: c_uint,
        stream: Handle,
        params: *const *const c_void,
        extra: *const *const c_void,
    ) -> c_uint;
    safe fn hipStreamCreateWithFlags(stream: &mut Handle, flags: c_uint) -> c_uint;
    safe fn hipStreamDestroy(stream: Handle) -> c_uint;
    safe fn hipStreamSynchronize(stream: Handle) -> c_uint;
    safe fn hipStreamQuery(stream: Handle) -> c_uint;
    safe fn hipEventCreateWithFlags(event: &mut Handle, flags: c_uint) -> c_uint;
    safe fn hipEventRecord(event: Handle, stream: Handle) -> c_uint;
    safe fn hipEventSynchronize(event: Handle) -> c_uint;
    safe fn hipSetDevice(device: c_int) -> c_uint;
}

const INVALID_VALUE: c_uint = 1;
const OUT_OF_MEMORY: c_uint = 2;
const INVALID_CONFIGURATION: c_uint = 9;
const INVALID_IMAGE: c_uint = 200;
const INVALID_HANDLE: c_uint = 400;
const NOT_FOUND: c_uint = 500;
const LAUNCH_FAILURE: c_uint = 719;

fn load(bytes: &[u8]) -> Result<Handle, c_uint> {
    let mut module = null_mut();
    // SAFETY: the bytes are readable; the function finds out for itself how many it may read.
    let code = unsafe { hipModuleLoadData(&mut module, bytes.as_ptr()) };
    if code == 0 { Ok(module) } else { Err(code) }
}

fn function(module: Handle) -> Handle {
    let mut function = null_mut();
    // SAFETY: the name ends.
    assert_eq!(unsafe { hipModuleGetFunction(&mut function, module, c"vector_add".as_ptr()) }, 0);
    function
}

fn malloc(bytes: usize) -> Handle {
    let mut at = null_mut();
    assert_eq!(hipMalloc(&mut at, bytes), 0);
    at
}

fn stream(flags: c_uint) -> Handle {
    let mut stream = null_mut();
    assert_eq!(hipStreamCreateWithFlags(&mut stream, flags), 0);
    stream
}

/// `z = x + y` of 256 numbers, by a pointer to each argument.
fn add(function: Handle, lds: c_uint, stream: Handle, [x, y, z]: [Handle; 3]) -> c_uint {
    let n = 256_u32;
    let params: [*const c_void; 4] =
        [(&raw const x).cast(), (&raw const y).cast(), (&raw const z).cast(), (&raw const n).cast()];
    // SAFETY: a pointer to each argument, which lives until the call returns.
    unsafe { hipModuleLaunchKernel(function, 1, 1, 1, 256, 1, 1, lds, stream, params.as_ptr(), null()) }
}

/// A launch whose geometry is wrong.
fn shaped(function: Handle, grid: [c_uint; 3], block: [c_uint; 3]) -> c_uint {
    let (zero, n) = (0_u64, 0_u32);
    let zero: *const c_void = (&raw const zero).cast();
    let params = [zero, zero, zero, (&raw const n).cast()];
    let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
    // SAFETY: as above; nothing runs.
    unsafe { hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, 0, null_mut(), params.as_ptr(), null()) }
}

fn write(at: Handle, value: f32, stream: Handle) {
    let bytes: Vec<u8> = value.to_le_bytes().repeat(256);
    // SAFETY: the bytes are leaked, and so live until the copy runs.
    assert_eq!(unsafe { hipMemcpyHtoDAsync(at, bytes.leak().as_ptr().cast(), 1024, stream) }, 0);
}

/// A copy to the host, which is over when the stream is.
fn read(at: Handle, stream: Handle) -> &'static [f32] {
    let to = vec![0.0_f32; 256].leak();
    // SAFETY: the memory is leaked, and is looked at after the stream is over.
    assert_eq!(unsafe { hipMemcpyDtoHAsync(to.as_mut_ptr().cast(), at, 1024, stream) }, 0);
    to
}

const NULL: Handle = null_mut();
const LEGACY: Handle = without_provenance_mut(1);
const PER_THREAD: Handle = without_provenance_mut(2);

#[test]
fn the_default_stream_is_ordered_with_those_that_block_it() {
    in_every_order("the_default_stream_is_ordered_with_those_that_block_it", || {
        let add_of = function(load(&code_object()).unwrap());
        for default in [NULL, LEGACY] {
            let (a, b) = (stream(0), stream(0));
            let (x, y, z) = (malloc(1024), malloc(1024), malloc(1024));
            // Stream a, then the default one, then b: nobody waits for anything.
            write(x, 1.5, a);
            write(y, 2.0, a);
            assert_eq!(add(add_of, 0, default, [x, y, z]), 0);
            assert_eq!(add(add_of, 0, b, [z, y, x]), 0);
            let out = read(x, b);
            assert_eq!(hipStreamSynchronize(b), 0);
            assert_eq!(out, [5.5; 256]);
            // The default stream is over when those that block it are.
            assert_eq!(add(add_of, 0, a, [x, y, z]), 0);
            let out = read(z, a);
            assert_eq!(hipStreamSynchronize(default), 0);
            assert_eq!(out, [7.5; 256]);
            // An event of it is after them.
            write(y, 1.0, b);
            let mut event = null_mut();
            assert_eq!((hipEventCreateWithFlags(&mut event, 2), hipEventRecord(event, default)), (0, 0));
            assert_eq!(hipEventSynchronize(event), 0);
            let out = read(y, default);
            while hipStreamQuery(default) != 0 {}
            assert_eq!(out, [1.0; 256]);
            assert_eq!((hipStreamDestroy(a), hipStreamDestroy(b)), (0, 0));
            assert_eq!(hipStreamDestroy(default), INVALID_HANDLE);
        }
        // The thread's own stream is one that blocks.
        let x = malloc(1024);
        write(x, 3.0, PER_THREAD);
        let out = read(x, NULL);
        assert_eq!(hipStreamSynchronize(NULL), 0);
        assert_eq!(out, [3.0; 256]);
        assert_eq!(hipStreamSynchronize(without_provenance_mut(9999)), INVALID_HANDLE);
    });
}

#[test]
fn a_stream_that_does_not_block_is_not_ordered_with_the_default_stream() {
    with(
        "a_stream_that_does_not_block_is_not_ordered_with_the_default_stream",
        &[("HIP_EMULATOR_ORDER", "late")],
        || {
            let (x, free) = (malloc(1024), stream(1));
            write(x, 1.0, NULL);
            assert_eq!(hipStreamSynchronize(NULL), 0);
            write(x, 2.0, free);
            let out = read(x, NULL);
            assert_eq!(hipStreamSynchronize(NULL), 0);
            assert_eq!(out, [1.0; 256]);
            let mut other = null_mut();
            assert_eq!(hipStreamCreateWithFlags(&mut other, 2), INVALID_VALUE);
        },
    );
}

#[test]
fn arguments_are_given_by_a_pointer_to_each_or_as_one_block() {
    with("arguments_are_given_by_a_pointer_to_each_or_as_one_block", &[], || {
        let add_of = function(load(&code_object()).unwrap());
        let (x, y, z) = (malloc(1024), malloc(1024), malloc(1024));
        write(x, 1.0, NULL);
        write(y, 2.0, NULL);
        assert_eq!(add(add_of, 0, NULL, [x, y, z]), 0);
        let out = read(z, NULL);
        assert_eq!(hipStreamSynchronize(NULL), 0);
        assert_eq!(out, [3.0; 256]);
        let mut block: Vec<u8> = [x, y, x].iter().flat_map(|p| p.addr().to_le_bytes()).collect();
        block.extend(256_u32.to_le_bytes());
        let launch = |params: &[*const c_void], size: usize, tags: [usize; 3]| {
            let tag = |i: usize| without_provenance_mut::<c_void>(tags[i]).cast_const();
            let extra = [tag(0), block.as_ptr().cast(), tag(1), (&raw const size).cast(), tag(2)];
            let params = if params.is_empty() { null() } else { params.as_ptr() };
            // SAFETY: the arguments live until the call returns.
            unsafe { hipModuleLaunchKernel(add_of, 1, 1, 1, 256, 1, 1, 0, NULL, params, extra.as_ptr()) }
        };
        assert_eq!(launch(&[], 28, [1, 2, 3]), 0);
        let out = read(x, NULL);
        assert_eq!(hipStreamSynchronize(NULL), 0);
        assert_eq!(out, [3.0; 256]);
        // Both, a missing one, too few bytes or more than there can be, other tags, neither.
        let n = 0_u64;
        assert_eq!(launch(&[(&raw const n).cast(); 4], 28, [1, 2, 3]), INVALID_VALUE);
        assert_eq!(launch(&[], 27, [1, 2, 3]), INVALID_CONFIGURATION);
        assert_eq!(launch(&[], usize::MAX, [1, 2, 3]), INVALID_VALUE);
        assert_eq!(launch(&[], 28, [1, 5, 3]), INVALID_VALUE);
        assert_eq!(launch(&[], 28, [2, 1, 3]), INVALID_VALUE);
        // SAFETY: nothing is read.
        let neither = unsafe { hipModuleLaunchKernel(add_of, 1, 1, 1, 256, 1, 1, 0, NULL, null(), null()) };
        assert_eq!(neither, INVALID_VALUE);
        let missing = [null::<c_void>(); 4];
        // SAFETY: null pointers are looked at, not read.
        let missing = unsafe { hipModuleLaunchKernel(add_of, 1, 1, 1, 256, 1, 1, 0, NULL, missing.as_ptr(), null()) };
        assert_eq!(missing, INVALID_VALUE);
        // None of this has lost the device.
        assert_eq!(add(add_of, 0, NULL, [x, y, z]), 0);
        assert_eq!(hipStreamSynchronize(NULL), 0);
    });
}

#[test]
fn launches_that_do_not_fit_are_refused_when_they_are_made() {
    with("launches_that_do_not_fit_are_refused_when_they_are_made", &[], || {
        let add_of = function(load(&code_object()).unwrap());
        let all = [malloc(1024), malloc(1024), malloc(1024)];
        write(all[0], 1.0, NULL);
        write(all[1], 1.0, NULL);
        assert_eq!(add(add_of, 70 * 1024, NULL, all), INVALID_VALUE);
        assert_eq!(add(add_of, u32::MAX, NULL, all), INVALID_VALUE);
        let large = function(load(&object_with_lds(40 * 1024)).unwrap());
        assert_eq!(add(large, 30 * 1024, NULL, all), OUT_OF_MEMORY);
        assert_eq!(shaped(add_of, [0, 1, 1], [256, 1, 1]), INVALID_VALUE);
        assert_eq!(shaped(add_of, [1, 1, 1], [256, 0, 1]), INVALID_CONFIGURATION);
        assert_eq!(shaped(add_of, [1, 1, 1], [1025, 1, 1]), INVALID_VALUE);
        assert_eq!(shaped(add_of, [1, 1, 1], [u32::MAX, u32::MAX, u32::MAX]), INVALID_VALUE);
        assert_eq!(shaped(add_of, [1, 1, 1], [512, 1, 1]), LAUNCH_FAILURE);
        assert_eq!(shaped(add_of, [u32::MAX, 1, 1], [256, 1, 1]), INVALID_CONFIGURATION);
        assert_eq!(shaped(NULL, [1, 1, 1], [256, 1, 1]), INVALID_HANDLE);
        // Nothing was enqueued, and the device is not lost.
        assert_eq!(add(large, 24 * 1024, NULL, all), 0);
        let out = read(all[2], NULL);
        assert_eq!(hipStreamSynchronize(NULL), 0);
        assert_eq!(out, [2.0; 256]);
    });
}

#[test]
fn sizes_beyond_all_memory_are_refused_without_allocating_as_much() {
    with("sizes_beyond_all_memory_are_refused_without_allocating_as_much", &[], || {
        let mut at = null_mut();
        for bytes in [usize::MAX, usize::MAX / 2, 1 << 60, 1 << 40] {
            assert_eq!(hipMalloc(&mut at, bytes), OUT_OF_MEMORY);
        }
        let x = malloc(1024);
        let one = Box::leak(Box::new([0_u8; 8]));
        for bytes in [1025, 1 << 40, 1 << 60, usize::MAX] {
            assert_eq!(hipMemsetD8Async(x, 1, bytes, NULL), INVALID_VALUE);
            // SAFETY: nothing is read or written, because the device has no such memory.
            unsafe {
                assert_eq!(hipMemcpyHtoDAsync(x, one.as_ptr().cast(), bytes, NULL), INVALID_VALUE);
                assert_eq!(hipMemcpyDtoHAsync(one.as_mut_ptr().cast(), x, bytes, NULL), INVALID_VALUE);
            }
        }
        // Addresses that are no memory, or no longer; null on the host's side; no bytes at all.
        assert_eq!(hipMemsetD8Async(without_provenance_mut(64), 1, 4, NULL), INVALID_VALUE);
        // SAFETY: null is looked at, not read.
        assert_eq!(unsafe { hipMemcpyHtoDAsync(x, null(), 4, NULL) }, INVALID_VALUE);
        // SAFETY: no bytes are read.
        assert_eq!(unsafe { hipMemcpyHtoDAsync(x, null(), 0, NULL) }, 0);
        assert_eq!((hipFree(x), hipMemsetD8Async(x, 1, 4, NULL)), (0, INVALID_VALUE));
        assert_eq!((hipStreamSynchronize(NULL), hipSetDevice(0)), (0, 0));
    });
}

#[test]
fn corrupt_code_objects_are_refused() {
    with("corrupt_code_objects_are_refused", &[], || {
        let good = code_object();
        let changed = |at: usize, to: &[u8]| {
            let mut bytes = good.clone();
            bytes[at..at + to.len()].copy_from_slice(to);
            load(&bytes).map(drop)
        };
        // Where the section headers begin, how large and how many they are; the class; a section that is larger than all memory.
        for start in [u64::MAX, u64::MAX - 4096, 1 << 62, 1 << 40, 1 << 30, 1 << 29] {
            assert_eq!(changed(40, &start.to_le_bytes()), Err(INVALID_IMAGE), "{start:#x}");
        }
        assert_eq!(changed(58, &[0xFF, 0xFF]), Err(INVALID_IMAGE));
        assert_eq!(changed(60, &[0xFF, 0xFF]), Err(INVALID_IMAGE));
        assert_eq!(changed(4, &[1]), Err(INVALID_IMAGE));
        let sections = u64::from_le_bytes(good[40..48].try_into().unwrap()) as usize;
        for (field, value) in [(24, u64::MAX), (24, 1 << 50), (32, u64::MAX), (32, 1 << 50), (32, 1 << 29)] {
            assert_eq!(changed(sections + 64 + field, &value.to_le_bytes()), Err(INVALID_IMAGE), "{field}: {value:#x}");
        }
        assert_eq!(load(b"\x7fELF"), Err(INVALID_IMAGE));
        // SAFETY: null is looked at, not read.
        assert_eq!(unsafe { hipModuleLoadData(&mut null_mut(), null()) }, INVALID_VALUE);
        // An address that is no memory.
        // SAFETY: the function asks whether there is memory before it reads.
        assert_eq!(unsafe { hipModuleLoadData(&mut null_mut(), without_provenance_mut(4096)) }, INVALID_IMAGE);
        let mut rng = Rng::new(8);
        let (mut loaded, mut refused) = (0, 0);
        for _ in 0..400 {
            let mut bytes = good.clone();
            for _ in 0..1 + rng.below(3) {
                // Mostly the headers of the file and of sections.
                let at = if rng.below(2) == 0 { rng.below(64) } else { sections + rng.below(good.len() - sections) };
                bytes[at] = rng.next_u64() as u8;
            }
            match load(&bytes) {
                Ok(_) => loaded += 1,
                Err(code) => {
                    assert_eq!(code, INVALID_IMAGE);
                    refused += 1;
                }
            }
        }
        assert!(loaded > 5 && refused > 100, "{loaded} loaded, {refused} refused");
    });
}

#[test]
fn kernels_without_metadata_are_not_found() {
    with("kernels_without_metadata_are_not_found", &[], || {
        let mut bytes = code_object();
        let owner = bytes.windows(8).position(|w| w == b"AMDGPU\0\0").unwrap();
        bytes[owner - 4] ^= 1;
        let module = load(&bytes).unwrap();
        // SAFETY: the name ends.
        let found = unsafe { hipModuleGetFunction(&mut null_mut(), module, c"vector_add".as_ptr()) };
        assert_eq!(found, NOT_FOUND);
    });
}
