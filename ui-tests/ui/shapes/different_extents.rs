//! Tiles of different extents.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let a = x.load_tile::<64>([p]);
    let b = x.load_tile::<32>([p]);
    y.store_tile([p], a + b);
}

fn main() {}
