//! A column is made into a tile.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    y.store_tile([p, 0], x.load_tile::<16>([p]).col().broadcast::<1, 8>());
}

fn main() {}
