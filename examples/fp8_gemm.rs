//! Matrix multiplication in 8-bit floating point: plain, and with scales per block, whose partial sums are promoted to `f32`.
//!
//! Run with `cargo run --release --example fp8_gemm`.
mod common;

use titan::prelude::*;

/// C[m, n] = Σ_k A[m, k] · B[n, k]
#[titan::kernel(
    instances(T in [f16, bf16], (BM, BN, BK) in [(16, 16, 32), (128, 64, 64)]),
    grid(cdiv(M, BM), cdiv(N, BN)),
)]
pub fn fp8_gemm<T: Float, const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<e4m3, 2>,
    #[shape(N, K)] b: &Tensor<e4m3, 2>,
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

/// The same of blocks with scales, as in DeepSeek-V3: `BK` neighbours of a row of A have one scale, and `BN` × `BK` elements of B. The
/// sum of each block begins with zero, and is scaled and added in `f32`.
#[titan::kernel(instances((BM, BN, BK) in [(16, 16, 32), (128, 128, 128)]), grid(cdiv(M, BM), cdiv(N, BN)), allow(no_code))]
pub fn fp8_gemm_scaled<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<e4m3, 2>,
    #[shape(cdiv(K, BK), M)] a_scale: &Tensor<f32, 2>,
    #[shape(N, K)] b: &Tensor<e4m3, 2>,
    #[shape(cdiv(N, BN), cdiv(K, BK))] b_scale: &Tensor<f32, 2>,
    #[shape(M, N)] c: &mut Tensor<bf16, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        // Loaded while the MMA runs, and used after it.
        let (rows, block) = (a_scale.index::<0>(k).load_tile::<BM>([m]), b_scale.get([n, k]));
        let at = a.load_tile::<BM, BK>([m, k]);
        let bt = b.load_tile::<BN, BK>([n, k]);
        let partial = mma(at, bt.t(), Tile::<f32, BM, BN>::zeros());
        acc = partial.mul_add((rows * block).col(), acc);
    }
    c.store_tile([m, n], acc.cast());
}

/// The greatest error of both kernels, on the device and of their references.
pub(crate) fn check(dev: &Device, [m, n, k]: [usize; 3]) -> titan::Result<f64> {
    const BLOCK: [usize; 2] = [16, 32];
    let mut rng = common::Rng::new(21);
    let (ah, bh) = (rng.fill::<e4m3>(m * k), rng.fill::<e4m3>(n * k));
    let [rows, blocks] = [n.div_ceil(BLOCK[0]), k.div_ceil(BLOCK[1])];
    let (sah, sbh) = (rng.fill::<f32>(blocks * m), rng.fill::<f32>(rows * blocks));
    let (a, b) = (dev.tensor(&ah, [m, k])?, dev.tensor(&bh, [n, k])?);
    let (sa, sb) = (dev.tensor(&sah, [blocks, m])?, dev.tensor(&sbh, [rows, blocks])?);
    let (af, bf) = (common::f64s(&ah), common::f64s(&bh));
    let scaled = |x: &[f64], scale: &dyn Fn(usize, usize) -> f32| -> Vec<f64> {
        (0..x.len()).map(|i| x[i] * f64::from(scale(i / k, i % k / BLOCK[1]))).collect()
    };
    let want = [
        common::matmul_nt(&af, &bf, m, n, k),
        common::matmul_nt(
            &scaled(&af, &|row, block| sah[block * m + row]),
            &scaled(&bf, &|row, block| sbh[row / BLOCK[0] * blocks + block]),
            m,
            n,
            k,
        ),
    ];
    let mut error = 0.0f64;
    for reference in [false, true] {
        let (mut c, mut d) = (dev.zeros([m, n])?, dev.zeros([m, n])?);
        if reference {
            fp8_gemm::reference::<f16, 16, 16, 32>(&a, &b, &mut c)?;
            fp8_gemm_scaled::reference::<16, 16, 32>(&a, &sa, &b, &sb, &mut d)?;
        } else {
            fp8_gemm::<f16, 16, 16, 32>(&a, &b, &mut c).sync()?;
            fp8_gemm_scaled::<16, 16, 32>(&a, &sa, &b, &sb, &mut d).sync()?;
        }
        error = error.max(common::max_error(&c.to_vec()?, &want[0])).max(common::max_error(&d.to_vec()?, &want[1]));
    }
    Ok(error)
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("fp8_gemm 33 × 40 × 80", &dev, check(&dev, [33, 40, 80])?, 1e-2);
    Ok(())
}
