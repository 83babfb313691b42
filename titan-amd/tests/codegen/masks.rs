//! Masks of lanes that are computed where they are used: more of them than there are scalar registers.

use crate::kernels::attention::causal_attention;
use crate::kernels::both::Launch;
use crate::launch::{Ready, emitted, machine};
use crate::machine::Rng;
use crate::tensor::Tensor;
use titan_amd::codegen::machine_ir::{Code, Inst};
use titan_core::driver::stages;
use titan_core::ir::{Elem, Pred};
use titan_core::lane::{Builder, FloatBin, FloatTy, Func, IntBin, OpKind, Space, Value};
use titan_core::launch::abi::Slot;

fn insts(code: &Code) -> impl Iterator<Item = &Inst> {
    code.order.iter().flat_map(|b| code.insts(*b))
}

/// A kernel that compares `n` numbers of each thread with two others before it selects by the conditions, alone or two of them together.
fn function(n: i32, rng: &mut Rng) -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("masks", slots, 64, 64);
    let thread = b.one(OpKind::ThreadId, &[]);
    let at = |b: &mut Builder, slot: u32, bytes: i32| {
        let (base, bytes) = (b.one(OpKind::Slot(slot), &[]), b.i32(bytes));
        let offset = b.one(OpKind::MulWide { signed: false }, &[thread, bytes]);
        b.add(base, offset)
    };
    let (from, to) = (at(&mut b, 0, 4 * n), at(&mut b, 1, 4));
    let scalar = b.one(OpKind::Slot(2), &[]);
    let load = |b: &mut Builder, i: i32| {
        let kind = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 4 * i, masked: false };
        b.one(kind, &[from])
    };
    let numbers: Vec<Value> = (0..n).map(|i| load(&mut b, i)).collect();
    let compare = |b: &mut Builder, rng: &mut Rng, x: Value, y: Value| match rng.below(3) {
        0 => b.cmp_u(Pred::Lt, x, y),
        1 => b.cmp_s(Pred::Ge, x, y),
        _ => b.one(OpKind::FloatCmp(Pred::Le, FloatTy::F32), &[x, y]),
    };
    let firsts: Vec<Value> = numbers.iter().map(|x| compare(&mut b, rng, *x, scalar)).collect();
    let seconds: Vec<Value> = numbers.iter().map(|x| compare(&mut b, rng, numbers[3], *x)).collect();
    let mut sum = thread;
    for i in 0..numbers.len() {
        let cond = match rng.below(4) {
            0 => firsts[i],
            1 => b.and(firsts[i], seconds[i]),
            2 => b.or(firsts[i], seconds[i]),
            _ => b.int(IntBin::Xor, firsts[i], seconds[i]),
        };
        let mixed = b.int(IntBin::Xor, sum, numbers[i]);
        let other = b.float(FloatBin::Add, FloatTy::F32, sum, numbers[i]);
        sum = b.select(cond, mixed, other);
    }
    // Some are used again at the end.
    for i in (0..numbers.len()).step_by(9) {
        let more = b.add(sum, scalar);
        sum = b.select(seconds[i], more, sum);
    }
    b.op(OpKind::Store { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false }, &[to, sum]);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

#[test]
fn masks_are_computed_where_they_are_used() {
    for seed in 0..test_depth::cases(40, 6) as u64 {
        let mut rng = Rng::new(seed);
        let n = 60 + rng.below(60) as i32;
        let func = function(n, &mut rng);
        let ready = Ready::new(&func).unwrap_or_else(|e| panic!("{e}"));
        // All at once would take four registers for each number.
        let again =
            insts(&ready.emitted.allocated).filter(|inst| inst.added && inst.name() == "v_readlane_b32").count();
        assert!(again < n as usize / 2, "{again} copies for {n} numbers");
        let numbers = (0..n * 64).flat_map(|_| (f32::from(rng.below(999) as u16) / 8.0 - 60.0).to_le_bytes()).collect();
        let tensor = |bytes: Vec<u8>| {
            let extents = vec![bytes.len() as u32 / 4];
            Some(Tensor { elem: Elem::F32, extents, strides: vec![1], bytes, skip: 0 })
        };
        let tensors = [tensor(numbers), tensor(vec![0; 4 * 64]), None];
        let launch = Launch { grid: [1, 1, 1], tensors: &tensors, scalar: &|_| 20f32.to_bits().into() };
        let wanted = launch.evaluated(&func).unwrap_or_else(|e| panic!("{e}"));
        for order in 0..3 {
            let found = launch.emulated(&func, &ready, order).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(launch.difference(&found, &wanted), None, "seed {seed}");
        }
    }
}

/// The masks of causal attention fit in scalar registers, which hold but two numbers too few for everything else.
#[test]
fn masks_of_causal_attention_have_registers() {
    let stages = stages(&causal_attention(128, 128), machine(), true, None).unwrap_or_else(|e| panic!("{e}"));
    let allocated = emitted(&stages.lanes).unwrap_or_else(|e| panic!("{e}")).allocated;
    let inside = allocated.order.iter().filter(|block| allocated.blocks[block.index()].depth > 0);
    let copies =
        inside.flat_map(|block| allocated.insts(*block)).filter(|inst| inst.name() == "v_readlane_b32").count();
    assert!(copies <= 4, "{copies}");
}
