//! The twin of `ui/shapes/extent_divides_by_zero.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances((D, G) in [(64, 4)]))]
fn k<const D: i32, const G: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<{ D / G }>([p]));
}
