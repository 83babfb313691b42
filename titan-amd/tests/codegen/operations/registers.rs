//! Operations on registers: of each, corners and random operands in all three orders of completion.

use super::reference::{self, Want};
use super::values::{self, Random};
use super::{cells, mask};
use crate::cases::{self, Case};
use crate::launch::Ready;
use titan_amd::codegen::EmitError;
use titan_core::lane::op::AtomicFn;
use titan_core::lane::{AmdOp, FloatTy, Num, OpKind, Shuffle, Space, Ty};

/// The expected results of a thread, for the operands of all threads.
type Expect = fn(&Case, &[Vec<u64>], usize) -> Option<Vec<Want>>;

/// Random tuples beside the corners.
fn extra() -> usize {
    test_depth::cases(100_000, 400)
}

fn num(ty: FloatTy) -> Num {
    super::numbers::num(ty)
}

/// The format of the operands, if they are numbers of one.
fn format(kind: &OpKind) -> Option<Num> {
    match kind {
        OpKind::Float(_, ty) | OpKind::FloatUn(_, ty) | OpKind::Fma(ty) | OpKind::FloatCmp(_, ty) => Some(num(*ty)),
        OpKind::Convert { from, .. } => Some(*from),
        _ => None,
    }
}

/// The case as code of waves of 64 lanes.
fn of_waves(mut case: Case) -> Case {
    case.func.lanes = 64;
    case
}

/// Operands of a case, for whole programs.
fn inputs(case: &Case) -> Vec<Vec<u64>> {
    let mut random = Random::new(case.func.name.len() as u64);
    let mut all = match (format(&case.kind), case.args.as_slice()) {
        (Some(num), args) => {
            let corners = vec![values::corners(num); args.len()];
            values::tuples(&corners, extra(), |_| values::any(num, &mut random))
        }
        (None, args) => {
            let corners: Vec<Vec<u64>> = args.iter().map(|ty| values::integers(*ty)).collect();
            values::tuples(&corners, extra(), |i| values::plain(args[i], &mut random))
        }
    };
    if matches!(case.kind, OpKind::Shuffle(Shuffle::Index)) {
        all.iter_mut().for_each(|v| v[1] %= 64);
    }
    // What the contract excludes is not executed.
    if !matches!(case.kind, OpKind::Shuffle(_) | OpKind::Vote(_)) && !case.args.is_empty() {
        all.retain(|v| reference::of(&case.kind, &case.args, v).is_some());
    }
    let threads = cases::THREADS as usize;
    let first = all[0].clone();
    all.resize(all.len().next_multiple_of(threads), first);
    all
}

fn results(case: &Case) -> Vec<Ty> {
    let op = case.func.ops.iter().rfind(|op| op.kind == case.kind).expect("a case has its operation");
    op.results.iter().map(|v| case.func.ty(*v)).collect()
}

/// Runs a case and compares; how many threads had something to expect, or nothing if the machine has no such operation.
fn check(case: &Case, number: usize, expect: Expect) -> Option<usize> {
    let ready = match Ready::new(&case.func) {
        Ok(ready) => ready,
        Err(EmitError::Operation { .. }) => return None,
        Err(error) => panic!("{}: {error}", case.func.name),
    };
    let inputs = inputs(case);
    let tys = results(case);
    let found = cells(&case.func, &ready, &inputs, tys.len(), number);
    let mut compared = 0;
    for (thread, found) in found.iter().enumerate() {
        let Some(wants) = expect(case, &inputs, thread) else { continue };
        compared += 1;
        assert_eq!(wants.len(), tys.len());
        for ((want, found), ty) in wants.iter().zip(found).zip(&tys) {
            let found = found & if *ty == Ty::Pred { 0xffff_ffff } else { mask(*ty) };
            let operands = &inputs[thread];
            assert!(want.holds(found), "{}: {operands:x?} gives {found:#x}, not {want:x?}", case.func.name);
        }
    }
    Some(compared)
}

