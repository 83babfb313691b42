//! The same, of a function that a kernel calls.
use titan::prelude::*;

#[titan::device]
fn twice(x: f32) -> f32 {
    let y = x + x
    y
}

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], twice(x.get([p])));
}

fn main() {}
