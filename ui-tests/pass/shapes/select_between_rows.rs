//! The twin of `ui/shapes/select_between_rows.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>, first: bool) {
    let v = x.load_tile::<8>([0]);
    y.store_tile([0, 0], select(first, v, -v).row() + Tile::<f32, 8, 8>::zeros());
}
