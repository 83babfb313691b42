//! The twin of `ui/signature/rank_six.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 5>, y: &mut Tensor<f32, 1>) {
    y.set([0], x.get([0, 0, 0, 0, 0]));
}
