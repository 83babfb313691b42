//! Tiles live inside kernels.
use titan::prelude::*;

#[titan::kernel]
fn k(x: Tile<f32, 8>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x);
}

fn main() {}
