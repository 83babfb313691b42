//! Causal attention of grouped heads; scores are never stored.

use titan::dispatch;
use titan::prelude::*;

/// `out[b, h, m] = softmax(q · kᵀ · scale) · v` over the keys up to the query's position, `BM` queries per program, `BN` keys at a time.
/// What earlier keys added is scaled down when a greater score appears (Milakov, Gimelshein, 2018).
#[titan::kernel(
    instances(T in [f16, bf16, f32], (BM, BN, D) in [(1, 64, 64), (64, 64, 64), (1, 64, 128), (64, 64, 128)]),
    grid(cdiv(N, BM), HQ, B), require(HQ % HK == 0 && N <= NK), allow(no_code),
)]
fn kernel<T: Float, const BM: i32, const BN: i32, const D: i32>(
    #[shape(B, HQ, N, D)] q: &Tensor<T, 4>,
    #[shape(B, HK, NK, D)] k: &Tensor<T, 4>,
    #[shape(B, HK, NK, D)] v: &Tensor<T, 4>,
    #[shape(B, HQ, N, D)] out: &mut Tensor<T, 4>,
    scale: f32,
) {
    let (m, h, b) = (program_id(0), program_id(1), program_id(2));
    let (k, v) = (k.index::<0>(b).index::<0>(h / (HQ / HK)), v.index::<0>(b).index::<0>(h / (HQ / HK)));
    let qt = q.index::<0>(b).index::<0>(h).load_tile::<BM, D>([m, 0]);
    let q_pos = iota::<BM>() + (m * BM + NK - N); // the last query sees the last key
    let mut top = Tile::<f32, BM>::full(f32::NEG_INFINITY);
    let mut sum = Tile::<f32, BM>::zeros();
    let mut acc = Tile::<f32, BM, D>::zeros();
    for j in pipelined(0..cdiv(NK.min(NK - N + (m + 1) * BM), BN)) {
        let s = mma(qt, k.load_tile::<BN, D>([j, 0]).t(), Tile::<f32, BM, BN>::zeros());
        let k_pos = iota::<BN>() + j * BN;
        let seen = (k_pos < NK).broadcast::<0, BM>() & (q_pos.col() >= k_pos.row());
        let s = select(seen, s * (scale * std::f32::consts::LOG2_E), f32::NEG_INFINITY);
        let new = top.max(s.reduce_max::<1>());
        let (p, fix) = ((s - new.col()).exp2(), (top - new).exp2());
        sum = sum * fix + p.reduce_sum::<1>();
        acc = mma(p.cast::<T>(), v.load_tile::<BN, D>([j, 0]), acc * fix.col());
        top = new;
    }
    out.index_mut::<0>(b).index_mut::<0>(h).store_tile([m, 0], (acc / sum.col()).cast());
}

/// Causal attention of `q`, `[B, HQ, N, D]`, over `k` and `v`, `[B, HK, NK, D]`; query head `h` uses head `h / (HQ / HK)` of the keys.
///
/// # Errors
/// If `D` is not 64 or 128, `HQ` is not a multiple of `HK`, there are fewer keys than queries, or the element types differ.
pub fn attention(
    q: &candle_core::Tensor,
    k: &candle_core::Tensor,
    v: &candle_core::Tensor,
    scale: f32,
) -> candle_core::Result<candle_core::Tensor> {
    let (.., queries, dim) = q.dims4()?;
    let block = if queries == 1 { 1 } else { 64 };
    titan_candle::apply("attention", [q, k, v], (q.shape(), q.dtype()), |on, [q, k, v], mut out| {
        on.run(dispatch!(kernel::<_, block, 64, { dim as i32 }>(&q, &k, &v, &mut out, scale)))
    })
}
