//! The twin of `ui/device/wrong_argument.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn norm<const A: i32, const B: i32>(x: Tile<f32, A, B>) -> Tile<f32, A> {
    (x * x).reduce_sum::<1>().sqrt()
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], norm(x.load_tile::<8>([p]).reshape::<8, 1>()));
}
