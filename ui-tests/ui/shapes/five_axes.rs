//! Tiles have at most four axes.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 4>) {
    let p = program_id(0);
    y.store_tile([p, 0, 0, 0], Tile::<f32, 2, 2, 2, 2, 2>::zeros());
}

fn main() {}
