//! The kernel of README.md without the index `n`.
use titan::prelude::*;

#[titan::kernel(
    instances(T in [f16], (BM, BN, BK) in [(64, 64, 32)]),
    grid(cdiv(M, BM), cdiv(N, BN)),
)]
pub fn gemm<T: Float, const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<T, 2>,
    #[shape(N, K)] b: &Tensor<T, 2>,
    #[shape(M, N)] c: &mut Tensor<T, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        let at = a.load_tile::<BM, BK>([m, k]);
        let bt = b.load_tile::<BN, BK>([n, k]);
        acc = mma(at, bt.t(), acc);
    }
    c.store_tile([m, 0], acc.cast::<T>());
}

fn main() {}
