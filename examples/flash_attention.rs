//! Flash attention over plain tensors, causal or full: the scores are never stored to global memory.
//!
//! Run with `cargo run --release --example flash_attention`.
mod common;

use titan::dispatch;
use titan::prelude::*;

/// `out[b, h, m, ..] = softmax(q · kᵀ · scale) · v`, one block of `BM` queries per program; `scale` is positive.
#[titan::kernel(
    instances(T in [f16, bf16], (BM, BN, D) in [(64, 64, 64), (128, 64, 128), (128, 128, 128)], CAUSAL in [true, false]),
    grid(cdiv(N, BM), H, B), allow(no_code),
)]
pub fn flash_attention<T: Float, const BM: i32, const BN: i32, const D: i32, const CAUSAL: bool>(
    #[shape(B, H, N, D)] q: &Tensor<T, 4>,
    #[shape(B, H, NK, D)] k: &Tensor<T, 4>,
    #[shape(B, H, NK, D)] v: &Tensor<T, 4>,
    #[shape(B, H, N, D)] out: &mut Tensor<T, 4>,
    scale: f32,
) {
    let (m, h, b) = (program_id(0), program_id(1), program_id(2));
    let (q, k, v) = (q.index::<0>(b).index::<0>(h), k.index::<0>(b).index::<0>(h), v.index::<0>(b).index::<0>(h));
    let qt = q.load_tile::<BM, D>([m, 0]);
    let q_pos = iota::<BM>() + (m * BM + NK - N); // the last query sees the last key
    let end = if CAUSAL { NK.min(NK - N + (m + 1) * BM) } else { NK };

    tassert!(scale > 0.0, "the greatest score must stay the greatest when it is scaled");
    let scale = scale * std::f32::consts::LOG2_E;
    let mut top = Tile::<f32, BM>::full(f32::NEG_INFINITY);
    let mut sum = Tile::<f32, BM>::zeros();
    let mut acc = Tile::<f32, BM, D>::zeros();
    for j in pipelined(0..cdiv(end, BN)) {
        let kt = k.load_tile::<BN, D>([j, 0]);
        let vt = v.load_tile::<BN, D>([j, 0]);
        let s = mma(qt, kt.t(), Tile::<f32, BM, BN>::zeros());
        let k_pos = iota::<BN>() + j * BN;
        let mut seen = (k_pos < NK).broadcast::<0, BM>();
        if CAUSAL {
            seen = seen & (q_pos.col() >= k_pos.row());
        }
        let s = select(seen, s, f32::NEG_INFINITY);
        let new = top.max(s.reduce_max::<1>());
        // Scores are scaled on the way to the power, by one operation for each: `top` is the greatest one before it is scaled.
        let less = -(new * scale);
        let p = s.mul_add(scale, less.col()).exp2();
        let fix = top.mul_add(scale, less).exp2();
        sum = sum * fix + p.reduce_sum::<1>();
        acc = mma(p.cast::<T>(), vt, acc * fix.col());
        top = new;
    }
    out.index_mut::<0>(b).index_mut::<0>(h).store_tile([m, 0], (acc / sum.col()).cast());
}

/// The greatest error for `n` queries over `keys` keys, 2 × 3 heads of 64.
pub(crate) fn check(dev: &Device, n: usize, keys: usize, causal: bool) -> titan::Result<f64> {
    const D: usize = 64;
    let (heads, mut rng) = (2 * 3, common::Rng::new(8));
    let (qh, kh, vh) =
        (rng.fill::<f16>(heads * n * D), rng.fill::<f16>(heads * keys * D), rng.fill::<f16>(heads * keys * D));
    let (q, k, v) =
        (dev.tensor(&qh, [2, 3, n, D])?, dev.tensor(&kh, [2, 3, keys, D])?, dev.tensor(&vh, [2, 3, keys, D])?);
    let (mut out, mut again) = (dev.zeros::<f16, 4>([2, 3, n, D])?, dev.zeros::<f16, 4>([2, 3, n, D])?);
    dispatch!(flash_attention::<_, 64, 64, 64, causal>(&q, &k, &v, &mut out, 0.125)).sync()?;
    dispatch!(flash_attention::reference::<_, 64, 64, 64, causal>(&q, &k, &v, &mut again, 0.125))?;
    let mut want = Vec::with_capacity(out.len());
    for i in 0..heads * n {
        let (head, end) = (i / n, if causal { keys - n + i % n + 1 } else { keys });
        let at = |j: usize| (head * keys + j) * D;
        let dot = |j: usize| (0..D).map(|e| qh[i * D + e].to_f64() * kh[at(j) + e].to_f64()).sum::<f64>();
        let weight: Vec<f64> = (0..end).map(|j| (dot(j) * 0.125).exp()).collect();
        let total: f64 = weight.iter().sum();
        want.extend((0..D).map(|e| (0..end).map(|j| weight[j] / total * vh[at(j) + e].to_f64()).sum::<f64>()));
    }
    Ok(common::max_error(&out.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("flash attention, causal, 77 of 100", &dev, check(&dev, 77, 100, true)?, 2e-3);
    common::report("flash attention, full, 77 by 100", &dev, check(&dev, 77, 100, false)?, 2e-3);
    Ok(())
}
