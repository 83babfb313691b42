//! A program axis that the declared grid does not have.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N, M)] y: &mut Tensor<f32, 2>) {
    y.set([program_id(0), program_id(1)], 1.0);
}

fn main() {}
