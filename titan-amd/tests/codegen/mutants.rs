//! The checkers refuse what is wrong: registers that are exchanged, copies, waits and wait states that are missing.

use crate::kernels::both::Launch;
use crate::kernels::products::Product;
use crate::launch::{Ready, machine, orders};
use crate::machine::Rng;
use crate::nests::{arguments, functions};
use titan_amd::codegen::check::{registers, waits};
use titan_amd::codegen::machine_ir::{Code, Inst, Operand, Reg};
use titan_amd::emu::{Completion, Options};
use titan_amd::isa::{Access, Operand as Isa};
use titan_core::driver::stages;
use titan_core::ir::{Elem, Pred};
use titan_core::lane::{Builder, FloatBin, FloatTy, Func, IntBin, OpKind, Space, Ty, Value};
use titan_core::launch::abi::Slot;

/// Every instruction of some code, by block and number.
fn places(code: &Code) -> Vec<(usize, usize)> {
    code.order.iter().flat_map(|b| (0..code.insts(*b).len()).map(|i| (b.index(), i))).collect()
}

/// Whether a word of a virtual register may be read behind an instruction before it is written again.
fn is_read_behind(code: &Code, (block, i): (usize, usize), (reg, word): (Reg, u8)) -> bool {
    let (mut open, mut seen) = (vec![(block, i + 1)], vec![false; code.blocks.len()]);
    while let Some((block, from)) = open.pop() {
        let mut written = false;
        for inst in &code.blocks[block].insts[from..] {
            for (access, operand) in inst.accesses() {
                let Operand::Part(part) = operand else { continue };
                let is_it = part.reg == reg && (part.first..part.first + part.words).contains(&word);
                if is_it && access != Access::Write {
                    return true;
                }
                written |= is_it;
            }
            if written {
                break;
            }
        }
        let position = code.order.iter().position(|own| own.index() == block).expect("it is emitted");
        for next in code.successors(position).into_iter().filter(|_| !written) {
            if !std::mem::replace(&mut seen[next.index()], true) {
                open.push((next.index(), 0));
            }
        }
    }
    false
}

/// The same register with another number that its operand allows.
fn moved(operand: Isa, by: u8) -> Option<Isa> {
    let other = |first: u8, n: u8, least: u8, end: u8| {
        let step = if n > 2 { 4 } else { n };
        let next = first.checked_add(by.checked_mul(step)?)?;
        (next >= least && next.checked_add(n)? <= end).then_some(next)
    };
    match operand {
        Isa::S(first @ 5..102, n) => Some(Isa::S(other(first, n, 5, 102)?, n)),
        Isa::V(first @ 1.., n) => Some(Isa::V(other(first, n, 1, 255)?, n)),
        Isa::A(first, n) => Some(Isa::A(other(first, n, 0, 255)?, n)),
        _ => None,
    }
}

/// Kernels with many registers in use: more than there are vector registers, and nests of control flow.
fn subjects() -> Vec<Ready> {
    let nests = functions(test_depth::cases(60, 8)).map(|(_, func)| func).collect::<Vec<_>>();
    let product = Product::of(Elem::F16, Elem::F32, [64, 64, 32]);
    let product = stages(&product.kernel(), machine(), true, None).unwrap_or_else(|e| panic!("{e}")).lanes;
    let all = nests.into_iter().chain([crowded(300), crowded(40), crowded_scalars(150), product]);
    all.map(|func| Ready::new(&func).unwrap_or_else(|e| panic!("{e}"))).collect()
}

