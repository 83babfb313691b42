//! The twin of `ui/first_hour/struct_as_kernel.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 1>) {
    y.set([program_id(0)], 1.0);
}
