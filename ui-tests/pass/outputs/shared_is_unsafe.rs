//! The twin of `ui/outputs/shared_is_unsafe.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] ix: &Tensor<i32, 1>, y: &mut Tensor<f32, 1>) {
    let at = ix.get([program_id(0)]);
    // SAFETY: who launches this gives every program another place.
    unsafe { y.shared() }.set([at], 1.0);
}
