//! A forgotten `.t()` is an error even if the only instance is square.
use titan::prelude::*;

#[titan::kernel(instances((BM, BN, BK) in [(64, 64, 64)]))]
fn k<const BM: i32, const BN: i32, const BK: i32>(a: &Tensor<f16, 2>, b: &Tensor<f16, 2>, c: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let (at, bt) = (a.load_tile::<BM, BK>([m, 0]), b.load_tile::<BN, BK>([n, 0]));
    c.store_tile([m, n], mma(at, bt, Tile::<f32, BM, BN>::zeros()));
}

fn main() {}
