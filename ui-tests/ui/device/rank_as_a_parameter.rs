//! A device function for tensors of any rank.
use titan::prelude::*;

#[titan::device]
fn first<const R: usize>(x: &Tensor<f32, R>) -> Tile<f32, 8> {
    x.load_tile::<8>([0])
}

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    y.store_tile([program_id(0)], first(x));
}

fn main() {}
