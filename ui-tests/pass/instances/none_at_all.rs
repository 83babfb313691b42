//! The twin of `ui/instances/none_at_all.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(T in [f16], (BM, BN) in [(16, 64)]))]
fn copy<T: Float, const BM: i32, const BN: i32>(x: &Tensor<T, 2>, y: &mut Tensor<T, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], x.load_tile::<BM, BN>([m, n]));
}
