//! The check of what may leave loops, against mutants: each weaker check gives a program that goes wrong when it is run.
//!
//! The builder moves an operation in front of a loop without knowing whether the loop, or the arm of a branch in it, is executed by this
//! lane. [`moved`] does the same after the fact, and takes the check as an argument. With the check of [`is_defined`] programs stay as they
//! are, conditions that leave their loops included. With one clause less, lanes compute what they never asked for: they divide by zero,
//! shift by the width or more, access memory outside of tensors, read a value before it is written, or write what others were to write.
//!
//! There are no mutants for operations of a whole warp: `verify` accepts them only where all lanes are together, and there they give the
//! same in front of the loop.

use crate::machine::memory::Memory;
use crate::machine::{Machine, Rng};
use crate::programs;
use titan_core::ir::Pred;
use titan_core::lane::{AtomicFn, Builder, Func, IntBin, Op, OpId, OpKind, Space, Ty, Value, verify};
use titan_core::launch::abi::Slot;

const THREADS: u32 = 32;
/// The words of the tensor: fewer than there are lanes.
const WORDS: u32 = 16;

/// Whether an operation has no effects, and is defined for all values that its operands may have.
fn is_defined(func: &Func, op: &Op) -> bool {
    let constant = op.args.get(1).and_then(|v| func.constant(*v));
    match op.kind {
        OpKind::Int(IntBin::DivS | IntBin::DivU | IntBin::RemS | IntBin::RemU) => constant.is_some_and(|by| by != 0),
        OpKind::Int(IntBin::Shl | IntBin::ShrS | IntBin::ShrU) => constant.is_some_and(|by| by < 32),
        OpKind::Int(_)
        | OpKind::IntCmp { .. }
        | OpKind::Const(..)
        | OpKind::LaneId
        | OpKind::Select
        | OpKind::Extend { .. }
        | OpKind::FromPred => true,
        _ => false,
    }
}

type Check<'c> = &'c dyn Fn(&Func, &Op) -> bool;

/// The function with everything in front of its loops that the check lets go and, unless `blind`, whose operands are known there; and how
/// many operations were moved.
fn moved(func: &Func, may: Check<'_>, blind: bool) -> (Func, usize) {
    let (mut func, mut count) = (func.clone(), 0);
    // The blocks of a loop have greater numbers than the block around it, so outer loops come first.
    for block in 0..func.blocks.len() {
        let mut at = 0;
        while let Some(looped) = func.blocks[block].ops.get(at).copied() {
            let inside = if is_loop(&func, looped) { blocks_of(&func, looped) } else { Vec::new() };
            while let Some((from, place)) = next(&func, &inside, may, blind) {
                let op = func.blocks[from].ops.remove(place);
                func.blocks[block].ops.insert(at, op);
                (at, count) = (at + 1, count + 1);
            }
            at += 1;
        }
    }
    (func, count)
}

fn is_loop(func: &Func, id: OpId) -> bool {
    matches!(func.op(id).kind, OpKind::For | OpKind::Loop)
}

/// The blocks in an operation's regions, the code of roles excepted.
fn blocks_of(func: &Func, id: OpId) -> Vec<usize> {
    let op = func.op(id);
    if let OpKind::Roles(_) = op.kind {
        return Vec::new();
    }
    let nested = |block: &usize| func.blocks[*block].ops.iter().flat_map(|id| blocks_of(func, *id)).collect::<Vec<_>>();
    op.regions.iter().map(|r| r.index()).flat_map(|block| [vec![block], nested(&block)].concat()).collect()
}

/// The first operation in these blocks that may be moved, by its block and place.
fn next(func: &Func, inside: &[usize], may: Check<'_>, blind: bool) -> Option<(usize, usize)> {
    let mut made: Vec<Value> = Vec::new();
    for block in inside {
        made.extend(&func.blocks[*block].args);
        made.extend(func.blocks[*block].ops.iter().flat_map(|id| &func.op(*id).results));
    }
    let free = |id: &OpId| {
        let op = func.op(*id);
        let known = op.args.iter().all(|arg| !made.contains(arg));
        op.regions.is_empty() && !op.kind.is_terminator() && (known || blind) && may(func, op)
    };
    inside.iter().find_map(|block| Some((*block, func.blocks[*block].ops.iter().position(free)?)))
}

