//! The twin of `ui/shapes/axis_twice.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    y.store_tile([p, 0], x.load_tile::<8, 8>([p, 0]).permute::<1, 0>());
}
