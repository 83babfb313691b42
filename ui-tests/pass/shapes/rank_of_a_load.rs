//! The twin of `ui/shapes/rank_of_a_load.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    y.store_tile([p, 0], x.load_tile::<1, 16>([p, 0]));
}
