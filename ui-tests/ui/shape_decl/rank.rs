//! Two names for three axes.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(M, N)] x: &Tensor<f32, 3>, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], M * N);
}

fn main() {}
