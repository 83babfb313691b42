//! Attention by rings whose queries are held across the loop over keys, with masks on the last blocks of keys.

use crate::{Random, close, device};
use titan::prelude::*;

/// `O = softmax(Q · Kᵀ) · V`, not scaled. One stage of queries is held while all keys pass; keys beyond the end are masked.
#[titan::kernel(
    instances((BM, BN, HD) in [(16, 16, 16), (64, 64, 64)]),
    roles(producer: 1 warp, consumer: 1 warpgroup),
    grid(cdiv(S, BM)),
    require(D == HD), allow(no_code),
)]
fn attention_held<const BM: i32, const BN: i32, const HD: i32>(
    #[shape(S, D)] q: &Tensor<f16, 2>,
    #[shape(S, D)] k: &Tensor<f16, 2>,
    #[shape(S, D)] v: &Tensor<f16, 2>,
    #[shape(S, D)] o: &mut Tensor<f16, 2>,
) {
    let (m, n) = (program_id(0), cdiv(S, BN));
    let qs = Ring::<Smem<f16, BM, HD>, 1>::new();
    let (ks, vs) = (Ring::<Smem<f16, BN, HD>, 2>::new(), Ring::<Smem<f16, BN, HD>, 2>::new());
    match role() {
        Role::Producer => {
            qs.acquire().copy(q.tile([m, 0])).commit();
            for j in 0..n {
                ks.acquire().copy(k.tile([j, 0])).commit();
                vs.acquire().copy(v.tile([j, 0])).commit();
            }
        }
        Role::Consumer => {
            let q = qs.ready().wait();
            let (mut top, mut sum) = (Tile::<f32, BM>::full(f32::NEG_INFINITY), Tile::<f32, BM>::zeros());
            let mut acc = Tile::<f32, BM, HD>::zeros();
            for j in 0..n {
                let k = ks.ready().wait();
                let s = mma_async(q.get(), k.get().t(), Tile::<f32, BM, BN>::zeros()).wait();
                k.release();
                let s = select((iota::<BN>() + j * BN < S).broadcast::<0, BM>(), s, f32::NEG_INFINITY);
                let new = top.max(s.reduce_max::<1>());
                let p = (s - new.col()).exp();
                let fix = (top - new).exp();
                sum = sum * fix + p.reduce_sum::<1>();
                top = new;
                let v = vs.ready().wait();
                acc = mma_async_reg(p.cast::<f16>(), v.get(), acc * fix.col()).wait();
                v.release();
            }
            q.release();
            o.store_tile([m, 0], (acc / sum.col()).cast());
        }
    }
}

/// The same, where a query sees the keys up to its own only.
#[titan::kernel(
    instances((BM, BN, HD) in [(16, 16, 16), (64, 64, 64)]),
    roles(producer: 1 warp, consumer: 1 warpgroup),
    grid(cdiv(S, BM)),
    require(D == HD), allow(no_code),
)]
fn causal_held<const BM: i32, const BN: i32, const HD: i32>(
    #[shape(S, D)] q: &Tensor<f16, 2>,
    #[shape(S, D)] k: &Tensor<f16, 2>,
    #[shape(S, D)] v: &Tensor<f16, 2>,
    #[shape(S, D)] o: &mut Tensor<f16, 2>,
) {
    let m = program_id(0);
    let n = cdiv((m + 1) * BM, BN).min(cdiv(S, BN));
    let qs = Ring::<Smem<f16, BM, HD>, 1>::new();
    let (ks, vs) = (Ring::<Smem<f16, BN, HD>, 2>::new(), Ring::<Smem<f16, BN, HD>, 2>::new());
    match role() {
        Role::Producer => {
            qs.acquire().copy(q.tile([m, 0])).commit();
            for j in 0..n {
                ks.acquire().copy(k.tile([j, 0])).commit();
                vs.acquire().copy(v.tile([j, 0])).commit();
            }
        }
        Role::Consumer => {
            let q = qs.ready().wait();
            let (mut top, mut sum) = (Tile::<f32, BM>::full(f32::NEG_INFINITY), Tile::<f32, BM>::zeros());
            let mut acc = Tile::<f32, BM, HD>::zeros();
            for j in 0..n {
                let k = ks.ready().wait();
                let s = mma_async(q.get(), k.get().t(), Tile::<f32, BM, BN>::zeros()).wait();
                k.release();
                let key = (iota::<BN>() + j * BN).broadcast::<0, BM>();
                let query = (iota::<BM>() + m * BM).broadcast::<1, BN>();
                let s = select(key <= query, s, f32::NEG_INFINITY);
                let new = top.max(s.reduce_max::<1>());
                let p = (s - new.col()).exp();
                let fix = (top - new).exp();
                sum = sum * fix + p.reduce_sum::<1>();
                top = new;
                let v = vs.ready().wait();
                acc = mma_async_reg(p.cast::<f16>(), v.get(), acc * fix.col()).wait();
                v.release();
            }
            q.release();
            o.store_tile([m, 0], (acc / sum.col()).cast());
        }
    }
}

