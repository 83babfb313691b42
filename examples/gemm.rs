//! A matrix multiplication in half precision: the kernel of the README, its throughput, and its reference.
//!
//! Run with `cargo run --release --example gemm`.
#![allow(deprecated, reason = "with feature `hip`, the largest instances are warned of")]

mod common;

use std::time::Instant;
use titan::prelude::*;

/// C[m, n] = Σ_k A[m, k] · B[n, k], one BM×BN tile of C per program.
#[titan::kernel(
    instances(T in [f16, bf16], (BM, BN, BK) in [(128, 256, 64), (64, 64, 32)]),
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
    c.store_tile([m, n], acc.cast::<T>());
}

/// The greatest errors of the device and of the reference.
pub(crate) fn check(dev: &Device, [m, n, k]: [usize; 3]) -> titan::Result<f64> {
    let mut rng = common::Rng::new(3);
    let (ah, bh) = (rng.fill::<f16>(m * k), rng.fill::<f16>(n * k));
    let (a, b) = (dev.tensor(&ah, [m, k])?, dev.tensor(&bh, [n, k])?);
    let (mut c, mut again) = (dev.zeros([m, n])?, dev.zeros([m, n])?);
    gemm::<f16, 64, 64, 32>(&a, &b, &mut c).sync()?;
    gemm::reference::<f16, 64, 64, 32>(&a, &b, &mut again)?;
    let want = common::matmul_nt(&common::f64s(&ah), &common::f64s(&bh), m, n, k);
    Ok(common::max_error(&c.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

/// Billions of operations per second, the best of a few launches.
fn rate(dev: &Device, n: usize) -> titan::Result<f64> {
    let mut rng = common::Rng::new(4);
    let (a, b) = (dev.tensor(&rng.fill::<f16>(n * n), [n, n])?, dev.tensor(&rng.fill::<f16>(n * n), [n, n])?);
    let mut c = dev.zeros([n, n])?;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        gemm::<f16, 128, 256, 64>(&a, &b, &mut c).sync()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(2.0 * (n as f64).powi(3) / best / 1e9)
}

/// The embedded size of each instance, and its unpacked code: bytes by target, one figure for each variant.
fn sizes() -> titan::Result<()> {
    for kernel in titan::kernels()? {
        let size = |v: &titan::VariantInfo| format!("{} {} B", v.target, v.code.len());
        let code: Vec<String> = kernel.variants.iter().map(size).collect();
        common::say(&format!("embedded {}: {} B; unpacked {}", kernel.name, kernel.bytes, code.join(", ")));
    }
    Ok(())
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    sizes()?;
    common::report("gemm 129 × 257 × 65", &dev, check(&dev, [129, 257, 65])?, 2e-3);
    common::say(&format!("gemm 1024³ in f16: {:.1} GFLOP/s on {dev}", rate(&dev, 1024)?));
    Ok(())
}
