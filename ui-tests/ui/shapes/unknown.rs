//! Nothing says how large the tile is.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    let v = Tile::zeros();
    y.set([0], v.reduce_sum::<0>());
}

fn main() {}
