//! The twin of `ui/outputs/forgotten_part.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(H * W))]
fn k(#[shape(H, W)] x: &Tensor<f32, 2>, #[shape(H, W)] y: &mut Tensor<f32, 2>) {
    let [i, j] = unflatten(program_id(0), [H, W]);
    y.set([i, j], x.get([i, j]));
}
