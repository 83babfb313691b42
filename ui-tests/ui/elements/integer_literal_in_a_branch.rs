//! The value of one branch is an integer literal, that of the other a float.
use titan::prelude::*;

#[titan::kernel]
fn k(s: f32, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], if s > 1.0 { s } else { 2 });
}

fn main() {}
