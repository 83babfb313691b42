//! The kernels of the decoder. One source each: checked and compiled by `cargo build`, run on the CPU and on GPUs.
//!
//! | kernel | computes | from, to |
//! |---|---|---|
//! | [`embed`] | rows of the table of embeddings | `[TOK]` tokens to `[TOK, N]` |
//! | [`add_rms_norm`] | residual addition and RMS norm | `[TOK, N]` to `[TOK, N]` |
//! | [`linear`], [`linear_w4`] | a product with weights of 16 bits, or of 4 bits with scales | `[M, K]` to `[M, N]` |
//! | [`rope_to_cache`] | rotary embedding of queries and keys; keys and values go to the pages of the cache | `[TOK, HQ + 2 HK, D]` to `[TOK, HQ, D]` |
//! | [`paged_attention`] | causal attention of grouped queries over the pages of each sequence | `[TOK, HQ, D]` to `[TOK, HQ, D]` |
//! | [`swiglu`] | the gated activation | `[TOK, 2, F]` to `[TOK, F]` |
//! | [`last_rms_norm`] | residual addition and RMS norm of the last row of each sequence | `[TOK, N]` to `[BATCH, N]` |
//! | [`argmax`] | the next token of each sequence | `[BATCH, V]` to `[BATCH]` |
//!
//! `TOK` tokens of `BATCH` sequences lie one after the other, without padding, a whole prompt and a single token alike: the same kernels
//! serve both. Operands of matrix products and the cache have the element type `T` of the model; the residual stream, sums and logits
//! are `f32`. Extents need not be multiples of tiles: elements outside of a tensor read as zero and are not written.
//!
//! Deliberately absent: a choice of tiles for a particular GPU, and several programs for one long sequence in decoding (split keys).

use titan::prelude::*;

/// `x[t] = table[token[t]]`: the residual stream begins with the embeddings.
#[titan::kernel(instances(T in [f16, bf16], (BT, W) in [(8, 128)]), grid(cdiv(TOK, BT), cdiv(N, W)))]
pub fn embed<T: Float, const BT: i32, const W: i32>(
    #[shape(TOK)] token: &Tensor<i32, 1>,
    #[shape(_, N)] table: &Tensor<T, 2>,
    #[shape(TOK, N)] x: &mut Tensor<f32, 2>,
) {
    let (t, n) = (program_id(0), program_id(1));
    let ids = token.load_tile_or::<BT>([t], -1);
    x.store_tile([t, n], table.gather_rows::<BT, W>(ids, n * W).cast::<f32>());
}

/// `x += branch; y = x / rms(x) * scale`, one row per program, `W` columns at a time, so that a row may have any width.
#[titan::kernel(instances(T in [f16, bf16], W in [128]), grid(TOK))]
pub fn add_rms_norm<T: Float, const W: i32>(
    #[shape(TOK, N)] branch: &Tensor<f32, 2>,
    #[shape(TOK, N)] x: &mut Tensor<f32, 2>,
    #[shape(N)] scale: &Tensor<T, 1>,
    #[shape(TOK, N)] y: &mut Tensor<T, 2>,
    eps: f32,
) {
    let t = program_id(0);
    let mut squares = Tile::<f32, 1>::zeros();
    for i in 0..cdiv(N, W) {
        let v = x.load_tile::<1, W>([t, i]) + branch.load_tile::<1, W>([t, i]);
        x.store_tile([t, i], v);
        squares += (v * v).reduce_sum::<1>();
    }
    let by = (squares / N as f32 + eps).rsqrt();
    for i in 0..cdiv(N, W) {
        let v = x.load_tile::<1, W>([t, i]) * by.col() * scale.load_tile::<W>([i]).cast::<f32>().row();
        y.store_tile([t, i], v.cast());
    }
}

/// `y[b] = norm(x + branch)` of the last row of sequence `b`, which is row `off[b + 1] - 1`; the other rows need no logits.
#[titan::kernel(instances(T in [f16, bf16], W in [128]), grid(OFFS - 1))]
pub fn last_rms_norm<T: Float, const W: i32>(
    #[shape(TOK, N)] branch: &Tensor<f32, 2>,
    #[shape(TOK, N)] x: &Tensor<f32, 2>,
    #[shape(OFFS)] off: &Tensor<i32, 1>,
    #[shape(N)] scale: &Tensor<T, 1>,
    #[shape(OFFS - 1, N)] y: &mut Tensor<T, 2>,
    eps: f32,
) {
    let b = program_id(0);
    let row = off.get([b + 1]) - 1;
    let mut squares = Tile::<f32, 1>::zeros();
    for i in 0..cdiv(N, W) {
        let v = x.load_at::<1, W>([row, i * W]) + branch.load_at::<1, W>([row, i * W]);
        squares += (v * v).reduce_sum::<1>();
    }
    let by = (squares / N as f32 + eps).rsqrt();
    for i in 0..cdiv(N, W) {
        let v = x.load_at::<1, W>([row, i * W]) + branch.load_at::<1, W>([row, i * W]);
        let v = v * by.col() * scale.load_tile::<W>([i]).cast::<f32>().row();
        y.store_tile([b, i], v.cast());
    }
}

