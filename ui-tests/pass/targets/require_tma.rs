//! The twin of `ui/targets/require_tma.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(M, 64), cdiv(N, 64)), require(K >= 0, tma))]
fn k(#[shape(M, K)] a: &Tensor<i8, 2>, #[shape(N, K)] b: &Tensor<i8, 2>, #[shape(M, N)] c: &mut Tensor<i32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<i32, 64, 64>::zeros();
    for k in pipelined(0..cdiv(K, 32)) {
        let at = a.load_tile::<64, 32>([m, k]);
        let bt = b.load_tile::<64, 32>([n, k]);
        acc = mma(at, bt.t(), acc);
    }
    c.store_tile([m, n], acc);
}
