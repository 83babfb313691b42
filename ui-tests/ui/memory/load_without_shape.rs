//! A load names the tile.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile([p]);
    y.store_tile([p], v);
}

fn main() {}
