//! Attention, beside PyTorch's `scaled_dot_product_attention` with each of its backends.

use crate::Plan;
use crate::cases::{Case, Side, Work, ours, values};
use crate::flash_attention::flash_attention;
use crate::torch;
use titan::prelude::*;
use titan::{Result, Stream};

/// The kernel with tiles for a size of heads.
fn launch<const D: usize>(
    [q, k, v]: [&Tensor<bf16, 4>; 3],
    out: &mut Tensor<bf16, 4>,
    causal: bool,
    on: &Stream,
) -> Result<()> {
    let scale = 1.0 / (D as f32).sqrt();
    match (D, causal) {
        (64, true) => flash_attention::<bf16, 64, 64, 64, true>(q, k, v, out, scale).launch(on),
        (64, false) => flash_attention::<bf16, 64, 64, 64, false>(q, k, v, out, scale).launch(on),
        (_, true) => flash_attention::<bf16, 128, 128, 128, true>(q, k, v, out, scale).launch(on),
        (_, false) => flash_attention::<bf16, 128, 128, 128, false>(q, k, v, out, scale).launch(on),
    }
}

/// Attention of `n` queries to as many keys, for so many batches and heads of `D`.
pub(crate) fn attention<const D: usize>(
    dev: &Device,
    plan: Plan,
    [batches, heads, n]: [usize; 3],
    causal: bool,
) -> Result<Case> {
    let [batches, heads, n] = if plan.small { [1, 2, 200] } else { [batches, heads, n] };
    let shape = [batches, heads, n, D];
    let host = [0, 1, 2]
        .map(|seed| values(batches * heads * n * D, seed).into_iter().map(bf16::from_f32).collect::<Vec<bf16>>());
    let [q, k, v] = [dev.tensor(&host[0], shape)?, dev.tensor(&host[1], shape)?, dev.tensor(&host[2], shape)?];
    let (mut out, stream) = (dev.zeros(shape)?, dev.stream()?);
    launch::<D>([&q, &k, &v], &mut out, causal, &stream)?;
    stream.sync()?;
    check(&out.to_vec()?, &host, [n, D], causal);
    let mut sides = vec![ours(stream, move |stream| launch::<D>([&q, &k, &v], &mut out, causal, stream))];
    if !plan.small {
        sides.extend(torch::attention(shape, causal).into_iter().map(|(name, run)| Side { name, run }));
    }
    // Two products; of a causal one, half.
    let flops = 4 * (batches * heads * n * n * D) as u64 / if causal { 2 } else { 1 };
    let kind = if causal { "causal" } else { "full" };
    Ok(Case { name: format!("attention bf16 [{batches}, {heads}, {n}, {D}], {kind}"), work: Work::Flops(flops), sides })
}

/// Panics unless a few rows of the first and of the last head are right.
fn check(found: &[bf16], [q, k, v]: &[Vec<bf16>; 3], [n, d]: [usize; 2], causal: bool) {
    let last = found.len() / (n * d) - 1;
    for (head, row) in [(0, 0), (0, n - 1), (last, n / 2), (last, n - 1)] {
        let at = |x: &[bf16], row: usize, e: usize| f64::from(x[(head * n + row) * d + e].to_f32());
        let end = if causal { row + 1 } else { n };
        let scores = (0..end).map(|j| (0..d).map(|e| at(q, row, e) * at(k, j, e)).sum::<f64>() / (d as f64).sqrt());
        let scores: Vec<f64> = scores.collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        for e in 0..d {
            let want = weights.iter().enumerate().map(|(j, w)| w * at(v, j, e)).sum::<f64>() / sum;
            let got = at(found, row, e);
            assert!((got - want).abs() <= 0.02 * (0.1 + want.abs()), "attention of row {row}: {got} for {want}");
        }
    }
}
