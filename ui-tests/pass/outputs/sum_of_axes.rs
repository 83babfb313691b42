//! The twin of `ui/outputs/sum_of_axes.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(64 * 16))]
fn k(#[shape(64, 16)] x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let [i, j] = unflatten(p, [64, 16]);
    y.set([p], x.get([i, j]));
}
