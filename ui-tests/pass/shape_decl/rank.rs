//! The twin of `ui/shape_decl/rank.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(M, N, _)] x: &Tensor<f32, 3>, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], M * N);
}
