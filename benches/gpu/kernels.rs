//! The kernels that are measured on GPUs, as a user writes them.

/// Those that other benchmarks measure too.
#[path = "../cases/kernels.rs"]
pub(crate) mod common;

use titan::prelude::*;

#[titan::kernel(instances(BN in [1024, 4096]), grid(cdiv(N, BN)))]
pub(crate) fn add<const BN: i32>(
    #[shape(N)] x: &Tensor<f32, 1>,
    #[shape(N)] y: &Tensor<f32, 1>,
    #[shape(N)] z: &mut Tensor<f32, 1>,
) {
    let p = program_id(0);
    z.store_tile([p], x.load_tile::<BN>([p]) + y.load_tile::<BN>([p]));
}

/// C[m, n] = Σ_k A[m, k] · B[n, k]
#[titan::kernel(
    instances(T in [f16, bf16], (BM, BN, BK) in [(128, 256, 64), (128, 128, 64), (128, 128, 32), (64, 128, 32)]),
    grid(cdiv(M, BM), cdiv(N, BN)), allow(no_code),
)]
pub(crate) fn gemm<T: Float, const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<T, 2>,
    #[shape(N, K)] b: &Tensor<T, 2>,
    #[shape(M, N)] c: &mut Tensor<T, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        acc = mma(a.load_tile::<BM, BK>([m, k]), b.load_tile::<BN, BK>([n, k]).t(), acc);
    }
    c.store_tile([m, n], acc.cast::<T>());
}

/// The same by roles that are written by hand, as in `examples/gemm_ws.rs`.
#[titan::kernel(
    instances(T in [f16, bf16], (BM, BN, BK, S) in [(128, 256, 64, 4), (128, 128, 64, 6)]),
    roles(producer: 1 warp, consumer: 2 warpgroups), allow(no_code),
)]
pub(crate) fn gemm_ws<T: Float, const BM: i32, const BN: i32, const BK: i32, const S: i32>(
    #[shape(M, K)] a: &Tensor<T, 2>,
    #[shape(N, K)] b: &Tensor<T, 2>,
    #[shape(M, N)] c: &mut Tensor<T, 2>,
) {
    let steps = cdiv(K, BK);
    let ring = Ring::<(Smem<T, BM, BK>, Smem<T, BN, BK>), S>::new();
    let work = c.work::<BM, BN>();
    match role() {
        Role::Producer => {
            for [m, n] in work.indices() {
                for (t, slot) in ring.produce(0..steps) {
                    slot.copy((a.tile([m, t]), b.tile([n, t]))).commit();
                }
            }
        }
        Role::Consumer => {
            for out in work.tiles() {
                let mut acc = Acc::<f32, D2<BM, BN>, 1>::zeros();
                for (_t, ready) in ring.consume(0..steps) {
                    acc = acc.mma(ready.wait(), |s| (s.a(), s.b().t()));
                }
                out.store(acc.finish().cast::<T>());
            }
        }
    }
}
