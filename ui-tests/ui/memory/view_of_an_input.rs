//! A part of an input is an input.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>) {
    let p = program_id(0);
    x.index_mut::<0>(p).set([0], 1.0);
}

fn main() {}
