//! The twin of `ui/outputs/first_tile_left_out.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(M, cdiv(N, 64)))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], x.load_tile::<1, 64>([m, n]));
}

/// The first tile is meant to stay.
#[titan::kernel(grid(unchecked M, cdiv(N, 64)))]
fn unchecked(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n + 1], x.load_tile::<1, 64>([m, n + 1]));
}
