//! `Vec::new()`: kernels have no heap.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = Vec::new();
    y.store_tile([p], v.into());
}

fn main() {}
