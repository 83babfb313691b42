//! A grid of few programs, and an output that may be larger.
use titan::prelude::*;

#[titan::kernel(grid(4), instances(BN in [64, 128]))]
fn k<const BN: i32>(#[shape(B, BN)] y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    y.store_tile([p, 0], Tile::<f32, 1, BN>::ones());
}

fn main() {}
