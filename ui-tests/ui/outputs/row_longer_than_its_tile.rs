//! A tile for each row, and rows that may be longer.
use titan::prelude::*;

#[titan::kernel(instances(BN in [256, 1024]))]
fn k<const BN: i32>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let m = program_id(0);
    let v = x.load_tile::<1, BN>([m, 0]);
    y.store_tile([m, 0], v - v.reduce_max::<1>().col());
}

fn main() {}
