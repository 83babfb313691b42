//! Nothing is copied: an operator allocates its output, and hardly anything else.

use crate::common::{numbers, scattered};
use candle_core::{DType, Device, Tensor};
use candle_operators::{add_assign, attention, rms_norm, rope, swiglu, w4a16};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the bytes that each thread has allocated and not freed.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// The most of them so far.
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    LIVE.set(LIVE.get() + bytes);
    MOST.set(MOST.get().max(LIVE.get()));
}

// SAFETY: it does what the system's allocator does, and counts in cells that have no destructor and allocate nothing.
#[expect(unsafe_code, reason = "an allocator")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that this thread has at a time for what is neither the output nor small.
fn extra(f: impl Fn() -> Tensor) -> usize {
    // Kernels are made ready, and threads have their tiles, at their first launch.
    f();
    let before = LIVE.get();
    MOST.set(before);
    let out = f();
    let bytes = out.elem_count() * out.dtype().size_in_bytes();
    (MOST.get() - before).cast_unsigned().saturating_sub(bytes)
}

/// The measurement finds a copy.
#[test]
fn a_copy_is_counted() {
    let x = scattered(&numbers(1, &[4, 512, 1024], DType::F16)).unwrap();
    assert!(extra(|| swiglu(&x.contiguous().unwrap()).unwrap()) >= 4 << 20);
}

#[test]
fn operators_allocate_nothing_but_their_output() {
    // Each input has more than a mebibyte.
    let dtype = DType::F16;
    let x = scattered(&numbers(1, &[4, 512, 1024], dtype)).unwrap();
    let w = numbers(2, &[1024], dtype);
    let heads = scattered(&numbers(3, &[2, 32, 256, 64], dtype)).unwrap();
    let keys = scattered(&numbers(4, &[2, 8, 1024, 64], dtype)).unwrap();
    let table = numbers(5, &[256, 32], dtype);
    let codes = Tensor::zeros((2048, 512), DType::U8, &Device::Cpu).unwrap();
    let scales = numbers(6, &[2048, 32], dtype);
    let rows = numbers(7, &[600, 1024], dtype);
    let cases: [(&str, usize); 6] = [
        ("rms_norm", extra(|| rms_norm(&x, &w, 1e-5).unwrap())),
        ("swiglu", extra(|| swiglu(&x).unwrap())),
        ("rope", extra(|| rope(&heads, &table, &table).unwrap())),
        ("attention", extra(|| attention(&heads.narrow(2, 0, 8).unwrap(), &keys, &keys, 0.1).unwrap())),
        ("w4a16", extra(|| w4a16(&rows, &codes, &scales).unwrap())),
        ("add_assign", {
            let small = Tensor::zeros(1, dtype, &Device::Cpu).unwrap();
            let (to, from) = (x.narrow(0, 0, 2).unwrap(), numbers(8, &[2, 512, 1024], dtype));
            extra(|| add_assign(&to, &from).map(|()| small.clone()).unwrap())
        }),
    ];
    for (what, bytes) in cases {
        assert!(bytes < 1 << 18, "{what} needs {bytes} bytes besides its output");
    }
}
