//! The grid is rounded down, in every instance.
use titan::prelude::*;

#[titan::kernel(grid(N / BN), instances((BM, BN) in [(64, 64), (64, 128)]), require(M <= BM))]
fn k<const BM: i32, const BN: i32>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let n = program_id(0);
    y.store_tile([0, n], x.load_tile::<BM, BN>([0, n]));
}

fn main() {}
