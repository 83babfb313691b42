//! The twin of `ui/names/own_method_name.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn maximum(a: f32, b: f32, c: f32) -> f32 {
    a.max(b).max(c)
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], maximum(x.get([p]), 1.0, 2.0));
}
