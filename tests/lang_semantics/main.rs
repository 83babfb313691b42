//! `docs/semantics.md`, row by row, on the reference.

mod arithmetic;
mod casts;
mod functions;
mod memory;
mod programs;
mod reductions;

use titan::lang::{Shared, Tensor};
use titan::prelude::*;

/// A row-major tensor of these elements.
fn tensor<T: Elem, const R: usize>(values: &[T], extents: [i32; R]) -> Tensor<T, R> {
    memory_of(Shared::new(values.to_vec()), extents)
}

/// A row-major tensor over memory that the test reads later.
fn memory_of<T: Elem, const R: usize>(shared: Shared<T>, extents: [i32; R]) -> Tensor<T, R> {
    let mut strides = [1; R];
    for axis in (1..R).rev() {
        strides[axis - 1] = strides[axis] * i64::from(extents[axis]);
    }
    Tensor::from_host(shared, 0, extents, strides)
}

/// A rank-1 tile of these elements.
fn tile<T: Elem, const N: i32>(values: &[T]) -> Tile<T, D1<N>> {
    assert_eq!(values.len(), N.unsigned_abs() as usize);
    tensor(values, [N]).load_tile::<N>([0])
}
