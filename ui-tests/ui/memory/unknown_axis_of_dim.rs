//! An axis of `dim` is a constant that the tensor has.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], x.dim(1));
}

fn main() {}
