//! A tensor is memory; a tile of it is loaded.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    y.store_tile([program_id(0)], x * 2.0);
}

fn main() {}
