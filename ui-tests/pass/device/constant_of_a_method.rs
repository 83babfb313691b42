//! The twin of `ui/device/constant_of_a_method.rs`, without the mistake.
use titan::prelude::*;

#[titan::constant]
const WIDTH: i32 = 2 << 2;

#[titan::constant]
const TWICE: i32 = 2 * WIDTH;

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<TWICE>([p]));
}
