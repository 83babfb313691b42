//! Self-attention over sentences packed one after the other.

use titan::prelude::*;

/// `out[t] = softmax over s (query[t] · key[s] · scale) · value[s]`, where `s` runs over the tokens of `t`'s sentence.
///
/// `qkv` holds the query, key and value of every head, `[T, 3, HEADS, DIM]`; sentence `b` is rows `off[b]..off[b + 1]`.
/// A program takes `BM` queries of one head and one sentence, past `BN` keys at a time: what earlier keys added is
/// scaled down when a greater score appears (Milakov, Gimelshein, "Online normalizer calculation for softmax", 2018).
#[titan::kernel(
    instances((BM, BN, D) in [(32, 32, 32), (8, 4, 8)]),
    grid(cdiv(longest, BM), HEADS, OFFS - 1),
    require(DIM <= D),
)]
pub fn attention<const BM: i32, const BN: i32, const D: i32>(
    #[shape(T, 3, HEADS, DIM)] qkv: &Tensor<f32, 4>,
    #[shape(OFFS)] off: &Tensor<i32, 1>,
    #[shape(T, HEADS, DIM)] out: &mut Tensor<f32, 3>,
    longest: i32,
    scale: f32,
) {
    let (m, h, b) = (program_id(0), program_id(1), program_id(2));
    let qkv = qkv.index::<2>(h).segment(off, b); // [tokens of the sentence, 3, DIM]
    let (query, key, value) = (qkv.index::<1>(0), qkv.index::<1>(1), qkv.index::<1>(2));
    let n = query.dim(0);
    if m * BM >= n {
        return;
    }
    let q = query.load_tile::<BM, D>([m, 0]) * (scale * std::f32::consts::LOG2_E);
    let mut top = Tile::<f32, BM>::full(f32::NEG_INFINITY);
    let mut sum = Tile::<f32, BM>::zeros();
    let mut acc = Tile::<f32, BM, D>::zeros();
    for j in pipelined(0..cdiv(n, BN)) {
        let scores = mma(q, key.load_tile::<BN, D>([j, 0]).t(), Tile::<f32, BM, BN>::zeros());
        let inside = (iota::<BN>() + j * BN < n).broadcast::<0, BM>();
        let scores = select(inside, scores, f32::NEG_INFINITY);
        let new = top.max(scores.reduce_max::<1>());
        let power = (scores - new.col()).exp2();
        let fix = (top - new).exp2();
        sum = sum * fix + power.reduce_sum::<1>();
        acc = mma(power, value.load_tile::<BN, D>([j, 0]), acc * fix.col());
        top = new;
    }
    out.index_mut::<1>(h).segment_mut(off, b).store_tile([m, 0], acc / sum.col());
}