/// A kernel that loads `n` numbers of each thread before it adds them up in another order, under a condition.
pub(crate) fn crowded(n: i32) -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("crowded", slots, 128, 64);
    let (program, thread) = (b.one(OpKind::ProgramId(0), &[]), b.one(OpKind::ThreadId, &[]));
    let threads = b.i32(128);
    let first = b.mul(program, threads);
    let index = b.add(first, thread);
    let cell = |b: &mut Builder, slot: u32, bytes: i32| {
        let (base, bytes) = (b.one(OpKind::Slot(slot), &[]), b.i32(bytes));
        let offset = b.one(OpKind::MulWide { signed: false }, &[index, bytes]);
        b.add(base, offset)
    };
    let (from, to) = (cell(&mut b, 0, 4 * n), cell(&mut b, 1, 16));
    let load = |b: &mut Builder, i: i32| {
        let kind = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 4 * i, masked: false };
        b.one(kind, &[from])
    };
    let all: Vec<Value> = (0..n).map(|i| load(&mut b, i)).collect();
    let (three, zero) = (b.i32(3), b.i32(0));
    let low = b.and(thread, three);
    let cond = b.cmp_u(Pred::Ne, low, zero);
    let mut open = b.begin_if(cond, &[Ty::B32]);
    let mut sum = all[0];
    for x in all.iter().rev() {
        sum = b.float(FloatBin::Add, FloatTy::F32, sum, *x);
    }
    b.terminate(OpKind::Yield, &[sum]);
    b.begin_else(&mut open);
    let mut product = all[1];
    for x in &all {
        product = b.float(FloatBin::Max, FloatTy::F32, product, *x);
    }
    b.terminate(OpKind::Yield, &[product]);
    let result = b.end(open)[0];
    // Every number is needed up to the end.
    let mut last = result;
    for x in &all {
        last = b.float(FloatBin::Add, FloatTy::F32, last, *x);
    }
    let store = OpKind::Store { space: Space::Global, bytes: 4, n: 4, offset: 0, masked: false };
    b.op(store, &[to, result, last, result, last]);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

/// A kernel with `n` numbers that all lanes have in common, and conditions of lanes, all needed up to the end.
fn crowded_scalars(n: i32) -> Func {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("crowded_scalars", slots, 128, 64);
    let (program, thread) = (b.one(OpKind::ProgramId(0), &[]), b.one(OpKind::ThreadId, &[]));
    let threads = b.i32(128);
    let first = b.mul(program, threads);
    let index = b.add(first, thread);
    let (base, bytes) = (b.one(OpKind::Slot(1), &[]), b.i32(16));
    let offset = b.one(OpKind::MulWide { signed: false }, &[index, bytes]);
    let to = b.add(base, offset);
    let scalar = b.one(OpKind::Slot(2), &[]);
    let mut all = Vec::new();
    let mut conds = Vec::new();
    for i in 0..n {
        let c = b.i32(0x1357 + 77 * i);
        let x = b.mul(scalar, c);
        all.push(b.add(x, program));
        if i % 4 == 0 {
            let limit = b.i32(i);
            conds.push(b.cmp_u(Pred::Lt, thread, limit));
        }
    }
    let one = b.i32(1);
    let odd = b.and(thread, one);
    let cond = b.cmp_u(Pred::Eq, odd, one);
    let mut open = b.begin_if(cond, &[Ty::B32]);
    let mut sum = thread;
    for (i, x) in all.iter().enumerate() {
        let part = b.int(IntBin::Xor, sum, *x);
        sum = b.select(conds[i / 4], part, sum);
    }
    b.terminate(OpKind::Yield, &[sum]);
    b.begin_else(&mut open);
    let mut other = scalar;
    for x in all.iter().rev() {
        other = b.int(IntBin::Sub, *x, other);
    }
    b.terminate(OpKind::Yield, &[other]);
    let result = b.end(open)[0];
    let mut last = result;
    for (i, x) in all.iter().enumerate() {
        let part = b.add(last, *x);
        last = b.select(conds[i / 4], last, part);
    }
    let store = OpKind::Store { space: Space::Global, bytes: 4, n: 4, offset: 0, masked: false };
    b.op(store, &[to, result, last, result, last]);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("well typed")
}

#[test]
fn crowded_kernels_spill_and_are_right() {
    let vectors = [40, 200, 300, 420].map(|n| (n, crowded(n), n >= 300));
    let scalars = [20, 150, 400].map(|n| (n, crowded_scalars(n), n >= 150));
    for (n, func, spills) in vectors.into_iter().chain(scalars) {
        let ready = Ready::new(&func).unwrap_or_else(|e| panic!("{e}"));
        let copies = ready.emitted.allocated.order.iter().flat_map(|b| ready.emitted.allocated.insts(*b));
        assert_eq!(copies.clone().any(|inst| inst.added), spills, "{n}: {:?}", ready.emitted.registers);
        let mut rng = Rng::new(n as u64);
        let tensor = |elem, bytes: Vec<u8>| {
            let extents = vec![bytes.len() as u32 / 4];
            Some(crate::tensor::Tensor { elem, extents, strides: vec![1], bytes, skip: 0 })
        };
        let numbers: Vec<u8> =
            (0..n * 256).flat_map(|_| (f32::from(rng.below(999) as u16) / 8.0 - 60.0).to_le_bytes()).collect();
        let elem = Elem::F32;
        let tensors = [tensor(elem, numbers), tensor(elem, vec![0; 16 * 256]), None];
        let launch = Launch { grid: [2, 1, 1], tensors: &tensors, scalar: &|_| 0x4321 };
        let wanted = launch.evaluated(&func).unwrap_or_else(|e| panic!("{e}"));
        for order in 0..3 {
            let found = launch.emulated(&func, &ready, order).unwrap_or_else(|e| panic!("{n}: {e}"));
            assert_eq!(launch.difference(&found, &wanted), None, "{n}");
        }
    }
}

