//! The twin of `ui/grid/no_extents.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>) {
    y.set([program_id(0)], 1.0);
}
