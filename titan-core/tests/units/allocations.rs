//! What a computation allocates: how often, and how much it has at most at any moment.
//!
//! A reallocation counts as if the old block and the new one existed at the same time.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocations of a thread.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Allocations {
    /// How often memory was allocated.
    pub(crate) number: usize,
    /// The bytes that are allocated now.
    bytes: usize,
    /// The most bytes that were allocated at any moment.
    pub(crate) peak: usize,
}

impl Allocations {
    fn allocated(&mut self, bytes: usize) {
        self.number += 1;
        self.bytes += bytes;
        self.peak = self.peak.max(self.bytes);
    }

    fn freed(&mut self, bytes: usize) {
        // What was allocated before the computation may be freed by it.
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// The system's allocator, which counts the allocations of each thread.
struct Counts;

thread_local! {
    static ALLOCATIONS: Cell<Allocations> = const { Cell::new(Allocations { number: 0, bytes: 0, peak: 0 }) };
}

/// What a computation returns, and its allocations.
pub(crate) fn of<T>(computation: impl FnOnce() -> T) -> (T, Allocations) {
    ALLOCATIONS.set(Allocations::default());
    let result = computation();
    (result, ALLOCATIONS.get())
}

fn count(change: impl FnOnce(&mut Allocations)) {
    // A thread that ends may allocate when its own variables are gone.
    let _ = ALLOCATIONS.try_with(|cell| {
        let mut counted = cell.get();
        change(&mut counted);
        cell.set(counted);
    });
}

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counts {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|counted| counted.allocated(layout.size()));
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(|counted| counted.freed(layout.size()));
        // SAFETY: the caller's.
        unsafe { System.dealloc(at, layout) };
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(|counted| {
            counted.allocated(size);
            counted.freed(layout.size());
        });
        // SAFETY: the caller's.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counts = Counts;

#[test]
fn the_most_that_is_allocated_at_once_is_counted() {
    let ((), counted) = of(|| {
        drop(std::hint::black_box(vec![0u8; 1000]));
        let mut grown = std::hint::black_box(vec![0u8; 100]);
        grown.reserve_exact(500);
        drop(std::hint::black_box(grown));
    });
    assert_eq!((counted.number, counted.bytes, counted.peak), (3, 0, 1000));
    let (_, counted) = of(|| {
        let mut grown = std::hint::black_box(vec![0u8; 1000]);
        grown.reserve_exact(1000);
        grown
    });
    assert_eq!((counted.number, counted.bytes, counted.peak), (2, 2000, 3000));
}
