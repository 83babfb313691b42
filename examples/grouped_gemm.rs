//! Mixture of experts: a matrix multiplication per expert, over rows that a router grouped on the device.
//!
//! Run with `cargo run --release --example grouped_gemm`.
mod common;

use titan::prelude::*;

/// Rows of `y` belong to expert `e` for `off[e] <= row < off[e + 1]`; row `r` multiplies token `row[r]`.
#[titan::kernel(instances((BM, BN, BK) in [(4, 8, 4)]))]
pub fn grouped_gemm<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(TOK, K)] x: &Tensor<bf16, 2>,
    #[shape(R)] row: &Tensor<i32, 1>,
    #[shape(E, N, K)] w: &Tensor<bf16, 3>,
    #[shape(E + 1)] off: &Tensor<i32, 1>,
    #[shape(R, N)] y: &mut Tensor<bf16, 2>,
) {
    for out in y.ragged::<BM, BN>(off) {
        let (e, [m, n]) = (out.group(), out.index());
        let token = row.segment(off, e).load_tile_or::<BM>([m], -1);
        let w = w.index::<0>(e);
        let mut acc = Tile::<f32, BM, BN>::zeros();
        for k in pipelined(0..cdiv(K, BK)) {
            acc = mma(x.gather_rows::<BM, BK>(token, k * BK), w.load_tile::<BN, BK>([n, k]).t(), acc);
        }
        out.store(acc.cast());
    }
}

/// The greatest error for three experts with 5, 0 and 4 rows.
pub(crate) fn check(dev: &Device) -> titan::Result<f64> {
    let (tokens, k, n, experts) = (6, 10, 19, 3);
    let (row, off) = ([0, 3, 5, 1, 2, 3, 4, 0, 5], [0, 5, 5, 9]);
    let mut rng = common::Rng::new(10);
    let (xh, wh) = (rng.fill::<bf16>(tokens * k), rng.fill::<bf16>(experts * n * k));
    let (x, w) = (dev.tensor(&xh, [tokens, k])?, dev.tensor(&wh, [experts, n, k])?);
    let (r, o) = (dev.tensor(&row, [row.len()])?, dev.tensor(&off, [off.len()])?);
    let want: Vec<f64> = (0..row.len() * n)
        .map(|i| {
            let (p, j) = (i / n, i % n);
            let e = (0..experts).rfind(|e| off[*e] as usize <= p).unwrap_or(0);
            let (x, w) = (row[p] as usize * k, (e * n + j) * k);
            (0..k).map(|l| xh[x + l].to_f64() * wh[w + l].to_f64()).sum()
        })
        .collect();
    let (mut y, mut again) = (dev.zeros([row.len(), n])?, dev.zeros([row.len(), n])?);
    grouped_gemm(&x, &r, &w, &o, &mut y).sync()?;
    grouped_gemm::reference::<4, 8, 4>(&x, &r, &w, &o, &mut again)?;
    Ok(common::max_error(&y.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("grouped GEMM of 3 experts", &dev, check(&dev)?, 2e-2);
    Ok(())
}