/// A program, and the operation in it that must stay in its loop.
struct Case {
    func: Func,
    out: Value,
    stays: Value,
    /// The iterations of its loop.
    trips: u64,
    /// Whether the tensor is there.
    passed: bool,
}

/// What the programs are made of: a number, the lane, whether the lane is odd, and the address of a tensor.
struct Given {
    x: Value,
    lane: Value,
    odd: Value,
    tensor: Value,
}

/// How the loop asks for the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// In an arm of a branch, which only some lanes take.
    Arm,
    /// In its body, which only some lanes enter.
    Body,
}

/// A loop that adds up the results of an operation, for the lanes for which `takes` gives true.
fn case(
    asked: Asked,
    takes: impl Fn(&mut Builder, &Given) -> Value,
    makes: impl Fn(&mut Builder, &Given, Value) -> Value,
) -> Case {
    let slots = vec![Slot::Address(0), Slot::Scalar { param: 1, wide: false }, Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new("k", slots, THREADS, 32);
    let (tensor, n, x) = (b.one(OpKind::Slot(0), &[]), b.one(OpKind::Slot(1), &[]), b.one(OpKind::Slot(2), &[]));
    let lane = b.one(OpKind::LaneId, &[]);
    let (zero, one) = (b.i32(0), b.i32(1));
    let odd = b.and(lane, one);
    let given = Given { x, lane, odd, tensor };
    let takes = takes(&mut b, &given);
    let trips = if asked == Asked::Arm { n } else { b.select(takes, n, zero) };
    let (open, _, c) = b.begin_for([zero, trips, one], &[zero]);
    let (stays, next) = if asked == Asked::Arm {
        let mut arms = b.begin_if(takes, &[Ty::B32]);
        let stays = makes(&mut b, &given, c[0]);
        let sum = b.add(c[0], stays);
        b.terminate(OpKind::Yield, &[sum]);
        b.begin_else(&mut arms);
        b.terminate(OpKind::Yield, &[c[0]]);
        (stays, b.end(arms)[0])
    } else {
        let stays = makes(&mut b, &given, c[0]);
        (stays, b.add(c[0], stays))
    };
    b.terminate(OpKind::Continue(0), &[next]);
    let out = b.end(open)[0];
    b.terminate(OpKind::Return, &[]);
    let func = b.finish().expect("operands fit");
    verify(&func).unwrap_or_else(|e| panic!("{e}\n{func}"));
    Case { func, out, stays, trips: 3, passed: true }
}

impl Case {
    /// The sums, the memory, and what went wrong.
    fn run(&self, func: &Func) -> (Vec<u64>, Vec<u8>, bool) {
        let mut memory = Memory::new();
        let words: Vec<u8> = (0..WORDS).flat_map(|i| (i + 5).to_le_bytes()).collect();
        let tensor = memory.add("tensor", words);
        let tensor = if self.passed { tensor } else { 0 };
        let mut machine = Machine::new(func, vec![tensor, self.trips, 0x8765_4321], memory);
        machine.run([0; 3]);
        let sums = (0..THREADS as usize).map(|t| machine.get(self.out, t)).collect();
        (sums, machine.memory.areas[1].bytes.clone(), !machine.wrong.is_empty())
    }

    /// The real check keeps the operation in the loop; the mutant moves it, and what it gives is wrong.
    fn kills(&self, name: &str, mutant: Check<'_>, blind: bool) {
        let in_loop = |func: &Func| {
            let looped = func.blocks[func.body.index()].ops.iter().copied().find(|id| is_loop(func, *id));
            let blocks = blocks_of(func, looped.expect("there is a loop"));
            blocks.iter().any(|b| func.blocks[*b].ops.iter().any(|id| func.op(*id).results.contains(&self.stays)))
        };
        let right = self.run(&self.func);
        assert!(in_loop(&self.func) && !right.2, "{name}: the builder\n{}", self.func);
        let (strict, _) = moved(&self.func, &is_defined, false);
        assert!(in_loop(&strict) && self.run(&strict) == right, "{name}: the check\n{strict}");
        let (weak, count) = moved(&self.func, mutant, blind);
        assert!(count > 0 && !in_loop(&weak), "{name}: nothing was moved\n{weak}");
        let wrong = self.run(&weak);
        assert!(wrong.2 || wrong != right, "{name}: the mutant is not found\n{weak}");
    }
}

const DIVISIONS: [IntBin; 4] = [IntBin::DivS, IntBin::DivU, IntBin::RemS, IntBin::RemU];
const SHIFTS: [IntBin; 3] = [IntBin::Shl, IntBin::ShrS, IntBin::ShrU];

fn is_odd(b: &mut Builder, given: &Given) -> Value {
    let zero = b.i32(0);
    b.cmp_u(Pred::Ne, given.odd, zero)
}

/// False in every lane: `x` is greater than the number of any lane, which the builder does not know of an argument.
fn never(b: &mut Builder, given: &Given) -> Value {
    b.cmp_u(Pred::Gt, given.lane, given.x)
}

#[test]
fn a_divisor_that_may_be_zero_stays() {
    for asked in [Asked::Arm, Asked::Body] {
        for f in DIVISIONS {
            let mutant = move |func: &Func, op: &Op| is_defined(func, op) || op.kind == OpKind::Int(f);
            let by_lane = case(asked, is_odd, |b, given, _| b.int(f, given.x, given.odd));
            by_lane.kills(&format!("{f} {asked:?}"), &mutant, false);
            let by_zero = |b: &mut Builder, given: &Given, _: Value| {
                let zero = b.i32(0);
                b.int(f, given.x, zero)
            };
            // A weaker check that lets every constant divisor go.
            let constant = move |func: &Func, op: &Op| {
                is_defined(func, op) || op.kind == OpKind::Int(f) && func.constant(op.args[1]).is_some()
            };
            case(asked, never, by_zero).kills(&format!("{f} by 0 {asked:?}"), &constant, false);
        }
    }
}

#[test]
fn a_shift_that_may_be_too_far_stays() {
    for asked in [Asked::Arm, Asked::Body] {
        for f in SHIFTS {
            let mutant = move |func: &Func, op: &Op| is_defined(func, op) || op.kind == OpKind::Int(f);
            let near = |b: &mut Builder, given: &Given| {
                let (twice, width) = (b.add(given.lane, given.lane), b.i32(32));
                b.cmp_u(Pred::Lt, twice, width)
            };
            let by_lane = |b: &mut Builder, given: &Given, _: Value| {
                let twice = b.add(given.lane, given.lane);
                b.int(f, given.x, twice)
            };
            case(asked, near, by_lane).kills(&format!("{f} {asked:?}"), &mutant, false);
            let by_width = |b: &mut Builder, given: &Given, _: Value| {
                let width = b.i32(32);
                b.int(f, given.x, width)
            };
            let constant = move |func: &Func, op: &Op| {
                is_defined(func, op) || op.kind == OpKind::Int(f) && func.constant(op.args[1]).is_some()
            };
            case(asked, never, by_width).kills(&format!("{f} by 32 {asked:?}"), &constant, false);
        }
    }
}

/// A condition leaves its loop only with what it is computed from.
#[test]
fn a_condition_on_a_quotient_stays() {
    let mutant = |func: &Func, op: &Op| is_defined(func, op) || op.kind == OpKind::Int(IntBin::DivU);
    for asked in [Asked::Arm, Asked::Body] {
        let condition = case(asked, is_odd, |b, given, _| {
            let (quotient, three) = (b.int(IntBin::DivU, given.x, given.odd), b.i32(3));
            let holds = b.cmp_u(Pred::Gt, quotient, three);
            b.one(OpKind::FromPred, &[holds])
        });
        condition.kills(&format!("{asked:?}"), &mutant, false);
    }
}

/// The word of the tensor with the number of the lane; not all lanes have one.
fn word_of_lane(b: &mut Builder, given: &Given) -> Value {
    let four = b.i32(4);
    let bytes = b.mul(given.lane, four);
    let bytes = b.widen(bytes);
    b.add(given.tensor, bytes)
}

fn has_word(b: &mut Builder, given: &Given) -> Value {
    let words = b.i32(WORDS.cast_signed());
    b.cmp_u(Pred::Lt, given.lane, words)
}

const LOAD: OpKind = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false };

