//! A constant parameter of a type that Rust does not take either.
use titan::prelude::*;

#[titan::kernel(instances(EPS in [0.5]))]
fn k<const EPS: f32>(y: &mut Tensor<f32, 1>) {
    y.set([program_id(0)], EPS);
}

fn main() {}
