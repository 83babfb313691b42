//! The twin of `ui/outputs/unflatten_by_an_argument.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(M, 8) * cdiv(N, 8)))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let [i, j] = unflatten(program_id(0), [cdiv(M, 8), cdiv(N, 8)]);
    y.store_at([i * 8, j * 8], x.load_at::<8, 8>([i * 8, j * 8]));
}
