//! The twin of `ui/shapes/rank_of_a_load_that_is_stored.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<64>([p]);
    y.store_tile([p], v);
}
