//! An extent is a constant.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, n: i32) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<n>([p]));
}

fn main() {}
