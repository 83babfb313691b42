//! The twin of `ui/targets/gfx942_roles.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(targets(gfx942), grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    for t in 0..n {
        y.store_tile([0, t], x.load_tile::<8, 8>([0, t]));
    }
}
