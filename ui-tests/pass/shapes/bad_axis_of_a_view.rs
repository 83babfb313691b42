//! The twin of `ui/shapes/bad_axis_of_a_view.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.index::<0>(0).load_tile::<8>([p]));
}
