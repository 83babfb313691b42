//! `roles` names some.
use titan::prelude::*;

#[titan::kernel(roles(), grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    match role() {}
}

fn main() {}
