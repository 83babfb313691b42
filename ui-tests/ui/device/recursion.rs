//! A device function is inlined: it cannot call itself.
use titan::prelude::*;

#[titan::device]
fn power(x: f32, n: i32) -> f32 {
    if n == 0 { 1.0 } else { x * power(x, n - 1) }
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], power(x.get([p]), 3));
}

fn main() {}
