//! A `&Tensor` is read.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>) {
    x.store_tile([0], x.load_tile::<8>([0]) + 1.0);
}

fn main() {}
