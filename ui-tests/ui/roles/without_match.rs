//! Roles have arms.
use titan::prelude::*;

#[titan::kernel(roles(one: 1 warp), grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    y.set([0], 1.0);
}

fn main() {}
