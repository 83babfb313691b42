//! Segments are disjoint only if every program checks its own.
use titan::prelude::*;

#[titan::kernel(grid(E))]
fn k(#[shape(E)] on: &Tensor<i32, 1>, #[shape(E + 1)] off: &Tensor<i32, 1>, y: &mut Tensor<f32, 1>) {
    let e = program_id(0);
    if on.get([e]) > 0 {
        y.segment_mut(off, e).set([0], 1.0);
    }
}

fn main() {}
