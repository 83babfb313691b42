//! The twin of `ui/pipelines/updated_and_read.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(roles(first: 1 warp, second: 1 warp), grid(1))]
fn k(y: &mut Tensor<f32, 1>, z: &mut Tensor<f32, 1>) {
    match role() {
        Role::First => {
            // SAFETY: programs only add to it.
            unsafe { y.shared() }.atomic_add([iota::<16>()], Tile::<f32, 16>::ones());
        }
        Role::Second => {
            z.set([0], 1.0);
        }
    }
}
