//! Arithmetic on two numbers by one instruction: random operations on the words of loads, and sums of them, in both ways.

use crate::kernels::both::Launch;
use crate::launch::Ready;
use crate::machine::Rng;
use crate::tensor::Tensor;
use titan_amd::codegen::machine_ir::Inst;
use titan_core::ir::{Elem, Pred};
use titan_core::lane::{Builder, FloatBin, FloatTy, Func, OpKind, Shuffle, Space, Ty, Value};
use titan_core::launch::abi::Slot;

const THREADS: i32 = 64;
/// The words that each thread loads, and those that it stores.
const WORDS: i32 = 32;
const RESULTS: i32 = 8;

/// The address of a thread's part of a parameter.
fn address(b: &mut Builder, slot: u32, words: i32) -> Value {
    let (thread, bytes) = (b.one(OpKind::ThreadId, &[]), b.i32(4 * words));
    let offset = b.one(OpKind::MulWide { signed: false }, &[thread, bytes]);
    let base = b.one(OpKind::Slot(slot), &[]);
    b.add(base, offset)
}

fn add(b: &mut Builder, x: Value, y: Value) -> Value {
    b.one(OpKind::Float(FloatBin::Add, FloatTy::F32), &[x, y])
}

/// The sum of some values, as a tree.
fn sum(b: &mut Builder, values: &[Value]) -> Value {
    match values {
        [] => b.i32(0),
        [one] => *one,
        _ => {
            let (low, high) = values.split_at(values.len() / 2);
            let (low, high) = (sum(b, low), sum(b, high));
            add(b, low, high)
        }
    }
}

/// Operations on adjacent values, mostly by factors that several of them have in common.
fn adjacent(b: &mut Builder, rng: &mut Rng, values: &mut [Value], factors: &[Value]) {
    let (common, other) = (rng.of(factors), rng.of(factors));
    let kind = rng.below(3);
    for at in 0..values.len() {
        let x = values[at];
        let by = match rng.below(12) {
            0 => rng.of(factors),
            1 => values[rng.below(values.len() as u32) as usize],
            _ => common,
        };
        values[at] = match kind {
            0 => b.one(OpKind::Float(FloatBin::Mul, FloatTy::F32), &[x, by]),
            1 => add(b, x, by),
            _ => b.one(OpKind::Fma(FloatTy::F32), &[x, by, other]),
        };
    }
}

fn function(rng: &mut Rng) -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("pairs", slots, THREADS as u32, 64);
    let from = address(&mut b, 0, WORDS);
    let to = address(&mut b, 1, RESULTS);
    let scalar = b.one(OpKind::Slot(2), &[]);
    let mut values = Vec::new();
    for n in 0..WORDS / 4 {
        let load = OpKind::Load { space: Space::Global, bytes: 4, n: 4, offset: 16 * n, masked: false };
        values.extend(b.op(load, &[from]));
    }
    let mut factors = vec![scalar, values[0], values[5], values[6]];
    let (limit, thread) = (b.i32(40), b.one(OpKind::ThreadId, &[]));
    let cond = b.cmp_u(Pred::Lt, thread, limit);
    for _ in 0..3 {
        let first = rng.below(4) as usize * 8;
        adjacent(&mut b, rng, &mut values[first..first + 8], &factors);
        if rng.below(2) == 0 {
            // Lanes that are not active keep what they have.
            let open = b.begin_if(cond, &[Ty::B32, Ty::B32]);
            let mut open = open;
            let mut own = values[first..first + 8].to_vec();
            adjacent(&mut b, rng, &mut own, &factors);
            let both = [sum(&mut b, &own[..4]), sum(&mut b, &own[4..])];
            b.terminate(OpKind::Yield, &both);
            b.begin_else(&mut open);
            b.terminate(OpKind::Yield, &[values[first], values[first + 3]]);
            values[first..first + 2].copy_from_slice(&b.end(open));
        }
        factors.push(values[first + 2]);
    }
    let mut results = Vec::new();
    for row in values.chunks(WORDS as usize / RESULTS as usize * 2) {
        let total = sum(&mut b, row);
        let other = b.one(OpKind::Shuffle(Shuffle::Xor(1)), &[total]);
        results.push(add(&mut b, total, other));
        results.push(rng.of(row));
    }
    for (n, results) in (0..).zip(results.chunks(4)) {
        let store = OpKind::Store { space: Space::Global, bytes: 4, n: 4, offset: 16 * n, masked: false };
        b.op(store, &[&[to], results].concat());
    }
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

/// Operations in loops and branches, by factors in scalar registers that are computed there or outside; lanes leave the loops at different times.
fn nested(rng: &mut Rng) -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("pairs", slots, THREADS as u32, 64);
    let from = address(&mut b, 0, WORDS);
    let to = address(&mut b, 1, RESULTS);
    let thread = b.one(OpKind::ThreadId, &[]);
    let scalar = b.one(OpKind::Slot(2), &[]);
    let mut factors = vec![scalar];
    let sums = loops(&mut b, rng, 0, (from, thread), &mut factors, &[scalar, scalar]);
    let store = OpKind::Store { space: Space::Global, bytes: 4, n: 2, offset: 0, masked: false };
    b.op(store, &[to, sums[0], sums[1]]);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

