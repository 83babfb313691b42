//! The kernels that are measured on every device, as a user writes them. Rows of 4096 are for GPUs.

use titan::prelude::*;

#[titan::kernel(grid(1))]
pub(crate) fn empty() {}

#[titan::kernel(grid(cdiv(N, 256)))]
pub(crate) fn copy(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<256>([p]));
}

/// C[m, n] = Σ_k A[m, k] · B[n, k]
#[titan::kernel(instances((BM, BN, BK) in [(128, 128, 64)]), grid(cdiv(M, BM), cdiv(N, BN)))]
pub(crate) fn gemm<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<f32, 2>,
    #[shape(N, K)] b: &Tensor<f32, 2>,
    #[shape(M, N)] c: &mut Tensor<f32, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        acc = mma(a.load_tile::<BM, BK>([m, k]), b.load_tile::<BN, BK>([n, k]).t(), acc);
    }
    c.store_tile([m, n], acc);
}

#[titan::kernel(instances(BM in [1, 4], BN in [1024, 4096]), grid(cdiv(M, BM)), require(N <= BN))]
pub(crate) fn softmax<const BM: i32, const BN: i32>(
    #[shape(M, N)] x: &Tensor<f32, 2>,
    #[shape(M, N)] y: &mut Tensor<f32, 2>,
) {
    let at = [program_id(0), 0];
    let v = x.load_tile_or::<BM, BN>(at, f32::NEG_INFINITY);
    let e = (v - v.reduce_max::<1>().col()).exp();
    y.store_tile(at, e / e.reduce_sum::<1>().col());
}

#[titan::kernel(instances(BM in [1, 4], BN in [1024, 4096]), grid(cdiv(M, BM)), require(N <= BN))]
pub(crate) fn rms_norm<const BM: i32, const BN: i32>(
    #[shape(M, N)] x: &Tensor<f32, 2>,
    #[shape(N)] w: &Tensor<f32, 1>,
    #[shape(M, N)] y: &mut Tensor<f32, 2>,
    eps: f32,
) {
    let at = [program_id(0), 0];
    let v = x.load_tile::<BM, BN>(at);
    let rstd = ((v * v).reduce_sum::<1>() / N as f32 + eps).rsqrt();
    y.store_tile(at, v * rstd.col() * w.load_tile::<BN>([0]).row());
}

/// Rows of whole tiles: the padding would count in the variance.
#[titan::kernel(instances(BM in [1, 4], BN in [1024]), grid(cdiv(M, BM)), require(N == BN))]
pub(crate) fn layer_norm<const BM: i32, const BN: i32>(
    #[shape(M, N)] x: &Tensor<f32, 2>,
    #[shape(N)] w: &Tensor<f32, 1>,
    #[shape(M, N)] y: &mut Tensor<f32, 2>,
    eps: f32,
) {
    let at = [program_id(0), 0];
    let v = x.load_tile::<BM, BN>(at);
    let v = v - (v.reduce_sum::<1>() / BN as f32).col();
    let rstd = ((v * v).reduce_sum::<1>() / BN as f32 + eps).rsqrt();
    y.store_tile(at, v * rstd.col() * w.load_tile::<BN>([0]).row());
}
