//! `max` is of two tiles, `reduce_max` of all elements.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], x.load_tile::<8>([p]).max());
}

fn main() {}
