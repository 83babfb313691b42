//! A grid has one to three axes.
use titan::prelude::*;

#[titan::kernel(grid(A, B, C, D))]
fn k(#[shape(A, B, C, D)] y: &mut Tensor<f32, 4>) {
    let (a, b, c) = (program_id(0), program_id(1), program_id(2));
    y.set([a, b, c, 0], 1.0);
}

fn main() {}