/// A loop that carries two sums.
fn loops(
    b: &mut Builder,
    rng: &mut Rng,
    depth: u32,
    (from, thread): (Value, Value),
    factors: &mut Vec<Value>,
    init: &[Value],
) -> Vec<Value> {
    let [lo, hi, step] = [0, 1 + rng.below(3) as i32, 1].map(|n| b.i32(n));
    let (open, i, mut sums) = b.begin_for([lo, hi, step], init);
    let known = factors.len();
    let scalar = |b: &mut Builder, rng: &mut Rng, factors: &mut Vec<Value>| {
        // A number that differs between iterations, in a scalar register.
        let n = b.add_const(i, i64::from(rng.below(5)));
        let by = b.i32(1 << 20);
        let n = b.mul(n, by);
        factors.push(b.add(factors[0], n));
    };
    scalar(b, rng, factors);
    let limit = b.i32(rng.below(70) as i32);
    let cond = b.cmp_u(Pred::Lt, thread, limit);
    if rng.below(2) == 0 {
        let mut open = b.begin_if(cond, &[Ty::B32, Ty::B32]);
        scalar(b, rng, factors);
        let own = if depth < 2 {
            loops(b, rng, depth + 1, (from, thread), factors, &sums)
        } else {
            vec![add(b, sums[0], sums[1]), sums[1]]
        };
        factors.pop();
        match rng.below(3) {
            0 => b.terminate(OpKind::Break(0), &own),
            1 => b.terminate(OpKind::Continue(0), &own),
            _ => b.terminate(OpKind::Yield, &own),
        }
        b.begin_else(&mut open);
        b.terminate(OpKind::Yield, &sums);
        sums = b.end(open);
        scalar(b, rng, factors);
    }
    if depth < 2 && rng.below(2) == 0 {
        sums = loops(b, rng, depth + 1, (from, thread), factors, &sums);
    }
    let mut values = Vec::new();
    for n in 0..2 {
        let load =
            OpKind::Load { space: Space::Global, bytes: 4, n: 4, offset: 16 * (n + 2 * depth as i32), masked: false };
        values.extend(b.op(load, &[from]));
    }
    for _ in 0..2 {
        adjacent(b, rng, &mut values, factors);
    }
    if rng.below(2) == 0 {
        factors.push(values[3]);
        let [low, high] = [0, 4].map(|at| sum(b, &values[at..at + 4]));
        sums = vec![add(b, sums[0], low), add(b, sums[1], high)];
        factors.pop();
    } else {
        let total = sum(b, &values);
        sums[0] = b.one(OpKind::Fma(FloatTy::F32), &[sums[0], scalar_of(factors), total]);
        sums[1] = b.one(OpKind::Fma(FloatTy::F32), &[sums[1], scalar_of(factors), values[5]]);
    }
    factors.truncate(known);
    b.terminate(OpKind::Continue(0), &sums);
    b.end(open)
}

fn scalar_of(factors: &[Value]) -> Value {
    factors[factors.len() - 1]
}

/// Runs what is made of random functions on random numbers, and compares it with their evaluation. The numbers of packed instructions of each kind,
/// and of those on single numbers.
fn compared(function: fn(&mut Rng) -> Func, number: fn(&mut Rng) -> f32) -> ([usize; 3], usize) {
    let (mut pairs, mut single) = ([0; 3], 0);
    for seed in 0..test_depth::cases(2000, 120) {
        let mut rng = Rng::new(seed as u64);
        let func = function(&mut rng);
        let ready = Ready::new(&func).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let insts = ready.emitted.code.order.iter().flat_map(|block| ready.emitted.code.insts(*block)).map(Inst::name);
        for name in insts {
            for (count, packed) in pairs.iter_mut().zip(["v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32"]) {
                *count += usize::from(name == packed);
            }
            single += usize::from(matches!(name, "v_add_f32" | "v_mul_f32" | "v_fma_f32"));
        }
        let tensor = |bytes: Vec<u8>| {
            let extents = vec![bytes.len() as u32 / 4];
            Some(Tensor { elem: Elem::F32, extents, strides: vec![1], bytes, skip: 0 })
        };
        let input = (0..THREADS * WORDS).flat_map(|_| number(&mut rng).to_le_bytes()).collect();
        let tensors = [tensor(input), tensor(vec![0; (4 * THREADS * RESULTS) as usize]), None];
        let launch = Launch { grid: [1; 3], tensors: &tensors, scalar: &|_| 0.75f32.to_bits().into() };
        let wanted = launch.evaluated(&func).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let found = launch.emulated(&func, &ready, seed).unwrap_or_else(|e| panic!("{seed}: {e}"));
        assert_eq!(launch.difference(&found, &wanted), None, "{seed}");
    }
    (pairs, single)
}

#[test]
fn pairs_of_loops_compute_what_single_operations_do() {
    let (pairs, single) = compared(nested, |rng| f32::from(rng.below(4001) as u16) / 370.0 - 5.0);
    let all: usize = pairs.iter().sum();
    assert!(all > single / 8, "{pairs:?} pairs, {single} single operations");
}

#[test]
fn pairs_compute_what_single_operations_do() {
    let (pairs, single) = compared(function, |rng| {
        let special = [f32::NAN, f32::INFINITY, 1e-40, -0.0, 3e38, f32::from_bits(0x7f80_0001)];
        let ordinary = f32::from(rng.below(4001) as u16) / 37.0 - 50.0;
        if rng.below(60) == 0 { rng.of(&special) } else { ordinary }
    });
    let all: usize = pairs.iter().sum();
    assert!(all > single / 8 && pairs.iter().all(|n| *n > single / 80), "{pairs:?} pairs, {single} single operations");
}
