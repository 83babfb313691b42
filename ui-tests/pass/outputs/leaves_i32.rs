//! The twin of `ui/outputs/leaves_i32.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 8)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let at = program_id(0) * 8;
    y.store_at([at], x.load_at::<8>([at]));
}
