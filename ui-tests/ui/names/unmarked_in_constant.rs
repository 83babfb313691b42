//! A constant of the host in a constant of kernels.
use titan::prelude::*;

const WIDTH: i32 = 8;

#[titan::constant]
const DOUBLE: i32 = WIDTH * 2;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<DOUBLE>([p]));
}

fn main() {}
