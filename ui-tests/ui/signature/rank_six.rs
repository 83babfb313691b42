//! Tensors have at most five axes.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 6>, y: &mut Tensor<f32, 1>) {
    y.set([0], x.get([0, 0, 0, 0, 0, 0]));
}

fn main() {}
