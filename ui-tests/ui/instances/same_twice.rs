//! An instance is listed once.
use titan::prelude::*;

#[titan::kernel(instances(BM in [64, 32, 64]))]
fn k<const BM: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    y.store_tile([m], x.load_tile::<BM>([m]));
}

fn main() {}
