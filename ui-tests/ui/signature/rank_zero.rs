//! Tensors have at least one axis.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 0>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], x.get([]));
}

fn main() {}
