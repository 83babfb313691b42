//! A grid is made of numbers.
use titan::prelude::*;

#[titan::kernel(grid(y))]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>) {
    y.set([program_id(0)], 1.0);
}

fn main() {}
