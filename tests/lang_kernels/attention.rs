//! Causal flash attention with grouped queries, a paged cache and packed sequences.

use titan::lang::{Shared, Tensor, Tile, ops, run};
use titan::prelude::*;

use crate::{Random, close, memory, tensor};

struct Cache {
    keys: Tensor<f16, 4>,
    values: Tensor<f16, 4>,
    table: Tensor<i32, 2>,
    q_off: Tensor<i32, 1>,
    kv_len: Tensor<i32, 1>,
}

fn paged_attention<const BM: i32, const BN: i32, const D: i32, const CAUSAL: bool>(
    q: &Tensor<f16, 3>,
    Cache { keys: kc, values: vc, table, q_off, kv_len }: &Cache,
    out: &mut Tensor<f16, 3>,
    scale: f32,
) {
    let (heads, kv_heads, page_len) = (q.dim(1), kc.dim(2), kc.dim(1));
    let (m, h, b) = (program_id(0), program_id(1), program_id(2));
    let q = q.index::<1>(h).segment(q_off, b);
    let (n_q, n_kv) = (q.dim(0), kv_len.get([b]));
    if ops::ge(ops::mul(m, BM), n_q) {
        return;
    }
    let hk = ops::div(h, ops::div(heads, kv_heads));
    let q = q.load_tile::<BM, D>([m, 0]);
    let q_pos = ops::add(ops::add(iota::<BM>(), ops::mul(m, BM)), ops::sub(n_kv, n_q));
    let end = if CAUSAL { n_kv.min(ops::add(ops::sub(n_kv, n_q), ops::mul(ops::add(m, 1), BM))) } else { n_kv };

    let mut top = Tile::<f32, D1<BM>>::full(f32::NEG_INFINITY);
    let mut sum = Tile::<f32, D1<BM>>::zeros();
    let mut acc = Tile::<f32, D2<BM, D>>::zeros();
    for j in pipelined(0..cdiv(end, BN)) {
        let k_pos = ops::add(iota::<BN>(), ops::mul(j, BN));
        let page = table.gather([Tile::<i32, D1<BN>>::full(b), ops::div(k_pos, page_len)]);
        let slot = select(ops::lt(k_pos, n_kv), ops::rem(k_pos, page_len), -1);
        let k = kc.gather_rows::<BN, D>((page, slot, hk), 0);
        let v = vc.gather_rows::<BN, D>((page, slot, hk), 0);
        let s = ops::mul(mma(q, k.t(), Tile::<f32, D2<BM, BN>>::zeros()), ops::mul(scale, std::f32::consts::LOG2_E));
        let mut seen = ops::lt(k_pos, n_kv).broadcast::<0, BM>();
        if CAUSAL {
            seen = ops::and(seen, ops::ge(q_pos.col(), k_pos.row()));
        }
        let s = select(seen, s, f32::NEG_INFINITY);
        let new = top.max(s.reduce_max::<1>());
        let p = ops::sub(s, new.col()).exp2();
        let fix = ops::sub(top, new).exp2();
        sum = ops::add(ops::mul(sum, fix), p.reduce_sum::<1>());
        acc = mma(p.cast::<f16>(), v, ops::mul(acc, fix.col()));
        top = new;
    }
    out.index_mut::<1>(h).segment_mut(q_off, b).store_tile([m, 0], ops::div(acc, sum.col()).cast());
}

const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const DIM: usize = 16;
const PAGE: usize = 4;
const PAGES: usize = 12;
const OFFSETS: [usize; 3] = [0, 5, 14];
const LENGTHS: [usize; 2] = [11, 9];
const TABLE: [usize; 8] = [7, 2, 9, 0, 4, 1, 11, 0];

fn check<const CAUSAL: bool>() {
    let mut random = Random(23);
    let cached = PAGES * PAGE * KV_HEADS * DIM;
    let qs: Vec<f16> = random.many(OFFSETS[2] * HEADS * DIM);
    let (ks, vs): (Vec<f16>, Vec<f16>) = (random.many(cached), random.many(cached));
    let ints = |v: &[usize]| v.iter().map(|x| i32::try_from(*x).expect("small")).collect::<Vec<_>>();
    let cache = Cache {
        keys: tensor(&ks, [12, 4, 2, 16]),
        values: tensor(&vs, [12, 4, 2, 16]),
        table: tensor(&ints(&TABLE), [2, 4]),
        q_off: tensor(&ints(&OFFSETS), [3]),
        kv_len: tensor(&ints(&LENGTHS), [2]),
    };
    let q = tensor(&qs, [14, 4, 16]);
    let out = Shared::new(vec![f16::NAN; qs.len()]);
    let mut o = memory(out.clone(), [14, 4, 16]);
    run([2, 4, 2], || paged_attention::<8, 8, 16, CAUSAL>(&q, &cache, &mut o, 0.25)).expect("no trap");

    let mut want = Vec::new();
    for row in 0..OFFSETS[2] {
        let seq = usize::from(row >= OFFSETS[1]);
        let seen = LENGTHS[seq] - (OFFSETS[seq + 1] - OFFSETS[seq]) + (row - OFFSETS[seq]) + 1;
        let seen = if CAUSAL { seen } else { LENGTHS[seq] };
        for head in 0..HEADS {
            let place = |j: usize| {
                let slot = TABLE[seq * 4 + j / PAGE] * PAGE + j % PAGE;
                (slot * KV_HEADS + head / (HEADS / KV_HEADS)) * DIM
            };
            let query = &qs[(row * HEADS + head) * DIM..][..DIM];
            let score = |j: usize| {
                let key = &ks[place(j)..][..DIM];
                query.iter().zip(key).map(|(a, b)| a.to_f64() * b.to_f64()).sum::<f64>() * 0.25
            };
            let weights: Vec<f64> = (0..seen).map(|j| score(j).exp()).collect();
            let sum: f64 = weights.iter().sum();
            let value = |e: usize| (0..seen).map(|j| weights[j] / sum * vs[place(j) + e].to_f64()).sum();
            want.extend((0..DIM).map(value).collect::<Vec<f64>>());
        }
    }
    close(&out, &want, 2e-3);
}

#[test]
fn paged_attention_agrees_with_plain_softmax() {
    check::<true>();
    check::<false>();
}
