//! A variable that does not exist.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let scaled = x.load_tile::<8>([p]) * 2.0;
    y.store_tile([p], scalde);
}

fn main() {}