/// Runs cases, of which at most some are refused; the names of those.
fn run_all(cases: Vec<Case>, expect: Expect) -> Vec<String> {
    let mut refused = Vec::new();
    for (number, case) in cases.into_iter().map(of_waves).enumerate() {
        match check(&case, number, expect) {
            Some(compared) => assert!(compared > 0, "{}: nothing was compared", case.func.name),
            None => refused.push(case.func.name.clone()),
        }
    }
    refused
}

fn scalar(case: &Case, inputs: &[Vec<u64>], thread: usize) -> Option<Vec<Want>> {
    let operands = &inputs[thread];
    if operands.iter().any(|x| reference::may_flush(&case.kind, *x)) {
        return None;
    }
    reference::of(&case.kind, &case.args, operands)
}

/// The cases of operations that [`reference::of`] computes.
fn scalars(wanted: fn(&OpKind) -> bool) -> Vec<Case> {
    let known = |case: &Case| {
        !case.args.is_empty() && reference::of(&case.kind, &case.args, &vec![1; case.args.len()]).is_some()
    };
    cases::registers().into_iter().filter(|case| known(case) && wanted(&case.kind)).collect()
}

fn is_float(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Float(..) | OpKind::FloatUn(..) | OpKind::Fma(_) | OpKind::FloatCmp(..))
}

#[test]
fn integers_and_words() {
    let cases = scalars(|kind| !is_float(kind) && !matches!(kind, OpKind::Convert { .. }));
    assert!(cases.len() > 80, "{}", cases.len());
    let refused = run_all(cases, scalar);
    // Conditions have no order.
    assert!(refused.iter().all(|name| name.starts_with("cmp") && name.ends_with("_p_p")), "{refused:?}");
}

/// Of `bf16` there are only signs.
#[test]
fn floats() {
    let cases = scalars(is_float);
    assert!(cases.len() > 60, "{}", cases.len());
    let refused = run_all(cases, scalar);
    assert!(refused.iter().all(|name| name.contains("bf16")), "{refused:?}");
}

#[test]
fn conversions() {
    let cases = scalars(|kind| matches!(kind, OpKind::Convert { .. }));
    let all = cases.len();
    let refused = run_all(cases, scalar);
    // The lowering of tiles makes the others from these.
    assert!(all - refused.len() >= 40, "{} of {all} are refused: {refused:?}", refused.len());
}

#[test]
fn shuffles_and_votes() {
    let mut cases = cases::registers();
    cases.retain(|case| matches!(case.kind, OpKind::Shuffle(_) | OpKind::Vote(_)));
    assert_eq!(cases.len(), 6);
    let refused = run_all(cases, |case, inputs, thread| {
        let first = thread / 64 * 64;
        let bits = reference::of_warp(&case.kind, &inputs[first..first + 64], thread % 64)?;
        Some(vec![Want::Bits(bits)])
    });
    assert!(refused.is_empty(), "{refused:?}");
}

/// Every distance of a butterfly, and others.
#[test]
fn shuffles_of_every_distance() {
    let mut all: Vec<Shuffle> = (0..64).flat_map(|n| [Shuffle::Xor(n), Shuffle::Up(n), Shuffle::Lane(n)]).collect();
    all.retain(|s| test_depth::is_full() || matches!(s, Shuffle::Xor(_)));
    let case = cases::registers().into_iter().find(|c| c.kind == OpKind::Shuffle(Shuffle::Xor(5))).expect("a case");
    for shuffle in all {
        let mut case = case.clone();
        let kind = OpKind::Shuffle(shuffle);
        case.func.ops.iter_mut().filter(|op| op.kind == case.kind).for_each(|op| op.kind = kind.clone());
        case.kind = kind;
        let compared = check(&of_waves(case), 0, |case, inputs, thread| {
            let first = thread / 64 * 64;
            let bits = reference::of_warp(&case.kind, &inputs[first..first + 64], thread % 64)?;
            Some(vec![Want::Bits(bits)])
        });
        assert!(compared.is_some_and(|n| n >= 64), "{shuffle:?}");
    }
}

