//! Extents start at one.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 1>) {
    y.store_tile([program_id(0)], Tile::<f32, 0>::zeros());
}

fn main() {}
