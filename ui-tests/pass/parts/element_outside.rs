//! The twin of `ui/parts/element_outside.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let v = x.load_tile::<64>([0]);
    y.set([program_id(0)], v.at([63]));
}
