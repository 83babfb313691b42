//! Instances are compared by their values, and the product of several lists has one error.
use titan::prelude::*;

#[titan::constant]
const B: i32 = 64;

#[titan::kernel(instances(T in [f32, f16], (BM, BN) in [(64, 32), (32, 32), (B, 64 / 2)]))]
fn k<T: Float, const BM: i32, const BN: i32>(x: &Tensor<T, 2>, y: &mut Tensor<T, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], x.load_tile::<BM, BN>([m, n]));
}

fn main() {}
