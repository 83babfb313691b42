//! One argument too many.
use titan::prelude::*;

#[titan::device]
fn double(x: f32) -> f32 {
    x * 2.0
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], double(x.get([p]), 2.0));
}

fn main() {}
