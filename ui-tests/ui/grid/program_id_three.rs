//! Axes of a grid are 0, 1 and 2.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>) {
    y.set([program_id(3)], 1.0);
}

fn main() {}
