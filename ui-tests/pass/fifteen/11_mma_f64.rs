//! The twin of `ui/fifteen/11_mma_f64.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(a: &Tensor<f64, 2>, b: &Tensor<f64, 2>, c: &mut Tensor<f64, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let (at, bt) = (a.load_tile::<16, 16>([m, 0]), b.load_tile::<16, 16>([0, n]));
    c.store_tile([m, n], mma(at, bt, Tile::<f64, 16, 16>::zeros()));
}
