//! A tile type has extents.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v: Tile<f32> = x.load_tile::<8>([p]);
    y.store_tile([p], v);
}

fn main() {}
