//! The accumulator is rows of `a` by columns of `b`.
use titan::prelude::*;

#[titan::kernel(instances((BM, BN, BK) in [(16, 32, 8)]))]
fn k<const BM: i32, const BN: i32, const BK: i32>(a: &Tensor<f16, 2>, b: &Tensor<f16, 2>, c: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let (at, bt) = (a.load_tile::<BM, BK>([m, 0]), b.load_tile::<BK, BN>([0, n]));
    let acc = mma(at, bt, Tile::<f32, BN, BM>::zeros());
    c.store_tile([m, n], acc.cast::<f32>());
}

fn main() {}
