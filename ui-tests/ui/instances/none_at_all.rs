//! A generic kernel without `instances`.
use titan::prelude::*;

#[titan::kernel]
fn copy<T: Float, const BM: i32, const BN: i32>(x: &Tensor<T, 2>, y: &mut Tensor<T, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], x.load_tile::<BM, BN>([m, n]));
}

fn main() {}