/// What needs more registers than there are names how many, and the line.
#[test]
fn too_many_registers_are_an_error() {
    let error = crate::launch::emitted(&crowded(700)).map(drop).unwrap_err().to_string();
    assert!(
        error.contains("gfx942 has 102 scalar and 512 vector registers for each wave of this program, and this code"),
        "{error}"
    );
}

/// The waves of a program are all on one compute unit: the more there are, the fewer registers each of them has.
#[test]
fn waves_of_large_programs_have_fewer_registers() {
    let of = |n: i32, threads: u32| {
        let mut func = crowded(n);
        func.threads = threads;
        crate::launch::emitted(&func).map_err(|error| error.to_string())
    };
    for (n, threads) in [(300, 256), (220, 512), (100, 1024)] {
        let [_, vector, accumulation] = of(n, threads).unwrap_or_else(|e| panic!("{e}")).registers.map(u32::from);
        let held = machine().waves_by_registers(vector.next_multiple_of(4) + accumulation);
        assert!(held * 4 >= threads / 64, "{n} numbers, {threads} threads: {vector} and {accumulation} registers");
    }
    for (n, threads, limit) in [(300, 512, 256), (150, 1024, 128)] {
        let error = of(n, threads).map(drop).unwrap_err();
        let limit = format!("{limit} vector registers for each wave");
        assert!(error.contains(&limit), "{error}");
    }
}

#[test]
fn registers_that_are_exchanged_are_refused() {
    let (mut mutants, mut rng) = (0, Rng::new(1));
    for ready in subjects() {
        let (selected, allocated) = (&ready.emitted.selected, &ready.emitted.allocated);
        assert_eq!(registers::check(selected, allocated), Ok(()));
        for (block, i) in places(allocated) {
            let inst: &Inst = &allocated.blocks[block].insts[i];
            if rng.below(test_depth::cases(3, 20)) > 0 || inst.name() == "start" {
                continue;
            }
            let accesses: Vec<Access> = inst.accesses().map(|(access, _)| access).collect();
            for (n, operand) in inst.operands.iter().enumerate() {
                let Operand::Isa(operand) = operand else { continue };
                let Some(other) = moved(*operand, 1 + rng.below(3) as u8) else { continue };
                // A result that nobody reads may be anywhere where nothing else is.
                let written = accesses[n] == Access::Write;
                if written && (inst.added || !is_read(selected, allocated, (block, i), n)) {
                    continue;
                }
                let mut mutant = allocated.clone();
                mutant.blocks[block].insts[i].operands[n] = Operand::Isa(other);
                let what = registers::check(selected, &mutant);
                assert!(
                    what.is_err(),
                    "{operand:?} of `{}`, instruction {i} of b{block}, became {other:?}:\n{allocated}\n{selected}",
                    inst.name()
                );
                mutants += 1;
            }
        }
    }
    assert!(mutants > test_depth::cases(1000, 250), "{mutants}");
}

/// Whether what an operand writes is read.
fn is_read(selected: &Code, allocated: &Code, (block, i): (usize, usize), n: usize) -> bool {
    let added = allocated.blocks[block].insts[..i].iter().filter(|inst| inst.added).count();
    match selected.blocks[block].insts[i - added].operands[n] {
        Operand::Part(part) if selected.register(part.reg).pieces => false,
        Operand::Part(part) => (part.first..part.first + part.words)
            .all(|word| is_read_behind(selected, (block, i - added), (part.reg, word))),
        Operand::Isa(_) | Operand::To(_) => false,
    }
}

