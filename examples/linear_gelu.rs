//! A persistent linear layer with optional bias and GELU: each program loops over its share of the output tiles.
//!
//! Run with `cargo run --release --example linear_gelu`.
mod common;

use titan::dispatch;
use titan::prelude::*;

/// x · Φ(x)
#[titan::device]
fn gelu<S: Shape>(x: Tile<f32, S>) -> Tile<f32, S> {
    0.5 * x * (1.0 + (x * std::f32::consts::FRAC_1_SQRT_2).erf())
}

/// `C = gelu(A · Wᵀ + bias)`
///
/// The assembler computes `erf` of all elements of a thread side by side. With 64 elements or more it runs out of registers, so tiles are not
/// larger than 64 × 64.
#[titan::kernel(instances((BM, BN, BK) in [(8, 16, 4), (64, 64, 64)]))]
pub fn linear_gelu<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<bf16, 2>,
    #[shape(N, K)] w: &Tensor<bf16, 2>,
    #[shape(N)] bias: Option<&Tensor<bf16, 1>>,
    #[shape(M, N)] c: &mut Tensor<bf16, 2>,
) {
    // In groups of rows: programs that run at the same time share rows of `a` and of `w`.
    for out in c.tiles_grouped::<BM, BN, 8>() {
        let [m, n] = out.index();
        let mut acc = Tile::<f32, BM, BN>::zeros();
        for k in pipelined(0..cdiv(K, BK)) {
            acc = mma(a.load_tile::<BM, BK>([m, k]), w.load_tile::<BN, BK>([n, k]).t(), acc);
        }
        if let Some(b) = bias {
            acc += b.load_tile::<BN>([n]).cast::<f32>().row();
        }
        out.store(gelu(acc).cast());
    }
}

/// The greatest error, with or without bias.
pub(crate) fn check(dev: &Device, [m, n, k]: [usize; 3], with_bias: bool) -> titan::Result<f64> {
    let mut rng = common::Rng::new(15);
    let (ah, wh, bh) = (rng.fill::<bf16>(m * k), rng.fill::<bf16>(n * k), rng.fill::<bf16>(n));
    let (a, w, b) = (dev.tensor(&ah, [m, k])?, dev.tensor(&wh, [n, k])?, dev.tensor(&bh, [n])?);
    let bias = with_bias.then_some(&b);
    let sums = common::matmul_nt(&common::f64s(&ah), &common::f64s(&wh), m, n, k);
    let exact = |(i, x): (usize, f64)| {
        let x = if with_bias { x + bh[i % n].to_f64() } else { x };
        0.5 * x * (1.0 + common::erf(x * std::f64::consts::FRAC_1_SQRT_2))
    };
    let want: Vec<f64> = sums.into_iter().enumerate().map(exact).collect();
    let (mut c, mut again) = (dev.zeros([m, n])?, dev.zeros([m, n])?);
    // Larger tiles for large matrices.
    let (bm, bn, bk) = if m >= 64 { (64, 64, 64) } else { (8, 16, 4) };
    dispatch!(linear_gelu::<bm, bn, bk>(&a, &w, bias, &mut c)).sync()?;
    dispatch!(linear_gelu::reference::<bm, bn, bk>(&a, &w, bias, &mut again))?;
    Ok(common::max_error(&c.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("linear + bias + GELU", &dev, check(&dev, [21, 37, 10], true)?, 1e-2);
    common::report("linear + GELU", &dev, check(&dev, [21, 37, 10], false)?, 1e-2);
    common::report("linear + bias + GELU, larger tiles", &dev, check(&dev, [200, 136, 96], true)?, 1e-2);
    Ok(())
}
