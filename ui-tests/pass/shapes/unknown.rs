//! The twin of `ui/shapes/unknown.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    let v = Tile::<f32, 8>::zeros();
    y.set([0], v.reduce_sum::<0>());
}
