//! The macro evaluates arithmetic, not functions.
use titan::prelude::*;

const fn width() -> i32 {
    8
}

#[titan::constant]
const WIDTH: i32 = width();

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<WIDTH>([p]));
}

fn main() {}
