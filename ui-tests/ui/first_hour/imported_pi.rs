//! Constants of the standard library stand with their path.
use titan::prelude::*;

use std::f32::consts::PI;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) * PI);
}

fn main() {}
