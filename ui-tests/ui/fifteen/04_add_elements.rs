//! A tile of f16 and one of f32.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f16, 1>, z: &Tensor<f32, 1>, y: &mut Tensor<f16, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]) + z.load_tile::<64>([p]));
}

fn main() {}
