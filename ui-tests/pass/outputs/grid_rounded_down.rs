//! The twin of `ui/outputs/grid_rounded_down.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 64)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]));
}

/// The requirement makes it right.
#[titan::kernel(grid(N / 64), require(N % 64 == 0))]
fn required(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]));
}

/// The rest is meant to stay.
#[titan::kernel(grid(unchecked N / 64))]
fn unchecked(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]));
}
