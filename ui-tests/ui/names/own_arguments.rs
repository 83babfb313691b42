//! A function of the user's with the name of one of the language, and with other arguments.
use titan::prelude::*;

#[titan::device]
fn select(a: f32, b: f32) -> f32 {
    if a > 0.0 { a } else { b }
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], select(x.get([p]), 1.0));
}

fn main() {}
