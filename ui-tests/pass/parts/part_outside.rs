//! The twin of `ui/parts/part_outside.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let v = x.load_tile::<8, 64>([0, 0]);
    y.store_tile([program_id(0), 0], v.slice::<8, 32>([0, 32]));
}