/// `y = x · weightᵀ`; few rows take the tile of 16 rows, the rows of prompts that of 64.
#[titan::kernel(
    instances(T in [f16, bf16], (BM, BN, BK) in [(16, 64, 64), (64, 64, 64)]),
    grid(cdiv(M, BM), cdiv(N, BN)),
)]
pub fn linear<T: Float, const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] x: &Tensor<T, 2>,
    #[shape(N, K)] weight: &Tensor<T, 2>,
    #[shape(M, N)] y: &mut Tensor<f32, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        acc = mma(x.load_tile::<BM, BK>([m, k]), weight.load_tile::<BN, BK>([n, k]).t(), acc);
    }
    y.store_tile([m, n], acc);
}

/// The same for weights of 4 bits, whose value is `code · scale`, with one scale for every `G` codes along `K`.
#[titan::kernel(
    instances(T in [f16, bf16], (BM, BN, BK, G) in [(16, 64, 64, 32), (64, 64, 64, 32)]),
    grid(cdiv(M, BM), cdiv(N, BN)),
    require(K % G == 0),
)]
pub fn linear_w4<T: Float, const BM: i32, const BN: i32, const BK: i32, const G: i32>(
    #[shape(M, K)] x: &Tensor<T, 2>,
    #[shape(N, K)] code: &Tensor<i4, 2>,
    #[shape(N, K / G)] scale: &Tensor<T, 2>,
    #[shape(M, N)] y: &mut Tensor<f32, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        let s = scale.load_tile::<BN, { BK / G }>([n, k]).broadcast::<2, G>().reshape::<BN, BK>();
        let weight = code.load_tile::<BN, BK>([n, k]).cast::<T>() * s;
        acc = mma(x.load_tile::<BM, BK>([m, k]), weight.t(), acc);
    }
    y.store_tile([m, n], acc);
}

/// Half-split (NeoX) rotation of queries and keys by the angles of their positions. Queries are stored to `q`; keys and values are
/// scattered to `keys` and `values`, at the page that `table` has for the position. A program takes `BT` tokens of one head, of which
/// `qkv` has those of the queries first, then those of the keys, then those of the values.
#[titan::kernel(
    instances(T in [f16, bf16], (BT, D) in [(8, 16), (8, 64), (8, 128)]),
    grid(cdiv(TOK, BT), HEADS),
    require(HEADS == HQ + 2 * HK),
)]
pub fn rope_to_cache<T: Float, const BT: i32, const D: i32>(
    #[shape(TOK, HEADS, D)] qkv: &Tensor<f32, 3>,
    #[shape(TOK)] position: &Tensor<i32, 1>,
    #[shape(TOK)] sequence: &Tensor<i32, 1>,
    #[shape(_, _)] table: &Tensor<i32, 2>,
    #[shape(POS, D / 2)] cos: &Tensor<f32, 2>,
    #[shape(POS, D / 2)] sin: &Tensor<f32, 2>,
    #[shape(TOK, HQ, D)] q: &mut Tensor<T, 3>,
    #[shape(PAGES, PAGE, HK, D)] keys: &mut Tensor<T, 4>,
    #[shape(PAGES, PAGE, HK, D)] values: &mut Tensor<T, 4>,
) {
    let (t, h) = (program_id(0), program_id(1));
    let head = qkv.index::<1>(h);
    let pos = position.load_tile_or::<BT>([t], -1);
    let page = table.gather([sequence.load_tile_or::<BT>([t], -1), pos / PAGE]);
    let slot = select(pos >= 0, pos % PAGE, -1); // rows beyond the last token are not stored
    if h >= HQ + HK {
        values.scatter_rows((page, slot, h - HQ - HK), 0, head.load_tile::<BT, D>([t, 0]).cast::<T>());
    } else {
        let (c, s) = (cos.gather_rows::<BT, { D / 2 }>(pos, 0), sin.gather_rows::<BT, { D / 2 }>(pos, 0));
        let (lo, hi) = (head.load_tile::<BT, { D / 2 }>([t, 0]), head.load_tile::<BT, { D / 2 }>([t, 1]));
        let (first, second) = ((lo * c - hi * s).cast::<T>(), (hi * c + lo * s).cast::<T>());
        if h < HQ {
            let mut out = q.index_mut::<1>(h);
            out.store_tile([t, 0], first);
            out.store_tile([t, 1], second);
        } else {
            keys.scatter_rows((page, slot, h - HQ), 0, first);
            keys.scatter_rows((page, slot, h - HQ), D / 2, second);
        }
    }
}

