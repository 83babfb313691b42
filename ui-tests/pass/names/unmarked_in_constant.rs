//! The twin of `ui/names/unmarked_in_constant.rs`, without the mistake.
use titan::prelude::*;

#[titan::constant]
const WIDTH: i32 = 8;

#[titan::constant]
const DOUBLE: i32 = WIDTH * 2;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<DOUBLE>([p]));
}
