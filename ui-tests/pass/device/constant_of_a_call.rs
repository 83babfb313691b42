//! The twin of `ui/device/constant_of_a_call.rs`, without the mistake.
use titan::prelude::*;

#[titan::constant]
const WIDTH: i32 = 8;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<WIDTH>([p]));
}
