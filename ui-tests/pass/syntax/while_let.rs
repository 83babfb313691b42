//! The twin of `ui/syntax/while_let.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(bias: Option<&Tensor<f32, 1>>, y: &mut Tensor<f32, 1>) {
    if let Some(b) = bias {
        y.store_tile([0], b.load_tile::<8>([0]));
    }
}
