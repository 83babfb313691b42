//! Programs of a whole axis write the same tile.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(M, 8), cdiv(N, 8)))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    let v = x.load_tile::<8, 8>([m, program_id(1)]);
    y.store_tile([m], v.reduce_sum::<1>());
}

fn main() {}
