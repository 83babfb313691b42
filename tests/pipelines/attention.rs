//! Attention whose two MMAs overlap, and attention by two instances in turn whose softmax runs beside an MMA: right on every device and order of
//! completion, and with loops for Hopper that NVIDIA's assembler makes no longer than they should be.

use crate::{Random, close, device, ptxas, sass};
use titan::prelude::*;

/// `O = softmax(Q · Kᵀ) · V`, not scaled. `Q · K[j + 1]` is in flight before `P[j] · V[j]` starts, and each stage is released when
/// its MMA has read it; only the last block of keys may be ragged. The key ring is one stage ahead of the value ring, which uses single `acquire`s and `ready`s.
#[titan::kernel(
    instances((BM, BN, HD) in [(8, 16, 16), (64, 128, 128)]),
    roles(producer: 1 warp, consumer: 1 warpgroup),
    grid(cdiv(S, BM)),
    require(S > 0, D == HD), allow(no_code),
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
            for _j in 0..n - 1 {
                let new = top.max(s.reduce_max::<1>());
                let weights = ((s - new.col()) * std::f32::consts::LOG2_E).exp2();
                let fix = ((top - new) * std::f32::consts::LOG2_E).exp2();
                sum = sum * fix + weights.reduce_sum::<1>();
                top = new;
                // Before the MMAs are issued, so that their operands need no registers beside what they are made of.
                let (p, scaled) = (weights.cast::<f16>(), acc * fix.col());
                let v = vs.ready().wait();
                let k = ks.ready().wait();
                let next = mma_async(q.get(), k.get().t(), zero);
                let pv = mma_async_reg(p, v.get(), scaled);
                s = next.wait();
                k.release();
                acc = pv.wait();
                v.release();
            }
            q.release();
            s = select((iota::<BN>() + (n - 1) * BN < S).broadcast::<0, BM>(), s, f32::NEG_INFINITY);
            let new = top.max(s.reduce_max::<1>());
            let weights = ((s - new.col()) * std::f32::consts::LOG2_E).exp2();
            let fix = ((top - new) * std::f32::consts::LOG2_E).exp2();
            sum = sum * fix + weights.reduce_sum::<1>();
            let v = vs.ready().wait();
            acc = mma_async_reg(weights.cast::<f16>(), v.get(), acc * fix.col()).wait();
            v.release();
            o.store_tile([m, 0], (acc / sum.col()).cast());
        }
    }
}

fn attention(q: &[f16], k: &[f16], v: &[f16], sizes: [usize; 2]) -> Vec<f64> {
    softmax(&q.iter().map(|x| x.to_f64()).collect::<Vec<_>>(), k, v, sizes)
}

