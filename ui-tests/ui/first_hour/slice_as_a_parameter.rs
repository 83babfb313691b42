//! Slices are of the host.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &[f32], y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], x[p] * 2.0);
}

fn main() {}
