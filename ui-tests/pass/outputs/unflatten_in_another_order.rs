//! The twin of `ui/outputs/unflatten_in_another_order.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 8) * cdiv(M, 8)))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let [j, i] = unflatten(program_id(0), [cdiv(N, 8), cdiv(M, 8)]);
    y.store_at([i * 8, j * 8], x.load_at::<8, 8>([i * 8, j * 8]));
}
