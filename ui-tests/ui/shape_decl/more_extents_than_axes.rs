//! Two names for one axis.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(M, N)] x: &Tensor<f32, 1>, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], M);
}

fn main() {}
