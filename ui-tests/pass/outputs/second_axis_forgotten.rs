//! The twin of `ui/outputs/second_axis_forgotten.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    y.set([p, program_id(1)], x.get([program_id(1)]));
}
