//! Only inputs are optional: programs must know what they write.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>, y: Option<&mut Tensor<f32, 1>>) {
    if let Some(y) = y {
        y.set([0], x.get([0]));
    }
}

fn main() {}
