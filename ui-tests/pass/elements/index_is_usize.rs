//! The twin of `ui/elements/index_is_usize.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, at: i32) {
    y.store_tile([program_id(0)], x.load_tile::<8>([at]));
}