fn loads(func: &Func, op: &Op) -> bool {
    is_defined(func, op) || op.kind == LOAD
}

#[test]
fn a_load_stays() {
    for asked in [Asked::Arm, Asked::Body] {
        let guarded = case(asked, has_word, |b, given, _| {
            let at = word_of_lane(b, given);
            b.one(LOAD, &[at])
        });
        guarded.kills(&format!("a load of a word that is there, {asked:?}"), &loads, false);
        // No lane executes an iteration, because there is no tensor.
        let always = |b: &mut Builder, given: &Given| b.cmp_u(Pred::Lt, given.lane, given.x);
        let absent = case(asked, always, |b, given, _| b.one(LOAD, &[given.tensor]));
        Case { trips: 0, passed: false, ..absent }.kills("a load from no tensor", &loads, false);
        let written = case(asked, has_word, |b, given, sum| {
            let (at, one) = (word_of_lane(b, given), b.i32(1));
            let more = b.add(sum, one);
            b.op(OpKind::Store { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false }, &[at, more]);
            b.one(LOAD, &[at])
        });
        written.kills(&format!("a load of what the loop stores, {asked:?}"), &loads, false);
    }
}

#[test]
fn an_effect_stays() {
    let kind = OpKind::Atomic { op: AtomicFn::Add, space: Space::Global, masked: false };
    let mutant = |func: &Func, op: &Op| is_defined(func, op) || matches!(op.kind, OpKind::Atomic { .. });
    for asked in [Asked::Arm, Asked::Body] {
        let counted = case(asked, is_odd, |b, given, _| b.one(kind.clone(), &[given.tensor, given.odd]));
        counted.kills(&format!("a sum over iterations, {asked:?}"), &mutant, false);
        let by_some = case(asked, is_odd, |b, given, _| b.one(kind.clone(), &[given.tensor, given.lane]));
        Case { trips: 1, ..by_some }.kills(&format!("a sum over odd lanes, {asked:?}"), &mutant, false);
    }
}

