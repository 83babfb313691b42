//! `while let`: options do not change inside a kernel.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(bias: Option<&Tensor<f32, 1>>, y: &mut Tensor<f32, 1>) {
    while let Some(b) = bias {
        y.store_tile([0], b.load_tile::<8>([0]));
    }
}

fn main() {}
