//! Functions of Rust's number types are methods here.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], f32::max(x.get([p]), 0.0));
}

fn main() {}
