//! Every operation on registers, on corners and random operands, for the targets that differ.

use super::reference::{self, Want};
use super::values::{self, Random};
use super::{cells, machine, mask};
use crate::cases::{self, Case};
use std::collections::BTreeMap;
use titan_core::lane::{FloatTy, FloatUn, Num, OpKind, Ty};
use titan_nv::{EmitError, emit};

/// One that lacks much, one with 8-bit floats, one with everything.
const TARGETS: [&str; 3] = ["sm_80", "sm_89", "sm_90a"];

/// The expected results of a thread, for the operands of all threads.
type Expect = fn(&Case, &[Vec<u64>], usize) -> Option<Vec<Want>>;

/// Random tuples beside the corners.
fn extra() -> usize {
    test_depth::cases(1500, 150)
}

/// The targets on which an operation is executed that they all have: in the quick depth one of them, in turn.
fn targets(number: usize, case: &Case) -> Vec<&'static str> {
    let all: Vec<&str> = TARGETS.into_iter().filter(|target| runnable(case, target)).collect();
    if test_depth::is_full() { all } else { all.iter().copied().cycle().skip(number).take(all.len().min(1)).collect() }
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

/// Operands of a case, for whole programs.
fn inputs(case: &Case, exhaustive: bool) -> Vec<Vec<u64>> {
    let mut random = Random::new(case.func.name.len() as u64);
    let format = format(&case.kind);
    let halves = matches!(format, Some(Num::F16 | Num::Bf16));
    let mut all = match (format, case.args.as_slice()) {
        (Some(_), [Ty::B16]) if halves && exhaustive => (0..=0xffff).map(|x| vec![x]).collect(),
        (Some(num), args) => {
            let corners = vec![values::corners(num); args.len()];
            values::tuples(&corners, extra(), |_| values::any(num, &mut random))
        }
        (None, args) => {
            let corners: Vec<Vec<u64>> = args.iter().map(|ty| values::integers(*ty)).collect();
            values::tuples(&corners, extra(), |i| values::plain(args[i], &mut random))
        }
    };
    if matches!(case.kind, OpKind::Shuffle(titan_core::lane::Shuffle::Index)) {
        all.iter_mut().for_each(|v| v[1] %= 32);
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

/// Runs a case and compares; how many threads had something to expect.
fn check(case: &Case, target: &str, expect: Expect) -> usize {
    let unary = matches!(case.kind, OpKind::Convert { .. } | OpKind::FloatUn(..));
    let exhaustive = target == "sm_80" && unary && test_depth::is_full();
    let inputs = inputs(case, exhaustive);
    let tys = results(case);
    let found = cells(&case.func, machine(target), &inputs, tys.len());
    let mut compared = 0;
    for (thread, found) in found.iter().enumerate() {
        let Some(wants) = expect(case, &inputs, thread) else { continue };
        compared += 1;
        assert_eq!(wants.len(), tys.len());
        for ((want, found), ty) in wants.iter().zip(found).zip(&tys) {
            let found = found & if *ty == Ty::Pred { 0xffff_ffff } else { mask(*ty) };
            let operands = &inputs[thread];
            assert!(want.holds(found), "{} on {target}: {operands:x?} gives {found:#x}, not {want:x?}", case.func.name);
        }
    }
    compared
}

fn runnable(case: &Case, target: &str) -> bool {
    !matches!(emit(&case.func, machine(target), None), Err(EmitError::Operation { .. }))
}

fn run_all(cases: &[Case], expect: Expect) {
    let mut all: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        for target in targets(number, case) {
            let compared = check(case, target, expect);
            assert!(compared > 0, "{}: nothing was compared", case.func.name);
            let (ran, threads) = all.entry(target).or_default();
            (*ran, *threads) = (*ran + 1, *threads + compared);
        }
    }
    for (target, (ran, threads)) in all {
        crate::ptxas::say(&format!("{target}: {ran} operations, {threads} operand tuples"));
    }
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

#[test]
fn integers_and_words() {
    let floats = |kind: &OpKind| {
        matches!(
            kind,
            OpKind::Float(..) | OpKind::FloatUn(..) | OpKind::Fma(_) | OpKind::FloatCmp(..) | OpKind::Convert { .. }
        )
    };
    let cases = scalars(|_| true).into_iter().filter(|case| !floats(&case.kind)).collect::<Vec<_>>();
    assert!(cases.len() > 80, "{}", cases.len());
    run_all(&cases, scalar);
}

#[test]
fn floats() {
    let cases =
        scalars(|kind| matches!(kind, OpKind::Float(..) | OpKind::FloatUn(..) | OpKind::Fma(_) | OpKind::FloatCmp(..)));
    assert!(cases.len() > 60, "{}", cases.len());
    run_all(&cases, scalar);
}

#[test]
fn conversions() {
    let cases = scalars(|kind| matches!(kind, OpKind::Convert { .. }));
    assert!(cases.len() > 150, "{}", cases.len());
    run_all(&cases, scalar);
}

#[test]
fn signs_that_nothing_sees() {
    run_all(&cases::signs(), |case, inputs, thread| {
        let OpKind::FloatUn(op, ty) = case.kind else { unreachable!("signs are functions") };
        let [x, y] = [inputs[thread][0], inputs[thread][1]];
        let sign = mask(ty.ty()) / 2 + 1;
        let x = if op == FloatUn::Neg { x ^ sign } else { x & !sign };
        let sum = super::numbers::binary(titan_core::lane::FloatBin::Add, ty, x, y);
        Some(vec![Want::Number(num(ty), sum)])
    });
}

#[test]
fn shuffles_and_votes() {
    let mut cases = cases::registers();
    cases.retain(|case| matches!(case.kind, OpKind::Shuffle(_) | OpKind::Vote(_)));
    assert_eq!(cases.len(), 6);
    run_all(&cases, |case, inputs, thread| {
        let first = thread / 32 * 32;
        let bits = reference::of_warp(&case.kind, &inputs[first..first + 32], thread % 32)?;
        Some(vec![Want::Bits(bits)])
    });
}

/// Operations without operands, such as the index of the thread: three programs of 64 threads.
#[test]
fn places() {
    let mut cases = cases::registers();
    cases.retain(|case| case.args.is_empty() && !matches!(case.kind, OpKind::Const(..)));
    assert_eq!(cases.len(), 11);
    for case in &cases {
        let found = cells(&case.func, machine("sm_80"), &vec![vec![]; 192], 1);
        let bases: Vec<u64> = found.iter().map(|f| f[0]).collect();
        for (i, found) in (0..).zip(&bases) {
            let thread = i % 64;
            let want = match case.kind {
                OpKind::ThreadId => thread,
                OpKind::LaneId => thread % 32,
                OpKind::WarpId => thread / 32,
                OpKind::ProgramId(0) => i / 64,
                OpKind::ProgramId(_) => 0,
                OpKind::NumPrograms(0) => 3,
                OpKind::NumPrograms(_) => 1,
                // Addresses: the same in all threads.
                _ => {
                    assert_eq!(*found, bases[0], "{}", case.func.name);
                    if case.kind == OpKind::SharedBase {
                        assert_eq!(found & 1023, 0, "shared memory begins on a multiple of 1024");
                    }
                    continue;
                }
            };
            assert_eq!(found & 0xffff_ffff, want, "{} of thread {i}", case.func.name);
        }
    }
}

#[test]
fn constants_are_written_with_all_their_bits() {
    for ty in [Ty::B16, Ty::B32, Ty::B64] {
        for value in values::integers(ty) {
            let (mut b, _, to) = cases::begin("constant", 1, 1);
            let constant = b.one(OpKind::Const(ty, value), &[]);
            cases::store(&mut b, constant, to, 0);
            b.terminate(OpKind::Return, &[]);
            let found = cells(&b.finish().unwrap(), machine("sm_80"), &vec![vec![0]; 64], 1);
            assert_eq!(found[5][0] & mask(ty), value, "{ty}");
        }
    }
}

/// Constants of every width in the operand of every operation that takes one.
#[test]
fn constant_operands() {
    for (number, case) in scalars(|kind| !matches!(kind, OpKind::Const(..))).into_iter().enumerate() {
        for target in targets(number, &case) {
            for place in 0..case.args.len() {
                constant_operand(&case, target, place);
            }
        }
    }
}

fn constant_operand(case: &Case, target: &str, place: usize) {
    let inputs = inputs(case, false);
    let defined = |v: &&Vec<u64>| {
        reference::of(&case.kind, &case.args, v).is_some() && !v.iter().any(|x| reference::may_flush(&case.kind, *x))
    };
    let Some(values) = inputs.iter().filter(defined).nth(37) else { return };
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
    let found = cells(&b.finish().unwrap(), machine(target), &vec![values.clone(); 64], tys.len());
    let wants = reference::of(&case.kind, &case.args, values).unwrap();
    for ((want, found), ty) in wants.iter().zip(&found[0]).zip(&tys) {
        let found = found & if *ty == Ty::Pred { 0xffff_ffff } else { mask(*ty) };
        assert!(
            want.holds(found),
            "{} on {target}, constant {place}: {values:x?} gives {found:#x}, not {want:x?}",
            case.func.name
        );
    }
}
