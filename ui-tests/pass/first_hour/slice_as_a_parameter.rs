//! The twin of `ui/first_hour/slice_as_a_parameter.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], x.get([p]) * 2.0);
}
