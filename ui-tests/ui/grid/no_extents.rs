//! A grid without an extent.
use titan::prelude::*;

#[titan::kernel(grid())]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>) {
    y.set([program_id(0)], 1.0);
}

fn main() {}
