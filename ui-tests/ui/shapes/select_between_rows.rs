//! One `bool` chooses between tiles, not between rows of them.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>, first: bool) {
    let v = x.load_tile::<8>([0]);
    y.store_tile([0, 0], select(first, v.row(), (-v).row()) + Tile::<f32, 8, 8>::zeros());
}

fn main() {}
