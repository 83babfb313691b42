//! The twin of `ui/shapes/halving_loop.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let (even, odd) = x.load_tile::<64>([p]).split::<32>();
    let (even, odd) = (even + odd).split::<16>();
    y.store_tile([p], even + odd);
}
