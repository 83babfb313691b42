//! Words of accumulators that a loop changes one by one before it adds to them: where they are, two by one instruction; and conversions to `bf16`
//! behind a product, of numbers whose sums it overwrote.

use crate::kernels::both::Launch;
use crate::launch::Ready;
use crate::machine::Rng;
use crate::tensor::Tensor;
use titan_amd::codegen::machine_ir::Inst;
use titan_core::ir::Elem;
use titan_core::lane::{Builder, FloatBin, FloatTy, FloatUn, Func, MmaAtom, Num, OpKind, Space, Value};
use titan_core::launch::abi::Slot;

const THREADS: u32 = 64;
/// The bytes of a thread in each tensor.
const BYTES: u32 = 64;
const ATOM: MmaAtom = MmaAtom { m: 16, n: 16, k: 16, a: Elem::F16, b: Elem::F16, acc: Elem::F32 };

fn address(b: &mut Builder, slot: u32) -> Value {
    let (thread, bytes) = (b.one(OpKind::ThreadId, &[]), b.i32(BYTES.cast_signed()));
    let offset = b.one(OpKind::MulWide { signed: false }, &[thread, bytes]);
    let base = b.one(OpKind::Slot(slot), &[]);
    b.add(base, offset)
}

fn float(b: &mut Builder, bin: FloatBin, x: Value, y: Value) -> Value {
    b.one(OpKind::Float(bin, FloatTy::F32), &[x, y])
}

/// The words of an accumulator, each computed of the one in its place, and of what several of them have in common, or of others.
fn scaled(b: &mut Builder, rng: &mut Rng, acc: &[Value], factors: &[Value]) -> Vec<Value> {
    let (common, other, kind) = (rng.of(factors), rng.of(factors), rng.below(4));
    let often = rng.of(&[2, 12]);
    let mut made: Vec<Value> = Vec::new();
    for (at, x) in acc.iter().enumerate() {
        let by = match rng.below(often) {
            0 => rng.of(factors),
            1 => made.last().copied().unwrap_or(common),
            2 => acc[(at + 1) % acc.len()],
            _ => common,
        };
        made.push(match kind {
            0 => float(b, FloatBin::Mul, *x, by),
            1 => float(b, FloatBin::Add, by, *x),
            2 => b.one(OpKind::Fma(FloatTy::F32), &[*x, by, other]),
            _ => b.one(OpKind::Fma(FloatTy::F32), &[by, other, *x]),
        });
    }
    made
}

