//! An element type that no target has.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<e8m0, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]).cast::<f32>());
}

fn main() {}
