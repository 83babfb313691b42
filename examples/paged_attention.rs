//! Flash attention over a paged KV cache: grouped queries, packed sequences of different lengths, causal or not.
//!
//! Run with `cargo run --release --example paged_attention`.
mod common;

use titan::dispatch;
use titan::prelude::*;

/// One block of `BM` queries of one head of one sequence per program. Pages need not equal `BN`.
#[titan::kernel(instances(T in [f16], (BM, BN, D) in [(8, 8, 16)], CAUSAL in [true, false]), grid(cdiv(max_q, BM), H, B))]
pub fn paged_attention<T: Float, const BM: i32, const BN: i32, const D: i32, const CAUSAL: bool>(
    #[shape(TOK, H, D)] q: &Tensor<T, 3>,
    #[shape(_, PAGE, HK, D)] kc: &Tensor<T, 4>,
    #[shape(_, PAGE, HK, D)] vc: &Tensor<T, 4>,
    #[shape(B, _)] table: &Tensor<i32, 2>,
    #[shape(B + 1)] q_off: &Tensor<i32, 1>,
    #[shape(B)] kv_len: &Tensor<i32, 1>,
    #[shape(TOK, H, D)] out: &mut Tensor<T, 3>,
    max_q: i32,
    scale: f32,
) {
    let (m, h, b) = (program_id(0), program_id(1), program_id(2));
    let q = q.index::<1>(h).segment(q_off, b); // this sequence's rows, this head
    let (n_q, n_kv) = (q.dim(0), kv_len.get([b]));
    if m * BM >= n_q {
        return;
    }
    let hk = h / (H / HK);
    let q = q.load_tile::<BM, D>([m, 0]);
    let q_pos = iota::<BM>() + m * BM + (n_kv - n_q);
    let end = if CAUSAL { n_kv.min(n_kv - n_q + (m + 1) * BM) } else { n_kv };

    let mut top = Tile::<f32, BM>::full(f32::NEG_INFINITY);
    let mut sum = Tile::<f32, BM>::zeros();
    let mut acc = Tile::<f32, BM, D>::zeros();
    for j in pipelined(0..cdiv(end, BN)) {
        let k_pos = iota::<BN>() + j * BN;
        let page = table.gather([Tile::<i32, BN>::full(b), k_pos / PAGE]);
        let slot = select(k_pos < n_kv, k_pos % PAGE, -1); // past the end: zero, not the page's contents (0 · NaN)
        let k = kc.gather_rows::<BN, D>((page, slot, hk), 0);
        let v = vc.gather_rows::<BN, D>((page, slot, hk), 0);
        let s = mma(q, k.t(), Tile::<f32, BM, BN>::zeros()) * (scale * std::f32::consts::LOG2_E);
        let mut seen = (k_pos < n_kv).broadcast::<0, BM>();
        if CAUSAL {
            seen = seen & (q_pos.col() >= k_pos.row());
        }
        let s = select(seen, s, f32::NEG_INFINITY);
        let new = top.max(s.reduce_max::<1>());
        let p = (s - new.col()).exp2();
        let fix = (top - new).exp2();
        sum = sum * fix + p.reduce_sum::<1>();
        acc = mma(p.cast::<T>(), v, acc * fix.col());
        top = new;
    }
    out.index_mut::<1>(h).segment_mut(q_off, b).store_tile([m, 0], (acc / sum.col()).cast());
}

const HQ: usize = 4;
const HK: usize = 2;
const D: usize = 16;
const PAGE: usize = 4;
const PAGES: usize = 12;

/// The greatest error on two sequences of 5 and 9 queries over 11 and 9 keys.
pub(crate) fn check(dev: &Device, causal: bool) -> titan::Result<f64> {
    let (q_off, kv_len, table) = ([0, 5, 14], [11, 9], [7, 2, 9, 0, 4, 1, 11, 0]);
    let mut rng = common::Rng::new(7);
    let (qh, kh, vh) =
        (rng.fill::<f16>(14 * HQ * D), rng.fill::<f16>(PAGES * PAGE * HK * D), rng.fill::<f16>(PAGES * PAGE * HK * D));
    let cache = [PAGES, PAGE, HK, D];
    let (q, k, v) = (dev.tensor(&qh, [14, HQ, D])?, dev.tensor(&kh, cache)?, dev.tensor(&vh, cache)?);
    let (t, o, l) = (dev.tensor(&table, [2, 4])?, dev.tensor(&q_off, [3])?, dev.tensor(&kv_len, [2])?);
    let (mut out, mut again) = (dev.zeros::<f16, 3>([14, HQ, D])?, dev.zeros::<f16, 3>([14, HQ, D])?);
    dispatch!(paged_attention::<_, 8, 8, 16, causal>(&q, &k, &v, &t, &o, &l, &mut out, 9, 0.25)).sync()?;
    dispatch!(paged_attention::reference::<_, 8, 8, 16, causal>(&q, &k, &v, &t, &o, &l, &mut again, 9, 0.25))?;
    let mut want = vec![0.0; out.len()];
    for s in 0..2 {
        let (first, last, keys) = (q_off[s] as usize, q_off[s + 1] as usize, kv_len[s] as usize);
        for (i, h) in (first..last).flat_map(|i| (0..HQ).map(move |h| (i, h))) {
            let end = if causal { keys - (last - first) + (i - first) + 1 } else { keys };
            let at = |j: usize| ((table[s * 4 + j / PAGE] as usize * PAGE + j % PAGE) * HK + h / (HQ / HK)) * D;
            let dot =
                |j: usize| (0..D).map(|e| qh[(i * HQ + h) * D + e].to_f64() * kh[at(j) + e].to_f64()).sum::<f64>();
            let weight: Vec<f64> = (0..end).map(|j| (dot(j) * 0.25).exp()).collect();
            let total: f64 = weight.iter().sum();
            for e in 0..D {
                want[(i * HQ + h) * D + e] = (0..end).map(|j| weight[j] / total * vh[at(j) + e].to_f64()).sum();
            }
        }
    }
    Ok(common::max_error(&out.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("paged attention, causal", &dev, check(&dev, true)?, 3e-3);
    common::report("paged attention, full", &dev, check(&dev, false)?, 3e-3);
    Ok(())
}
