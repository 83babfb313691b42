//! The twin of `ui/mma/elements.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(a: &Tensor<i8, 2>, b: &Tensor<i8, 2>, c: &mut Tensor<i32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let (at, bt) = (a.load_tile::<16, 32>([m, 0]), b.load_tile::<32, 16>([0, n]));
    c.store_tile([m, n], mma(at, bt, Tile::<i32, 16, 16>::zeros()));
}
