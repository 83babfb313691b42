//! An axis is a constant.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 1>, axis: i32) {
    y.set([program_id(axis)], 1.0);
}

fn main() {}
