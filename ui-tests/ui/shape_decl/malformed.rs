//! A shape is a list of names and expressions.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape = "N"] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
