//! A requirement that is false in one instance.
use titan::prelude::*;

#[titan::kernel(instances(BN in [8, 12]), require(BN % 8 == 0))]
fn k<const BN: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]));
}

fn main() {}
