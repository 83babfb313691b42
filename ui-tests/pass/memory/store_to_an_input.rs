//! The twin of `ui/memory/store_to_an_input.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &mut Tensor<f32, 1>) {
    x.store_tile([0], x.load_tile::<8>([0]) + 1.0);
}
