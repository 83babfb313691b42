//! The twin of `ui/shapes/wrong_broadcast.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, bias: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let b = bias.load_tile::<8>([n]);
    y.store_tile([m, n], x.load_tile::<16, 8>([m, n]) + b.row());
}
