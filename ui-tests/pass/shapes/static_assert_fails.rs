//! The twin of `ui/shapes/static_assert_fails.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances((BK, G) in [(64, 32), (96, 32)]))]
fn k<const BK: i32, const G: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    static_assert!(BK % G == 0, "a block is whole groups");
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BK>([p]));
}