fn function(rng: &mut Rng) -> Func {
    let slots = vec![
        Slot::Address(0),
        Slot::Address(1),
        Slot::Address(2),
        Slot::Address(3),
        Slot::Scalar { param: 4, wide: false },
    ];
    let mut b = Builder::new("accumulators", slots, THREADS, 64);
    let [from, nothing, singles, halves] = [0, 1, 2, 3].map(|slot| address(&mut b, slot));
    let scalar = b.one(OpKind::Slot(4), &[]);
    let load = |b: &mut Builder, from: Value, n: u8, offset: i32| {
        b.op(OpKind::Load { space: Space::Global, bytes: 4, n, offset, masked: false }, &[from])
    };
    let operands = load(&mut b, nothing, 4, 0);
    let mut inputs = Vec::new();
    for n in 0..4 {
        inputs.extend(load(&mut b, from, 4, 16 * n));
    }
    let lists = 1 + rng.below(3) as usize;
    let init: Vec<Value> = if rng.below(2) == 0 {
        let zero = b.f32(0.0);
        vec![zero; 4 * lists]
    } else {
        inputs[..4 * lists].to_vec()
    };
    let [lo, hi, step] = [0, 1 + rng.below(3).cast_signed(), 1].map(|n| b.i32(n));
    let (open, index, mut all) = b.begin_for([lo, hi, step], &init);
    let mut results = Vec::new();
    let mut numbers = Vec::new();
    let mut made = Vec::new();
    for acc in all.chunks(4) {
        let factors = [scalar, inputs[12], inputs[13], inputs[14], scalar];
        made.push(scaled(&mut b, rng, acc, &factors));
    }
    let converts = rng.below(2) == 0;
    if converts {
        // What a loop does not change would be computed outside of it.
        let turn = b.one(OpKind::Convert { from: Num::S32, to: Num::F32 }, &[index]);
        for input in &inputs[..8] {
            let x = float(&mut b, FloatBin::Add, *input, turn);
            numbers.push(b.one(OpKind::FloatUn(FloatUn::Ex2Approx, FloatTy::F32), &[x]));
        }
        // The sums of the numbers are words of an accumulator.
        for (at, own) in numbers.clone().chunks(4).enumerate() {
            let sum = own.iter().fold(made[0][at], |all, x| float(&mut b, FloatBin::Add, all, *x));
            made[0][at] = sum;
        }
    }
    for acc in &made {
        let args = [&operands[..], acc].concat();
        let args = b.op(OpKind::Mma(ATOM), &args);
        results.extend(if rng.below(2) == 0 {
            b.op(OpKind::Mma(ATOM), &[&operands[..], &args].concat())
        } else {
            args
        });
    }
    if converts {
        let to = |b: &mut Builder, x: &Value| b.one(OpKind::Convert { from: Num::F32, to: Num::Bf16 }, &[*x]);
        let converted: Vec<Value> = numbers.iter().map(|x| to(&mut b, x)).collect();
        let words: Vec<Value> = converted.chunks(2).map(|pair| b.one(OpKind::Pack, pair)).collect();
        let store = OpKind::Store { space: Space::Global, bytes: 4, n: 4, offset: 0, masked: false };
        b.op(store, &[&[halves], &words[..]].concat());
    }
    b.terminate(OpKind::Continue(0), &results);
    all = b.end(open);
    for (n, four) in (0..).zip(all.chunks(4)) {
        let store = OpKind::Store { space: Space::Global, bytes: 4, n: 4, offset: 16 * n, masked: false };
        b.op(store, &[&[singles], four].concat());
    }
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

#[test]
fn accumulators_change_where_they_are() {
    let (mut in_place, mut guarded) = (0, 0);
    for seed in 0..test_depth::cases(2000, 120) as u64 {
        let mut rng = Rng::new(seed);
        let func = function(&mut rng);
        let ready = Ready::new(&func).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let code = &ready.emitted.code;
        let insts: Vec<&Inst> = code.order.iter().flat_map(|block| code.insts(*block)).collect();
        in_place += insts
            .iter()
            .filter(|inst| inst.name().starts_with("v_pk_") && inst.operands[0] == inst.operands[1])
            .count();
        let end = insts.iter().position(|inst| inst.name() == "s_endpgm").expect("an end");
        guarded += insts[end..].iter().filter(|inst| inst.name() == "v_cmp_u_f32").count();
        let rate = rng.of(&[10, 60, 1000]);
        let number = |rng: &mut Rng| {
            let special = [0x7fff_ffff, 0xffff_ffff, 0x7f80_0001, 0x7f80_0000, 0xff80_0000, 1];
            let ordinary = f32::from(rng.below(4001) as u16) / 370.0 - 5.0;
            if rng.below(rate) == 0 { rng.of(&special) } else { ordinary.to_bits() }
        };
        let tensor = |elem: Elem, bytes: Vec<u8>| {
            let extents = vec![bytes.len() as u32 * 8 / elem.bits()];
            Some(Tensor { elem, extents, strides: vec![1], bytes, skip: 0 })
        };
        let input = (0..THREADS * BYTES / 4).flat_map(|_| number(&mut rng).to_le_bytes()).collect();
        let zeros = || vec![0; (THREADS * BYTES) as usize];
        let tensors = [
            tensor(Elem::F32, input),
            tensor(Elem::F16, zeros()),
            tensor(Elem::F32, zeros()),
            tensor(Elem::Bf16, zeros()),
            None,
        ];
        let launch = Launch { grid: [1; 3], tensors: &tensors, scalar: &|_| 0.75f32.to_bits().into() };
        let wanted = launch.evaluated(&func).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let found = launch.emulated(&func, &ready, seed as usize).unwrap_or_else(|e| panic!("{seed}: {e}"));
        assert_eq!(launch.difference(&found, &wanted), None, "{seed}");
    }
    assert!(in_place > 30 && guarded > 300, "{in_place} in place, {guarded} guarded");
}
