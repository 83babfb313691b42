//! A parameter with no value at all.
use titan::prelude::*;

#[titan::kernel(instances(BN in []))]
fn copy<const BN: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]));
}

fn main() {}
