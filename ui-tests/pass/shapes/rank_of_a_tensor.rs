//! The twin of `ui/shapes/rank_of_a_tensor.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(8, 8))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let old = y.load_tile::<16, 64>([m, n]);
    y.store_tile([m, n], old + x.load_tile::<16, 64>([m, n]));
}
