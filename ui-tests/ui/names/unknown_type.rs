//! An element type that does not exist.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let sum = Tile::<fp32, 8>::zeros();
    y.store_tile([p], x.load_tile::<8>([p]) + sum);
}

fn main() {}
