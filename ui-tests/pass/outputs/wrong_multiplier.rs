//! The twin of `ui/outputs/wrong_multiplier.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 8)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_at([8 * p], x.load_at::<8>([8 * p]));
}
