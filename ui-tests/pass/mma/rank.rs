//! The twin of `ui/mma/rank.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(a: &Tensor<f16, 2>, b: &Tensor<f16, 1>, c: &mut Tensor<f32, 2>) {
    let m = program_id(0);
    let (at, bt) = (a.load_tile::<16, 16>([m, 0]), b.load_tile::<16>([0]));
    c.store_tile([m, 0], mma(at, bt.reshape::<16, 1>(), Tile::<f32, 16, 1>::zeros()));
}
