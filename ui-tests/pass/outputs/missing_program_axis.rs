//! The twin of `ui/outputs/missing_program_axis.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(M, 8)))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    let mut v = Tile::<f32, 8, 8>::zeros();
    for n in 0..cdiv(N, 8) {
        v += x.load_tile::<8, 8>([m, n]);
    }
    y.store_tile([m], v.reduce_sum::<1>());
}