#[test]
fn copies_of_spilled_registers_are_needed() {
    let mut mutants = 0;
    for ready in subjects() {
        let (selected, allocated) = (&ready.emitted.selected, &ready.emitted.allocated);
        for (block, i) in places(allocated) {
            let inst = &allocated.blocks[block].insts[i];
            if !inst.added || inst.name() == "start" || mutants > test_depth::cases(400, 150) {
                continue;
            }
            let mut mutant = allocated.clone();
            mutant.blocks[block].insts.remove(i);
            assert!(registers::check(selected, &mutant).is_err(), "`{}` {i} is needless", inst.name());
            mutants += 1;
        }
    }
    assert!(mutants > 100, "{mutants}");
}

/// `s_waitcnt` and `s_nop` in the bytes: ISA §13.1.5, format SOPP, opcodes 12 and 0.
pub(crate) const WAIT: u32 = 0xbf8c_0000;
pub(crate) const NOP: u32 = 0xbf80_0000;

pub(crate) fn words(text: &[u8]) -> Vec<u32> {
    text.chunks(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))).collect()
}

pub(crate) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// A wait by which one operation more may be in flight: of vector memory if it waits for that. ISA §12.5, `S_WAITCNT`.
pub(crate) fn weaker(word: u32) -> u32 {
    let vector = word & 15 | word >> 10 & 0x30;
    if vector == 63 {
        return word + 0x100;
    }
    let more = vector + 1;
    word & !0xc00f | more & 15 | (more & 0x30) << 10
}

/// The starts of the instructions of some code, in words.
pub(crate) fn starts(text: &[u8]) -> Vec<usize> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < text.len() {
        all.push(at / 4);
        at += titan_amd::isa::decode(&text[at..]).expect("it was assembled").1;
    }
    all
}

#[test]
fn waits_are_needed() {
    let (mut removed, mut weakened, mut enough) = (0, 0, 0);
    for (seed, func) in functions(test_depth::cases(120, 25)) {
        let ready = Ready::new(&func).unwrap_or_else(|e| panic!("{e}"));
        let text = words(&ready.emitted.text);
        let tensors = arguments(&mut Rng::new(seed));
        let launch = Launch { grid: [2, 1, 1], tensors: &tensors, scalar: &|_| 0x1234 };
        let wanted = launch.evaluated(&func).unwrap_or_else(|e| panic!("{e}"));
        for at in starts(&ready.emitted.text).into_iter().filter(|at| text[*at] & 0xffff_0000 == WAIT) {
            let mut mutant = text.clone();
            mutant[at] = NOP;
            assert!(waits::check(&bytes(&mutant)).is_err(), "seed {seed}: the wait at {at} is needless");
            removed += 1;
            // One operation more may be in flight: refused, or still enough in the latest order.
            let mut mutant = text.clone();
            mutant[at] = weaker(text[at]);
            weakened += 1;
            if waits::check(&bytes(&mutant)).is_ok() {
                enough += 1;
                let late = Options { completion: Completion::Late, ..orders()[0].clone() };
                let found = launch.emulated_by(&func, &ready.with_text(&bytes(&mutant)), &late);
                let found = found.unwrap_or_else(|e| panic!("seed {seed}: the checker accepts what is wrong: {e}"));
                assert_eq!(launch.difference(&found, &wanted), None, "seed {seed}");
            }
        }
    }
    assert!(removed > test_depth::cases(150, 45) && enough * 4 < weakened, "{removed}, {weakened}, {enough}");
}

/// The emulator has its own table of hazards, and reports each wait state that is missing.
#[test]
fn wait_states_are_needed() {
    let (mut reported, mut all) = (0, 0);
    for case in crate::cases::registers() {
        let mut func = case.func;
        func.lanes = 64;
        let Ok(ready) = Ready::new(&func) else { continue };
        let text = words(&ready.emitted.text);
        let tensors = arguments(&mut Rng::new(3));
        let launch = Launch { grid: [1, 1, 1], tensors: &tensors, scalar: &|_| 0 };
        // Some access more than these tensors have.
        if launch.emulated_by(&func, &ready, &orders()[0]).is_err() {
            continue;
        }
        let nops = starts(&ready.emitted.text).into_iter().filter(|at| text[*at] & 0xffff_0000 == NOP);
        for at in nops.filter(|at| text[*at] & 0xffff > 0) {
            let mut mutant = text.clone();
            mutant[at] -= 1;
            all += 1;
            let found = launch.emulated_by(&func, &ready.with_text(&bytes(&mutant)), &orders()[0]);
            reported += usize::from(found.is_err_and(|e| e.contains("wait states")));
        }
    }
    assert!(all > 50, "{all}");
    assert_eq!(reported, all);
}
