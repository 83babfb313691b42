//! The twin of `ui/device/recursion.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn power(x: f32, n: i32) -> f32 {
    let mut p = 1.0;
    for _ in 0..n {
        p *= x;
    }
    p
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], power(x.get([p]), 3));
}
