//! Tensors are read and written by name.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x[p];
    y.set([p], v);
}

fn main() {}
