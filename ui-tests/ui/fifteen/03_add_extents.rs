//! A tile of 64 and one of 32.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]) + x.load_tile::<32>([p]));
}

fn main() {}
