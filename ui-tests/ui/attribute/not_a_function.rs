//! A kernel is a function.
use titan::prelude::*;

#[titan::kernel]
struct K {
    y: Tensor<f32, 1>,
}

fn main() {}
