//! The twin of `ui/grid/of_a_tensor.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>) {
    y.set([program_id(0)], 1.0);
}
