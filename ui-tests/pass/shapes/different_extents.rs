//! The twin of `ui/shapes/different_extents.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let a = x.load_tile::<64>([p]);
    let b = x.load_tile::<64>([p]);
    y.store_tile([p], a + b);
}
