//! Two axes of the grid added into one index.
use titan::prelude::*;

#[titan::kernel(grid(64, 16))]
fn k(#[shape(64, 16)] x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let (i, j) = (program_id(0), program_id(1));
    y.set([i * 16 + j], x.get([i, j]));
}

fn main() {}
