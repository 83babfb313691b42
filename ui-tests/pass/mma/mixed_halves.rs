//! The twin of `ui/mma/mixed_halves.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(a: &Tensor<f16, 2>, b: &Tensor<bf16, 2>, c: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let (at, bt) = (a.load_tile::<16, 16>([m, 0]), b.load_tile::<16, 16>([0, n]).cast::<f16>());
    c.store_tile([m, n], mma(at, bt, Tile::<f32, 16, 16>::zeros()));
}