/// Attention without softmax, over plain tensors, where a query sees the keys up to its own only. All programs load the same keys, so that
/// clusters share them.
#[titan::kernel(instances((BM, BN, HD) in [(16, 16, 16), (64, 64, 64)]), grid(cdiv(S, BM)), require(D == HD))]
fn causal_sums<const BM: i32, const BN: i32, const HD: i32>(
    #[shape(S, D)] q: &Tensor<f16, 2>,
    #[shape(S, D)] k: &Tensor<f16, 2>,
    #[shape(S, D)] v: &Tensor<f16, 2>,
    #[shape(S, D)] o: &mut Tensor<f32, 2>,
) {
    let m = program_id(0);
    let qt = q.load_tile::<BM, HD>([m, 0]);
    let mut acc = Tile::<f32, BM, HD>::zeros();
    for j in pipelined(0..cdiv(S, BN)) {
        let s = mma(qt, k.load_tile::<BN, HD>([j, 0]).t(), Tile::<f32, BM, BN>::zeros());
        let key = (iota::<BN>() + j * BN).broadcast::<0, BM>();
        let query = (iota::<BM>() + m * BM).broadcast::<1, BN>();
        let p = select(key <= query, s, 0.0);
        acc = mma(p.cast::<f16>(), v.load_tile::<BN, HD>([j, 0]), acc);
    }
    o.store_tile([m, 0], acc);
}

fn attention(q: &[f16], k: &[f16], v: &[f16], [s, d]: [usize; 2], causal: bool) -> Vec<f64> {
    let at = |x: &[f16], i: usize, j: usize| f64::from(x[i * d + j].to_f32());
    let row = |i: usize| {
        let keys = if causal { i + 1 } else { s };
        let scores: Vec<f64> = (0..keys).map(|j| (0..d).map(|t| at(q, i, t) * at(k, j, t)).sum()).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|x| (x - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        (0..d).map(|t| (0..keys).map(|j| weights[j] * at(v, j, t)).sum::<f64>() / sum).collect::<Vec<_>>()
    };
    (0..s).flat_map(row).collect()
}

#[test]
fn a_stage_held_across_a_masked_loop_gives_what_plain_loops_give() {
    let (mut random, d) = (Random(7), 16);
    for s in [1, 15, 16, 17, 33, 64, 70] {
        let [q, k, v] = std::array::from_fn(|_| random.many::<f16>(s * d));
        for causal in [false, true] {
            let want = attention(&q, &k, &v, [s, d], causal);
            for dev in [Device::cpu(), device()] {
                let [q, k, v] = [&q, &k, &v].map(|x| dev.tensor(x, [s, d]).unwrap());
                let mut o = dev.full([s, d], f16::NAN).unwrap();
                if causal {
                    causal_held::<16, 16, 16>(&q, &k, &v, &mut o).sync().unwrap();
                } else {
                    attention_held::<16, 16, 16>(&q, &k, &v, &mut o).sync().unwrap();
                }
                close(&o.to_vec().unwrap(), &want, 5e-3);
            }
        }
    }
}

#[test]
fn a_causal_mask_over_plain_tensors_gives_what_plain_loops_give() {
    let (mut random, d) = (Random(9), 16);
    for s in [1, 16, 17, 64, 70] {
        let [q, k, v] = std::array::from_fn(|_| random.many::<f16>(s * d));
        let at = |x: &[f16], i: usize, j: usize| f64::from(x[i * d + j].to_f32());
        let weight = |i: usize, j: usize| (0..d).map(|t| at(&q, i, t) * at(&k, j, t)).sum::<f64>();
        let want: Vec<f64> =
            (0..s * d).map(|n| (0..=n / d).map(|j| weight(n / d, j) * at(&v, j, n % d)).sum()).collect();
        for dev in [Device::cpu(), device()] {
            let [q, k, v] = [&q, &k, &v].map(|x| dev.tensor(x, [s, d]).unwrap());
            let mut o = dev.full([s, d], f32::NAN).unwrap();
            causal_sums::<16, 16, 16>(&q, &k, &v, &mut o).sync().unwrap();
            close(&o.to_vec().unwrap(), &want, 5e-3);
        }
    }
}
