//! The twin of `ui/roles/no_roles.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(roles(one: 1 warp), grid(1))]
fn k(y: &mut Tensor<f32, 1>) {
    match role() {
        Role::One => y.set([0], 1.0),
    }
}
