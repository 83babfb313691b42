//! Results go to outputs, not to the caller.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>) -> f32 {
    let p = program_id(0);
    x.get([p])
}

fn main() {}
