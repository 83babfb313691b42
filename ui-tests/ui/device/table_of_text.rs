//! A table of a type that kernels do not have.
use titan::prelude::*;

#[titan::constant]
const NAMES: [&str; 2] = ["a", "b"];

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) * NAMES[0]);
}

fn main() {}
