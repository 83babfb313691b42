//! The twin of `ui/device/own_check_of_the_caller.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn pairs<const N: i32, const H: i32>(x: Tile<f32, N>) -> (Tile<f32, H>, Tile<f32, H>) {
    x.split::<H>()
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let (a, b) = pairs::<16, 8>(x.load_tile::<16>([p]));
    y.store_tile([p], a * b);
}
