//! A closure that is called by name.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let double = |a: f32| a * 2.0;
    y.set([p], double(x.get([p])));
}

fn main() {}