/// Operations without operands, such as the index of the thread: three programs of 64 threads.
#[test]
fn places() {
    let mut cases = cases::registers();
    cases.retain(|case| case.args.is_empty() && !matches!(case.kind, OpKind::Const(..)));
    assert_eq!(cases.len(), 11);
    for case in cases.into_iter().map(of_waves) {
        let ready = Ready::new(&case.func).unwrap_or_else(|e| panic!("{e}"));
        let found = cells(&case.func, &ready, &vec![vec![]; 192], 1, 0);
        for (i, found) in (0..).zip(&found) {
            let want = match case.kind {
                OpKind::ThreadId | OpKind::LaneId => i % 64,
                OpKind::ProgramId(0) => i / 64,
                OpKind::NumPrograms(0) => 3,
                OpKind::NumPrograms(_) => 1,
                OpKind::WarpId | OpKind::ProgramId(_) | OpKind::SharedBase => 0,
                // The address of the operands, which is the same in all threads.
                _ => found[0] & 0xffff_ffff,
            };
            assert_eq!(found[0] & 0xffff_ffff, want, "{} of thread {i}", case.func.name);
        }
    }
}

/// Constants in the operand of every operation that takes one.
#[test]
fn constant_operands() {
    let mut refused = 0;
    for case in scalars(|kind| !matches!(kind, OpKind::Const(..))).into_iter().map(of_waves) {
        for place in 0..case.args.len() {
            refused += usize::from(!constant_operand(&case, place));
        }
    }
    assert!(refused < 200, "{refused}");
}

fn constant_operand(case: &Case, place: usize) -> bool {
    let inputs = inputs(case);
    let defined = |v: &&Vec<u64>| !v.iter().any(|x| reference::may_flush(&case.kind, *x));
    let Some(values) = inputs.iter().filter(defined).nth(37) else { return true };
    let tys = results(case);
    let (mut b, from, to) = cases::begin("constant_operand", case.args.len(), tys.len());
    let operands: Vec<_> = (0..case.args.len())
        .map(|i| {
            if i == place {
                b.one(OpKind::Const(case.args[i], values[i]), &[])
            } else {
                cases::load(&mut b, case.args[i], from, i)
            }
        })
        .collect();
    for (i, value) in b.op(case.kind.clone(), &operands).into_iter().enumerate() {
        cases::store(&mut b, value, to, i);
    }
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands as those of the case");
    func.lanes = 64;
    let Ok(ready) = Ready::new(&func) else { return false };
    let found = cells(&func, &ready, &vec![values.clone(); 64], tys.len(), place);
    let wants = reference::of(&case.kind, &case.args, values).expect("it is defined");
    for ((want, found), ty) in wants.iter().zip(&found[0]).zip(&tys) {
        let found = found & if *ty == Ty::Pred { 0xffff_ffff } else { mask(*ty) };
        let name = &case.func.name;
        assert!(want.holds(found), "{name}, constant {place}: {values:x?} gives {found:#x}, not {want:x?}");
    }
    true
}

/// Loads and stores of every width, masked and not, of both memories.
#[test]
fn accesses() {
    let mut random = Random::new(11);
    for (number, case) in cases::accesses().into_iter().map(of_waves).enumerate() {
        let OpKind::Load { bytes, n, masked, .. } = case.kind else { panic!("accesses are loads") };
        let ready = Ready::new(&case.func).unwrap_or_else(|e| panic!("{e}"));
        let threads: Vec<Vec<u64>> =
            (0..256).map(|_| vec![random.next(), random.next(), random.next() & 1, 0]).collect();
        let found = cells(&case.func, &ready, &threads, 2, number);
        let size = usize::from(bytes * n);
        for (operands, found) in threads.iter().zip(&found) {
            let bytes_of = |cells: &[u64]| cells.iter().flat_map(|c| c.to_le_bytes()).collect::<Vec<u8>>();
            let mut want = vec![0xff; 16];
            if !masked || operands[2] == 1 {
                want[..size].copy_from_slice(&bytes_of(&operands[..2])[..size]);
            }
            assert_eq!(bytes_of(found), want, "{}", case.func.name);
        }
    }
}

