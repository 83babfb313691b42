//! The twin of `ui/first_hour/result_with_a_semicolon.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn scale<S: Shape>(x: Tile<f32, S>, s: f32) -> Tile<f32, S> {
    x * s
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], scale(x.load_tile::<64>([p]), 2.0));
}
