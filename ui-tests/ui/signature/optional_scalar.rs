//! Only tensors are optional: a scalar is always there.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>, y: Option<f32>, z: &mut Tensor<f32, 1>) {
    if let Some(y) = y {
        z.set([0], x.get([0]) * y);
    }
}

fn main() {}