/// A kernel that loads `n` elements of `bytes` bytes, `offset` bytes behind the thread's operands, from a buffer that begins at those of the
/// program before; or from nowhere if its third operand is not 0.
fn load_from_buffer(bytes: u8, n: u8, offset: u16) -> titan_core::lane::Func {
    let kind = OpKind::from(AmdOp::BufferLoad { bytes, n, offset });
    let (mut b, from, to) = cases::begin(&titan_core::lane::mnemonic(&kind), 4, 2);
    let (first, size) = (b.one(OpKind::Slot(0), &[]), b.i32(32));
    let (program, threads) = (b.one(OpKind::ProgramId(0), &[]), b.i32(32 * cases::THREADS as i32));
    let (thread, back) = (b.one(OpKind::ThreadId, &[]), b.i64(-1024));
    // It begins before all operands: what is added to the address and the lane's offset makes up for that.
    let first = b.add(first, back);
    let whole = b.i32(i32::MIN);
    let buffer = b.op(AmdOp::Buffer, &[first, whole]);
    let (step, own) = (b.mul(program, threads), b.mul(thread, size));
    let own = b.add_const(own, 1024);
    let absent = cases::load(&mut b, Ty::Pred, from, 2);
    let nowhere = b.i32(titan_core::lane::amd::NOWHERE.cast_signed());
    let own = b.select(absent, nowhere, own);
    let values = b.op(kind, &[&buffer[..], &[own, step]].concat());
    let stored = OpKind::Store { space: Space::Global, bytes, n, offset: 0, masked: false };
    b.op(stored, &[&[to][..], &values].concat());
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands are what loads take");
    func.lanes = 64;
    func
}

#[test]
fn loads_from_buffers() {
    let mut random = Random::new(17);
    let sizes = [(1, 4), (2, 2), (2, 4), (4, 1), (4, 2), (4, 4), (8, 1), (8, 2)];
    let all = sizes.into_iter().flat_map(|(bytes, n)| [0, 4].map(|offset| (bytes, n, offset)));
    let aligned = all.filter(|(bytes, n, offset)| offset % u16::from(bytes * n) == 0);
    let mut zeros = 0;
    for (number, (bytes, n, offset)) in aligned.enumerate() {
        let func = load_from_buffer(bytes, n, offset);
        let ready = Ready::new(&func).unwrap_or_else(|e| panic!("{e}"));
        let code = ready.emitted.code.to_string();
        assert!(code.contains("buffer_load_dword") && !code.contains("exec"), "{code}");
        let threads: Vec<Vec<u64>> =
            (0..256).map(|_| vec![random.next(), random.next(), random.next() & 1, 0]).collect();
        let found = cells(&func, &ready, &threads, 2, number);
        let size = usize::from(bytes * n);
        for (operands, found) in threads.iter().zip(&found) {
            let bytes_of = |cells: &[u64]| cells.iter().flat_map(|c| c.to_le_bytes()).collect::<Vec<u8>>();
            let mut want = vec![0xff; 16];
            let from = bytes_of(&operands[..2])[usize::from(offset)..][..size].to_vec();
            want[..size].copy_from_slice(&if operands[2] == 1 { vec![0; size] } else { from });
            assert_eq!(bytes_of(found), want, "{}", func.name);
            zeros += operands[2];
        }
    }
    assert!(zeros > 500);
}

