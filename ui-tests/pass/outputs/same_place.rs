//! The twin of `ui/outputs/same_place.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], x.get([p]));
}
