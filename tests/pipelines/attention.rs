//! Attention whose two MMAs overlap.

use crate::{Random, close, device};
use titan::prelude::*;

/// `O = softmax(Q · Kᵀ) · V`, not scaled. `Q · K[j + 1]` is in flight before `P[j] · V[j]` starts, and each stage is released when
/// its MMA has read it. The key ring is one stage ahead of the value ring, which uses single `acquire`s and `ready`s.
#[titan::kernel(
    instances((BM, BN, HD) in [(8, 16, 16), (64, 128, 128)]),
    roles(producer: 1 warp, consumer: 1 warpgroup),
    grid(cdiv(S, BM)),
    require(S > 0, D == HD),
)]
fn attention_ws<const BM: i32, const BN: i32, const HD: i32>(
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
            let (zero, mut acc) = (Tile::<f32, BM, BN>::zeros(), Tile::<f32, BM, HD>::zeros());
            let (mut top, mut sum) = (Tile::<f32, BM>::full(f32::NEG_INFINITY), Tile::<f32, BM>::zeros());
            let q = qs.ready().wait();
            let k0 = ks.ready().wait();
            let mut s = mma_async(q.get(), k0.get().t(), zero).wait();
            k0.release();
            for j in 0..n {
                s = select((iota::<BN>() + j * BN < S).broadcast::<0, BM>(), s, f32::NEG_INFINITY);
                let new = top.max(s.reduce_max::<1>());
                let p = (s - new.col()).exp();
                let fix = (top - new).exp();
                sum = sum * fix + p.reduce_sum::<1>();
                top = new;
                let v = vs.ready().wait();
                if j + 1 < n {
                    let k = ks.ready().wait();
                    let next = mma_async(q.get(), k.get().t(), zero);
                    let pv = mma_async_reg(p.cast::<f16>(), v.get(), acc * fix.col());
                    s = next.wait();
                    k.release();
                    acc = pv.wait();
                } else {
                    acc = mma_async_reg(p.cast::<f16>(), v.get(), acc * fix.col()).wait();
                }
                v.release();
            }
            q.release();
            o.store_tile([m, 0], (acc / sum.col()).cast());
        }
    }
}

fn attention(q: &[f16], k: &[f16], v: &[f16], [s, d]: [usize; 2]) -> Vec<f64> {
    let at = |x: &[f16], i: usize, j: usize| f64::from(x[i * d + j].to_f32());
    let mut out = vec![0.0; s * d];
    for i in 0..s {
        let scores: Vec<f64> = (0..s).map(|j| (0..d).map(|t| at(q, i, t) * at(k, j, t)).sum()).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|x| (x - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        for t in 0..d {
            out[i * d + t] = (0..s).map(|j| weights[j] * at(v, j, t)).sum::<f64>() / sum;
        }
    }
    out
}

#[test]
fn two_products_overlap() {
    let (mut random, d) = (Random(3), 16);
    // From one block of keys to more than three times round the rings, ragged or not.
    for s in [1, 15, 16, 17, 31, 33, 48, 60, 80, 97, 112] {
        let [q, k, v] = std::array::from_fn(|_| random.many::<f16>(s * d));
        let want = attention(&q, &k, &v, [s, d]);
        for (dev, launched) in [(Device::cpu(), false), (device(), true)] {
            let [q, k, v] = [&q, &k, &v].map(|x| dev.tensor(x, [s, d]).unwrap());
            let mut o = dev.full([s, d], f16::NAN).unwrap();
            if launched {
                attention_ws::<8, 16, 16>(&q, &k, &v, &mut o).sync().unwrap();
            } else {
                attention_ws::reference::<8, 16, 16>(&q, &k, &v, &mut o).unwrap();
            }
            close(&o.to_vec().unwrap(), &want, 5e-3);
        }
    }
}

#[test]
fn no_keys_are_refused() {
    let dev = Device::cpu();
    let [q, k, v] = std::array::from_fn(|_| dev.zeros::<f16, 2>([0, 16]).unwrap());
    let mut o = dev.zeros([0, 16]).unwrap();
    let error = attention_ws::reference::<8, 16, 16>(&q, &k, &v, &mut o).unwrap_err().to_string();
    assert!(error.contains("S > 0"), "{error}");
}
