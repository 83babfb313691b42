//! The twin of `ui/outputs/grid_of_a_constant.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(4), instances(BN in [64, 128]), require(B == 4))]
fn k<const BN: i32>(#[shape(B, BN)] y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    y.store_tile([p, 0], Tile::<f32, 1, BN>::ones());
}

/// An extent without a name is compared at the launch.
#[titan::kernel(grid(4))]
fn at_the_launch(y: &mut Tensor<f32, 1>) {
    y.store_tile([program_id(0)], Tile::<f32, 16>::ones());
}
