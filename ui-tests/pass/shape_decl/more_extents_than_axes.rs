//! The twin of `ui/shape_decl/more_extents_than_axes.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], M);
}
