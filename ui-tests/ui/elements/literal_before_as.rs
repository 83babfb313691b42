//! A literal in front of `as` that the type behind it cannot hold.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 16)))]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>) {
    y.store_tile([program_id(0)], Tile::<f32, 16>::full(-(1e39) as f32));
}

fn main() {}