fn softmax(q: &[f64], k: &[f16], v: &[f16], [s, d]: [usize; 2]) -> Vec<f64> {
    // Converted once: this loop is not optimized.
    let [k, v] = [k, v].map(|x| x.iter().map(|x| x.to_f64()).collect::<Vec<f64>>());
    let mut out = vec![0.0; s * d];
    for (q, out) in q.chunks(d).zip(out.chunks_mut(d)) {
        let scores: Vec<f64> = k.chunks(d).map(|k| q.iter().zip(k).map(|(q, k)| q * k).sum()).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|x| (x - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        for (v, weight) in v.chunks(d).zip(weights.iter().map(|weight| weight / sum)) {
            out.iter_mut().zip(v).for_each(|(out, v)| *out += weight * v);
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

/// The same with powers of two. Two warpgroups take the blocks of queries in turn ("ping-pong"), and in each of them the softmax of a step
/// runs beside the second MMA of the step before.
#[titan::kernel(
    instances((BM, BN, HD) in [(8, 16, 16), (64, 64, 128)]),
    roles(producer: 1 warp, consumer: [1 warpgroup; 2]),
    require(S > 0, D == HD), allow(no_code),
)]
fn attention_in_turn<const BM: i32, const BN: i32, const HD: i32>(
    #[shape(S, D)] q: &Tensor<f16, 2>,
    #[shape(S, D)] k: &Tensor<f16, 2>,
    #[shape(S, D)] v: &Tensor<f16, 2>,
    #[shape(S, D)] o: &mut Tensor<f16, 2>,
) {
    let n = cdiv(S, BN);
    let work = o.work::<BM, HD>();
    let qs = Ring::<Smem<f16, BM, HD>, 2>::new();
    let (ks, vs) = (Ring::<Smem<f16, BN, HD>, 4>::new(), Ring::<Smem<f16, BN, HD>, 4>::new());
    match role() {
        Role::Producer => {
            for [m, d] in work.indices() {
                qs.acquire().copy(q.tile([m, d])).commit();
                ks.acquire().copy(k.tile([0, d])).commit();
                for j in 1..n {
                    ks.acquire().copy(k.tile([j, d])).commit();
                    vs.acquire().copy(v.tile([j - 1, d])).commit();
                }
                vs.acquire().copy(v.tile([n - 1, d])).commit();
            }
        }
        Role::Consumer => {
            for out in work.tiles() {
                let zero = Tile::<f32, BM, BN>::zeros();
                let q = qs.ready().wait();
                let first = ks.ready().wait();
                let s = mma_async(q.get(), first.get().t(), zero).wait();
                first.release();
                let s = select((iota::<BN>() < S).broadcast::<0, BM>(), s, f32::NEG_INFINITY);
                let mut top = s.reduce_max::<1>();
                let mut p = (s - top.col()).exp2();
                let mut sum = p.reduce_sum::<1>();
                let mut acc = Tile::<f32, BM, HD>::zeros();
                for j in 1..n {
                    let k = ks.ready().wait();
                    let next = mma_async(q.get(), k.get().t(), zero);
                    let v = vs.ready().wait();
                    let pv = mma_async_reg(p.cast::<f16>(), v.get(), acc);
                    let s = next.wait();
                    k.release();
                    let s = select((iota::<BN>() + j * BN < S).broadcast::<0, BM>(), s, f32::NEG_INFINITY);
                    let new = top.max(s.reduce_max::<1>());
                    p = (s - new.col()).exp2();
                    let fix = (top - new).exp2();
                    sum = sum * fix + p.reduce_sum::<1>();
                    top = new;
                    acc = pv.wait() * fix.col();
                    v.release();
                }
                q.release();
                let v = vs.ready().wait();
                acc = mma_async_reg(p.cast::<f16>(), v.get(), acc).wait();
                v.release();
                out.store((acc / sum.col()).cast());
            }
        }
    }
}

/// Queries with four numbers each, keys and values of small whole numbers: scores are whole numbers from −4 to 4, so powers of two and all sums of
/// them are exact.
fn whole_numbers(s: usize, d: usize) -> [Vec<f16>; 3] {
    let mut random = Random(5);
    let mut one = || f16::from_f64((random.next() * 1.5).round());
    let q = (0..s * d).map(|i| {
        let (row, column) = (i / d, i % d);
        let there = (0..4).any(|c| (row * 7 + c * 5) % d == column);
        f16::from_f32(if !there {
            0.0
        } else if (row + column).is_multiple_of(3) {
            -1.0
        } else {
            1.0
        })
    });
    [q.collect(), (0..s * d).map(|_| one()).collect(), (0..s * d).map(|_| one()).collect()]
}

type Attention = for<'a> fn([&'a Tensor<f16, 2>; 3], &'a mut Tensor<f16, 2>) -> titan::Launch<'a>;

/// A launch on a device; `code` is the target of what runs there.
#[track_caller]
fn launched(dev: &Device, all: &[Vec<f16>; 3], [s, d]: [usize; 2], kernel: Attention, code: &str) -> Vec<f16> {
    let [q, k, v] = [0, 1, 2].map(|i| dev.tensor(&all[i], [s, d]).expect("there is memory"));
    let mut o = dev.full([s, d], f16::NAN).expect("there is memory");
    if !code.is_empty() {
        assert_eq!(kernel([&q, &k, &v], &mut o).choice().expect("it fits").expect("it has programs").target, code);
    }
    kernel([&q, &k, &v], &mut o).sync().expect("it runs");
    o.to_vec().expect("it is read")
}

type Reference = fn([&Tensor<f16, 2>; 3], &mut Tensor<f16, 2>) -> titan::Result<()>;

/// What the reference gives, which is right.
fn referred(all: &[Vec<f16>; 3], [s, d]: [usize; 2], reference: Reference) -> Vec<f16> {
    let dev = Device::cpu();
    let [q, k, v] = [0, 1, 2].map(|i| dev.tensor(&all[i], [s, d]).expect("there is memory"));
    let mut o = dev.full([s, d], f16::NAN).expect("there is memory");
    reference([&q, &k, &v], &mut o).expect("it runs");
    let got = o.to_vec().expect("it is read");
    // Powers of two of the scores are powers of e of the scores times ln 2.
    let q: Vec<f64> = all[0].iter().map(|x| x.to_f64() * std::f64::consts::LN_2).collect();
    close(&got, &softmax(&q, &all[1], &all[2], [s, d]), 2e-3);
    got
}

#[test]
fn instances_in_turn_are_exact() {
    let mut devices = vec![Device::cpu(), device()];
    #[cfg(feature = "simulator")]
    {
        use titan::sim::{Completion, Options};
        let orders = [(Completion::Late, None), (Completion::Early, None), (Completion::Seeded(3), Some(4))];
        let of = |(completion, seed)| Device::simulator(Options { completion, seed, ..Options::default() });
        devices.extend(orders.map(of));
    }
    #[cfg(feature = "emulator")]
    devices.push(Device::emulator("sm_80").unwrap());
    // From one block to more than the programs have turns, ragged or not; in the quick depth, three devices for each.
    for (nth, s) in [1, 8, 15, 16, 17, 40, 60, 112].into_iter().enumerate() {
        let all = whole_numbers(s, 16);
        let want = referred(&all, [s, 16], |[q, k, v], o| attention_in_turn::reference::<8, 16, 16>(q, k, v, o));
        let is_meant = |which: usize| test_depth::is_full() || which < 2 || which % 4 == nth % 4;
        for (_, dev) in devices.iter().enumerate().filter(|(which, _)| is_meant(*which)) {
            let got = launched(dev, &all, [s, 16], |[q, k, v], o| attention_in_turn::<8, 16, 16>(q, k, v, o), "");
            assert_eq!(got, want, "{s} on {dev}");
        }
    }
}

#[cfg(feature = "emulator")]
mod named_devices {
    use super::*;

    /// Emulators of Hopper on which copies and MMAs complete as late, as early and as randomly as they may, watched by the sanitizer; in the
    /// quick depth one of them, in turn.
    fn hoppers(nth: usize) -> Vec<Device> {
        use titan::emu::{Completion, Options, Schedule};
        let of = |completion, schedule| {
            let options = Options { completion, schedule, sanitize: true, ..Options::default() };
            Device::emulator_with("sm_90a", options).expect("sm_90a is emulated")
        };
        let all = [
            of(Completion::Late, Schedule::InTurn),
            of(Completion::Early, Schedule::InTurn),
            of(Completion::Seeded(3), Schedule::Seeded(4)),
        ];
        if test_depth::is_full() { all.into() } else { vec![all[nth % 3].clone()] }
    }

    #[test]
    fn instances_in_turn_are_exact_on_hopper() {
        // One block, blocks of which some are ragged, and more blocks than the six programs of an emulated device.
        for (nth, s) in [40, 64, 150, 460].into_iter().enumerate() {
            let all = whole_numbers(s, 128);
            let want = referred(&all, [s, 128], |[q, k, v], o| attention_in_turn::reference::<64, 64, 128>(q, k, v, o));
            for dev in hoppers(nth) {
                let kernel: Attention = |[q, k, v], o| attention_in_turn::<64, 64, 128>(q, k, v, o);
                assert_eq!(launched(&dev, &all, [s, 128], kernel, "sm_90a"), want, "{s}");
            }
        }
    }

    #[test]
    fn two_products_overlap_on_hopper() {
        let (mut random, d) = (Random(3), 128);
        for (nth, s) in [50, 128, 300].into_iter().enumerate() {
            let all: [Vec<f16>; 3] = std::array::from_fn(|_| random.many::<f16>(s * d));
            let want = attention(&all[0], &all[1], &all[2], [s, d]);
            for dev in hoppers(nth) {
                let kernel: Attention = |[q, k, v], o| attention_ws::<64, 128, 128>(q, k, v, o);
                close(&launched(&dev, &all, [s, d], kernel, "sm_90a"), &want, 5e-3);
            }
        }
    }
}

/// Of a kernel: the MMAs of its loop, instructions, cycles for which a warp is kept from its next one, and how many such loops there are.
const LOOPS: [(&str, usize, usize, u32, usize); 2] =
    [("attention_in_turn::<64, 64, 128>", 12, 345, 700, 4), ("attention_ws::<64, 128, 128>", 16, 530, 1060, 1)];

#[test]
fn loops_for_hopper_pass() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    if !sass::is_measured(&ptxas) {
        return;
    }
    let kernels = titan::kernels().unwrap();
    let mut wrong = Vec::new();
    for (name, mmas, instructions, stalled, number) in LOOPS {
        let kernel = kernels.iter().find(|k| k.name == name).unwrap();
        let variant = kernel.variants.iter().find(|v| v.target == "sm_90a").unwrap();
        let text = std::str::from_utf8(&variant.code).unwrap();
        let usages = ptxas::assemble(&ptxas, "sm_90a", text).unwrap_or_else(|said| panic!("{name}: {said}"));
        // A few scalars may lie in local memory outside of the loops; in these, it is looked for below.
        assert!(usages.iter().all(|usage| usage.spilled <= 64), "{name}: {usages:?}");
        let code = sass::assemble(&ptxas, "sm_90a", text).unwrap_or_else(|said| panic!("{name}: {said}"));
        let loops = code.shortest(&sass::ALL_HGMMA, mmas);
        assert_eq!(loops.len(), number, "{name}: loops with {mmas} MMAs");
        for found in loops {
            let waits: u32 = found.iter().map(|i| sass::stall(*i)).sum();
            let left: Vec<u128> = found.iter().filter_map(|i| sass::left_in_flight(*i)).collect();
            ptxas::say(&format!("{name}: {} instructions, stalled for {waits}, waits {left:?}", found.len()));
            if found.len() > instructions || waits > stalled || left != [1, 0] {
                wrong.push(format!("{name}: {} instructions, stalled for {waits}, waits {left:?}", found.len()));
            }
            for (slow, opcode) in sass::SLOW {
                assert_eq!(sass::count(found, &[opcode]), 0, "{name}: {slow} in the loop");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
