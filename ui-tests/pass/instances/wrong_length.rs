//! The twin of `ui/instances/wrong_length.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances((BM, BN) in [(64, 64), (8, 8)]))]
fn copy<const BM: i32, const BN: i32>(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], x.load_tile::<BM, BN>([m, n]));
}
