//! Batched matrix multiplication; broadcast and transposed operands are views with the strides of their tensors.
//!
//! Run with `cargo run --release --example batched_gemm`.
mod common;

use titan::prelude::*;

/// `C[i] = A[i] · B[i]ᵀ`
#[titan::kernel(instances((BM, BN, BK) in [(8, 8, 4)]), grid(cdiv(M, BM), cdiv(N, BN), B))]
pub fn bmm<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(B, M, K)] a: &Tensor<f16, 3>,
    #[shape(B, N, K)] b: &Tensor<f16, 3>,
    #[shape(B, M, N)] c: &mut Tensor<f16, 3>,
) {
    let (m, n, i) = (program_id(0), program_id(1), program_id(2));
    let (a, b) = (a.index::<0>(i), b.index::<0>(i));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        acc = mma(a.load_tile::<BM, BK>([m, k]), b.load_tile::<BN, BK>([n, k]).t(), acc);
    }
    c.index_mut::<0>(i).store_tile([m, n], acc.cast());
}

/// The greatest error; `b` is stored as [K, N] and shared by the whole batch.
pub(crate) fn check(dev: &Device, batch: usize, [m, n, k]: [usize; 3]) -> titan::Result<f64> {
    let mut rng = common::Rng::new(13);
    let (ah, bh) = (rng.fill::<f16>(batch * m * k), rng.fill::<f16>(k * n));
    let (a, b) = (dev.tensor(&ah, [batch, m, k])?, dev.tensor(&bh, [k, n])?);
    let b = b.transpose::<0, 1>()?;
    let b = b.unsqueeze::<0>()?.broadcast([batch, n, k])?;
    let transposed: Vec<f64> = (0..n * k).map(|i| bh[i % k * n + i / k].to_f64()).collect();
    let product = |a: &[f16]| common::matmul_nt(&common::f64s(a), &transposed, m, n, k);
    let want: Vec<f64> = ah.chunks(m * k).flat_map(product).collect();
    let (mut c, mut again) = (dev.zeros([batch, m, n])?, dev.zeros([batch, m, n])?);
    bmm(&a, &b, &mut c).sync()?;
    bmm::reference::<8, 8, 4>(&a, &b, &mut again)?;
    Ok(common::max_error(&c.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("batched GEMM 3 × (9 × 11 × 7)", &dev, check(&dev, 3, [9, 11, 7])?, 2e-3);
    Ok(())
}
