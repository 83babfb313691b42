//! The twin of `ui/grid/four_axes.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(A, B, C * D))]
fn k(#[shape(A, B, C, D)] y: &mut Tensor<f32, 4>) {
    let [c, d] = unflatten(program_id(2), [C, D]);
    y.set([program_id(0), program_id(1), c, d], 1.0);
}
