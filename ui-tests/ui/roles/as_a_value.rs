//! A role is not a value.
use titan::prelude::*;

#[titan::kernel(roles(one: 1 warp), grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    let _mine = role();
    match role() {
        Role::One => y.set([0], 1.0),
    }
}

fn main() {}