/// Attention of one head of one sequence per program and `BM` of its queries, past `BN` keys at a time. The queries of sequence `b`
/// are rows `off[b]..off[b + 1]`, at the last of its `length[b]` positions; pages need not equal `BN`.
///
/// What earlier keys added is scaled down when a greater score appears (Milakov, Gimelshein, "Online normalizer calculation for
/// softmax", 2018).
#[titan::kernel(
    instances(T in [f16, bf16], (BM, BN, D) in [(16, 32, 16), (16, 32, 64), (16, 32, 128)]),
    grid(cdiv(longest, BM), HQ, BATCH),
)]
pub fn paged_attention<T: Float, const BM: i32, const BN: i32, const D: i32>(
    #[shape(TOK, HQ, D)] q: &Tensor<T, 3>,
    #[shape(PAGES, PAGE, HK, D)] keys: &Tensor<T, 4>,
    #[shape(PAGES, PAGE, HK, D)] values: &Tensor<T, 4>,
    #[shape(BATCH, _)] table: &Tensor<i32, 2>,
    #[shape(BATCH + 1)] off: &Tensor<i32, 1>,
    #[shape(BATCH)] length: &Tensor<i32, 1>,
    #[shape(TOK, HQ, D)] out: &mut Tensor<T, 3>,
    longest: i32,
    scale: f32,
) {
    let (m, h, b) = (program_id(0), program_id(1), program_id(2));
    let q = q.index::<1>(h).segment(off, b);
    let (n_q, n_kv) = (q.dim(0), length.get([b]));
    if m * BM >= n_q {
        return;
    }
    let hk = h / (HQ / HK);
    let q = q.load_tile::<BM, D>([m, 0]);
    let q_pos = iota::<BM>() + m * BM + (n_kv - n_q);
    let end = n_kv.min(n_kv - n_q + (m + 1) * BM);

    let mut top = Tile::<f32, BM>::full(f32::NEG_INFINITY);
    let mut sum = Tile::<f32, BM>::zeros();
    let mut acc = Tile::<f32, BM, D>::zeros();
    for j in pipelined(0..cdiv(end, BN)) {
        let k_pos = iota::<BN>() + j * BN;
        let page = table.gather([Tile::<i32, BN>::full(b), k_pos / PAGE]);
        let slot = select(k_pos < n_kv, k_pos % PAGE, -1); // past the end: zeros, not the page's contents
        let k = keys.gather_rows::<BN, D>((page, slot, hk), 0);
        let v = values.gather_rows::<BN, D>((page, slot, hk), 0);
        let s = mma(q, k.t(), Tile::<f32, BM, BN>::zeros()) * (scale * std::f32::consts::LOG2_E);
        let seen = (k_pos < n_kv).broadcast::<0, BM>() & (q_pos.col() >= k_pos.row());
        let s = select(seen, s, f32::NEG_INFINITY);
        let new = top.max(s.reduce_max::<1>());
        let p = (s - new.col()).exp2();
        let fix = (top - new).exp2();
        sum = sum * fix + p.reduce_sum::<1>();
        acc = mma(p.cast::<T>(), v, acc * fix.col());
        top = new;
    }
    out.index_mut::<1>(h).segment_mut(off, b).store_tile([m, 0], (acc / sum.col()).cast());
}

/// `y = silu(gate) · up`; `both` has the gate first.
#[titan::kernel(instances(T in [f16, bf16], (BT, W) in [(8, 128)]), grid(cdiv(TOK, BT), cdiv(F, W)))]
pub fn swiglu<T: Float, const BT: i32, const W: i32>(
    #[shape(TOK, 2, F)] both: &Tensor<f32, 3>,
    #[shape(TOK, F)] y: &mut Tensor<T, 2>,
) {
    let at = [program_id(0), program_id(1)];
    let gate = both.index::<1>(0).load_tile::<BT, W>(at);
    let up = both.index::<1>(1).load_tile::<BT, W>(at);
    y.store_tile(at, (gate * gate.sigmoid() * up).cast());
}

/// The index of the greatest logit of each row, the lowest among equals; one row per program, `W` logits at a time.
#[titan::kernel(instances(W in [256]), grid(BATCH))]
pub fn argmax<const W: i32>(#[shape(BATCH, V)] logits: &Tensor<f32, 2>, #[shape(BATCH)] token: &mut Tensor<i32, 1>) {
    let b = program_id(0);
    let row = logits.index::<0>(b);
    let (mut best, mut at) = (f32::NEG_INFINITY, 0);
    for i in 0..cdiv(V, W) {
        let (greatest, index) = row.load_tile_or::<W>([i], f32::NEG_INFINITY).argmax::<0>();
        if greatest > best {
            best = greatest;
            at = index + i * W;
        }
    }
    token.set([b], at);
}
