//! The twin of `ui/grid/axis_beyond.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N, M))]
fn k(#[shape(N, M)] y: &mut Tensor<f32, 2>) {
    y.set([program_id(0), program_id(1)], 1.0);
}
