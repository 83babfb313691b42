//! Split-K: when M and N are small, programs share the sum over K; a second kernel adds the parts.
//!
//! Run with `cargo run --release --example split_k`.
mod common;

use titan::prelude::*;

/// Each of `S` splits sums its part of K into its own plane of `part`.
#[titan::kernel(instances((BM, BN, BK) in [(8, 8, 4)]), grid(cdiv(M, BM), cdiv(N, BN), S))]
pub fn gemm_split_k<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(S, M, N)] part: &mut Tensor<f32, 3>,
) {
    let (m, n, s) = (program_id(0), program_id(1), program_id(2));
    let steps = cdiv(K, BK);
    let each = cdiv(steps, S);
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(s * each..steps.min((s + 1) * each)) {
        acc = mma(a.load_tile::<BM, BK>([m, k]), b.load_tile::<BN, BK>([n, k]).t(), acc);
    }
    part.index_mut::<0>(s).store_tile([m, n], acc);
}

/// The sum of the planes.
#[titan::kernel(instances((BM, BN) in [(8, 8)]), grid(cdiv(M, BM), cdiv(N, BN)))]
pub fn sum_splits<const BM: i32, const BN: i32>(
    #[shape(S, M, N)] part: &Tensor<f32, 3>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for s in 0..S {
        acc += part.index::<0>(s).load_tile::<BM, BN>([m, n]);
    }
    c.store_tile([m, n], acc.cast());
}

/// The greatest error with `s` splits.
pub(crate) fn check(dev: &Device, [m, n, k]: [usize; 3], s: usize) -> titan::Result<f64> {
    let mut rng = common::Rng::new(12);
    let (ah, bh) = (rng.fill::<f16>(m * k), rng.fill::<f16>(n * k));
    let (a, b) = (dev.tensor(&ah, [m, k])?, dev.tensor(&bh, [n, k])?);
    let want = common::matmul_nt(&common::f64s(&ah), &common::f64s(&bh), m, n, k);
    let (mut part, mut c) = (dev.zeros([s, m, n])?, dev.zeros([m, n])?);
    let stream = dev.stream()?;
    gemm_split_k::<8, 8, 4>(&a, &b, &mut part).launch(&stream)?;
    sum_splits(&part, &mut c).launch(&stream)?; // one instance: its arguments are inferred
    stream.sync()?;
    let error = common::max_error(&c.to_vec()?, &want);
    gemm_split_k::reference::<8, 8, 4>(&a, &b, &mut part)?;
    sum_splits::reference::<8, 8>(&part, &mut c)?;
    Ok(error.max(common::max_error(&c.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("split-K 33 × 45 × 190 in 3", &dev, check(&dev, [33, 45, 190], 3)?, 3e-3);
    Ok(())
}
