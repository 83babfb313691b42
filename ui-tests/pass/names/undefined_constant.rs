//! The twin of `ui/names/undefined_constant.rs`, without the mistake.
use titan::prelude::*;

#[titan::constant]
const SCALE: f32 = 2.0;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], x.get([p]) * SCALE);
}
