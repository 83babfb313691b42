//! The twin of `ui/instances/float_parameter.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(EPS in [1]))]
fn k<const EPS: i32>(y: &mut Tensor<f32, 1>) {
    y.set([program_id(0)], EPS as f32);
}
