//! The twin of `ui/signature/optional_scalar.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>, y: f32, z: &mut Tensor<f32, 1>) {
    z.set([0], x.get([0]) * y);
}