/// What an atomic update leaves.
fn updated(op: AtomicFn, ty: Ty, old: u64, x: u64) -> u64 {
    let float = |sum: f64| sum.to_bits();
    let wide = ty == Ty::B64;
    let signed = |v: u64| if wide { v as i64 } else { i64::from(v as u32 as i32) };
    let half = |v: u64, i: u32| titan_core::num::f16_to_f64((v >> (16 * i)) as u16);
    let sum = |i| u64::from(titan_core::num::f16_from_f64(half(old, i) + half(x, i))) << (16 * i);
    let new = match op {
        AtomicFn::Add => old.wrapping_add(x),
        AtomicFn::MinS => signed(old).min(signed(x)) as u64,
        AtomicFn::MaxS => signed(old).max(signed(x)) as u64,
        AtomicFn::MinU => old.min(x),
        AtomicFn::MaxU => old.max(x),
        AtomicFn::And => old & x,
        AtomicFn::Or => old | x,
        AtomicFn::Exchange => x,
        AtomicFn::AddF32 => u64::from((f32::from_bits(old as u32) + f32::from_bits(x as u32)).to_bits()),
        AtomicFn::AddF64 => float(f64::from_bits(old) + f64::from_bits(x)),
        AtomicFn::AddF16x2 => sum(0) | sum(1),
    };
    new & mask(ty)
}

/// Operands of an atomic: for float sums numbers of moderate size.
fn operand(kind: &OpKind, ty: Ty, random: &mut Random) -> u64 {
    let x = random.next();
    match kind {
        OpKind::Atomic { op: AtomicFn::AddF32, .. } => u64::from(((x % 1000) as f32 - 500.0).to_bits()),
        OpKind::Atomic { op: AtomicFn::AddF64, .. } => ((x % 1000) as f64 - 500.0).to_bits(),
        OpKind::Atomic { op: AtomicFn::AddF16x2, .. } => {
            let half = |n: u64| u64::from(titan_core::num::f16_from_f64((n % 64) as f64 - 32.0));
            half(x) | half(x >> 8) << 16
        }
        _ => x & mask(ty),
    }
}

#[test]
fn atomics() {
    let mut random = Random::new(13);
    let mut refused = Vec::new();
    for (number, case) in cases::atomics().into_iter().map(of_waves).enumerate() {
        let ready = match Ready::new(&case.func) {
            Ok(ready) => ready,
            Err(EmitError::Operation { .. }) => {
                refused.push(case.func.name);
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let ty = case.args[0];
        let threads: Vec<Vec<u64>> = (0..128)
            .map(|i| {
                let [a, b, old] = [(); 3].map(|()| operand(&case.kind, ty, &mut random));
                // A comparison succeeds in every other thread.
                let old = if matches!(case.kind, OpKind::CompareSwap(_)) && i % 2 == 0 { a } else { old };
                vec![a, b, old, random.next() & 1]
            })
            .collect();
        // Half of a word is swapped with the other half beside it, which these kernels do not write in shared memory.
        let half = matches!(case.kind, OpKind::CompareSwap(Space::Shared)) && ty == Ty::B16;
        let found = cells(&case.func, &ready, &threads, 2, if half { 2 } else { number });
        for (v, found) in threads.iter().zip(&found) {
            let on = v[3] == 1;
            let (after, given) = match case.kind {
                OpKind::Atomic { masked: true, .. } if !on => (v[2], 0),
                OpKind::Atomic { op, .. } => (updated(op, ty, v[2], v[0]), v[2]),
                OpKind::CompareSwap(Space::Global | Space::Shared) => (if v[2] == v[0] { v[1] } else { v[2] }, v[2]),
                _ => panic!("no atomic"),
            };
            let found = [found[0] & mask(ty), found[1] & mask(ty)];
            assert_eq!(found, [after, given], "{}: {v:x?}", case.func.name);
        }
    }
    // Sums of floats have the width of the float.
    assert!(refused.iter().all(|name| name.contains("add_f")), "{refused:?}");
}
