//! The twin of `ui/roles/in_a_loop.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(roles(one: 1 warp), grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    match role() {
        Role::One => {
            for i in 0..2 {
                y.set([i], 1.0);
            }
        }
    }
}
