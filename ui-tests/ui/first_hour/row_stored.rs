//! A row is no tile.
use titan::prelude::*;

#[titan::kernel]
fn k(b: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>) {
    let (i, j) = (program_id(0), program_id(1));
    y.store_tile([i, j], b.load_tile::<64>([j]).row());
}

fn main() {}
