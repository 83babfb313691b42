//! The twin of `ui/elements/cast_to_usize.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, at: i32) {
    y.set([program_id(0)], x.get([at]));
}
