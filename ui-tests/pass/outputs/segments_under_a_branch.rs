//! The twin of `ui/outputs/segments_under_a_branch.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(E))]
fn k(#[shape(E)] on: &Tensor<i32, 1>, #[shape(E + 1)] off: &Tensor<i32, 1>, y: &mut Tensor<f32, 1>) {
    let e = program_id(0);
    let mut part = y.segment_mut(off, e);
    if on.get([e]) > 0 {
        part.set([0], 1.0);
    }
}
