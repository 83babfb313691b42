//! The twin of `ui/memory/unknown_axis_of_dim.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], x.dim(0));
}
