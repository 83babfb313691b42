//! The twin of `ui/outputs/grid_of_generics.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, BN)), instances((BM, BN) in [(64, 64), (64, 128)]), require(M <= BM))]
fn k<const BM: i32, const BN: i32>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let n = program_id(0);
    y.store_tile([0, n], x.load_tile::<BM, BN>([0, n]));
}
