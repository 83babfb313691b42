//! Extents are `i32`, like every index.
use titan::prelude::*;

#[titan::kernel(instances(BN in [64]))]
fn copy<const BN: usize>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]));
}

fn main() {}
