//! The twin of `ui/outputs/exchanged_in_a_loop.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 16) * 2))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p ^ 1], x.load_tile::<8>([p]));
}
