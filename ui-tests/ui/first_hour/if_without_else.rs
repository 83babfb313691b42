//! An `if` that gives a value has an `else`.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, n: i32) {
    let p = program_id(0);
    let s = if n > 0 { 2.0 };
    y.store_tile([p], x.load_tile::<8>([p]) * s);
}

fn main() {}
