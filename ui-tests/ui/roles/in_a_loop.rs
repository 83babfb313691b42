//! Roles part once, at the top.
use titan::prelude::*;

#[titan::kernel(roles(one: 1 warp), grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    for i in 0..2 {
        match role() {
            Role::One => y.set([i], 1.0),
        }
    }
}

fn main() {}
