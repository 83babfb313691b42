//! The twin of `ui/mma/many_instances.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(T in [f16, bf16], (BM, BN, BK) in [(128, 256, 64), (64, 64, 32), (32, 64, 16)]))]
fn k<T: Float, const BM: i32, const BN: i32, const BK: i32>(
    a: &Tensor<T, 2>,
    b: &Tensor<T, 2>,
    c: &mut Tensor<f32, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let (at, bt) = (a.load_tile::<BM, BK>([m, 0]), b.load_tile::<BN, BK>([n, 0]));
    c.store_tile([m, n], mma(at, bt.t(), Tile::<f32, BM, BN>::zeros()));
}
