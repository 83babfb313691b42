//! An integer and a float literal.
use titan::prelude::*;

#[titan::kernel]
fn k(s: f32, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], s * (1 + 0.5));
}

fn main() {}
