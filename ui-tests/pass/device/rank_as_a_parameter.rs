//! The twin of `ui/device/rank_as_a_parameter.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn first(x: &Tensor<f32, 1>) -> Tile<f32, 8> {
    x.load_tile::<8>([0])
}

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    y.store_tile([program_id(0)], first(x));
}