#[test]
fn what_changes_in_the_loop_stays() {
    for asked in [Asked::Arm, Asked::Body] {
        let changing = case(asked, is_odd, |b, given, sum| b.mul(sum, given.x));
        let from_one = case(asked, is_odd, |b, given, sum| {
            let one = b.i32(1);
            let next = b.add(sum, one);
            b.mul(next, given.x)
        });
        let only = |func: &Func, op: &Op| is_defined(func, op) && op.kind == OpKind::Int(IntBin::Mul);
        from_one.kills(&format!("{asked:?}"), &only, true);
        let (weak, _) = moved(&changing.func, &only, true);
        assert!(verify(&weak).is_err(), "{weak}");
    }
}

/// The reference of these tests is right: with the whole check, random programs do what they did, and conditions leave their loops.
#[test]
fn with_the_whole_check_programs_stay_as_they_are() {
    let (mut rng, mut count) = (Rng::new(14), 0);
    let rounds = test_depth::cases(300, 100);
    for round in 0..rounds {
        let func = programs::program(&mut rng, round % 2 == 0);
        let (after, n) = moved(&func, &is_defined, false);
        assert_eq!(verify(&after).is_ok(), verify(&func).is_ok(), "{func}\n{after}");
        let (seed, mut results) = (rng.word(), Vec::new());
        for func in [&func, &after] {
            let (slots, memory) = programs::arguments(&mut Rng::new(seed));
            let mut machine = Machine::new(func, slots, memory);
            machine.run([0; 3]);
            let ran_out = machine.ran_out();
            results.push((ran_out, machine.memory.areas[1].bytes.clone(), machine.wrong.clone()));
        }
        if results.iter().all(|r| !r.0) {
            assert_eq!(results[0], results[1], "{func}\n{after}");
            count += n;
        }
    }
    assert!(3 * count > rounds, "{count}");
}
