//! Divergence: what is called the same must be the same wherever a program is run, and plain cases must be known.

use crate::machine::{Machine, Rng};
use crate::programs::{arguments, program};
use std::collections::BTreeSet;
use titan_core::ir::Pred;
use titan_core::lane::uniform::{Level, analyze};
use titan_core::lane::{Builder, Func, IntBin, OpId, OpKind, Shuffle, Space, Ty, Value, Vote};
use titan_core::launch::abi::Slot;

#[test]
fn what_is_called_the_same_is_the_same() {
    let (mut together, mut warp, mut apart, mut convergent, mut reached) = (0, 0, 0, 0, 0);
    let programs = test_depth::cases(1500, 400);
    for seed in 0..u64::from(programs) {
        let mut rng = Rng::new(seed);
        let func = program(&mut rng, true);
        let found = analyze(&func);
        let diverged: BTreeSet<OpId> = found.diverged().iter().map(|(id, _)| *id).collect();
        func.walk(&mut |_, op| convergent += u32::from(op.kind.is_convergent()));
        for _ in 0..3 {
            let (words, memory) = arguments(&mut rng);
            let mut machine = Machine::new(&func, words, memory);
            machine.run([1, 0, 0]);
            assert!(machine.wrong.is_empty() && !machine.ran_out(), "{:?}", machine.wrong);
            for id in &machine.diverged {
                reached += 1;
                assert!(diverged.contains(id), "seed {seed}: {id} is reached by some lanes only\n{func}");
            }
            for i in 0..func.values.len() {
                let (value, (program, in_warp)) = (Value::new(i), machine.differed[i]);
                let level = found.level(value);
                assert!(level > Level::Program || !program, "seed {seed}: {value} differs in the program\n{func}");
                assert!(level > Level::Warp || !in_warp, "seed {seed}: {value} differs in a warp\n{func}");
                together += u32::from(level == Level::Program);
                warp += u32::from(level == Level::Warp);
                apart += u32::from(level == Level::Lane);
            }
        }
    }
    let few = together.min(warp).min(apart) < 2 * programs || 3 * convergent < programs || 5 * reached < programs;
    assert!(!few, "{together}, {warp} and {apart} values, {convergent} operations, {reached} times reached by some");
}

struct Case {
    b: Builder,
    lane: Value,
    warp: Value,
    n: Value,
}

fn case() -> Case {
    let mut b = Builder::new("k", vec![Slot::Address(0), Slot::Scalar { param: 1, wide: false }], 64, 32);
    let (lane, warp, n) = (b.one(OpKind::LaneId, &[]), b.one(OpKind::WarpId, &[]), b.one(OpKind::Slot(1), &[]));
    Case { b, lane, warp, n }
}

fn finished(mut b: Builder) -> Func {
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("operands fit")
}

#[test]
fn sources_and_data() {
    let Case { mut b, lane, warp, n } = case();
    let load = |offset| OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset, masked: false };
    let base = b.one(OpKind::SharedBase, &[]);
    let at = b.add(base, lane);
    let wat = b.add(base, warp);
    let five = b.i32(5);
    let cond = b.cmp_u(Pred::Lt, lane, five);
    let mut wanted =
        vec![(lane, Level::Lane), (warp, Level::Warp), (n, Level::Program), (base, Level::Program), (at, Level::Lane)];
    let mut one = |b: &mut Builder, kind: OpKind, args: &[Value], level| wanted.push((b.one(kind, args), level));
    one(&mut b, OpKind::ThreadId, &[], Level::Lane);
    one(&mut b, OpKind::ProgramId(1), &[], Level::Program);
    one(&mut b, load(0), &[base], Level::Program);
    one(&mut b, load(4), &[wat], Level::Warp);
    one(&mut b, load(8), &[at], Level::Lane);
    one(&mut b, OpKind::Shuffle(Shuffle::Lane(3)), &[lane], Level::Warp);
    one(&mut b, OpKind::Shuffle(Shuffle::Xor(3)), &[lane], Level::Lane);
    one(&mut b, OpKind::Shuffle(Shuffle::Index), &[lane, warp], Level::Lane);
    one(&mut b, OpKind::Vote(Vote::Any), &[cond], Level::Warp);
    one(&mut b, OpKind::Int(IntBin::Add), &[n, warp], Level::Warp);
    one(&mut b, OpKind::Select, &[cond, n, five], Level::Lane);
    let atomic = OpKind::Atomic { op: titan_core::lane::AtomicFn::Add, space: Space::Shared, masked: false };
    one(&mut b, atomic, &[base, n], Level::Lane);
    one(&mut b, OpKind::CompareSwap(Space::Shared), &[base, n, n], Level::Lane);
    let found = analyze(&finished(b));
    for (value, level) in wanted {
        assert!(found.level(value) >= level, "{value} is {:?}", found.level(value));
        // A lane's number is not asked for more than it must be.
        assert!(
            found.level(value) == level || level == Level::Lane,
            "{value} is {:?}, not {level:?}",
            found.level(value)
        );
    }
}

#[test]
fn control_parts_lanes_no_more_than_it_must() {
    let Case { mut b, lane, warp, n } = case();
    let (zero, one, five) = (b.i32(0), b.i32(1), b.i32(5));
    let mut wanted = Vec::new();
    // What arms give differs as the condition does.
    for (of, level) in [(n, Level::Program), (warp, Level::Warp), (lane, Level::Lane)] {
        let cond = b.cmp_u(Pred::Lt, of, one);
        let mut arms = b.begin_if(cond, &[Ty::B32]);
        b.terminate(OpKind::Yield, &[one]);
        b.begin_else(&mut arms);
        b.terminate(OpKind::Yield, &[five]);
        wanted.push((b.end(arms)[0], level));
    }
    // A loop of as many rounds in every lane, or not.
    for (hi, level) in [(n, Level::Program), (warp, Level::Warp), (lane, Level::Lane)] {
        let (open, index, carried) = b.begin_for([zero, hi, one], &[zero]);
        let next = b.add(carried[0], index);
        // A constant of the inside is the same for those that get it.
        let inner = b.add_const(n, 17);
        wanted.extend([(index, level), (carried[0], level), (inner, Level::Program)]);
        b.terminate(OpKind::Continue(0), &[next]);
        wanted.push((b.end(open)[0], level));
    }
    // Behind loops and branches that some lanes took, all are together again.
    let after = b.cmp_u(Pred::Lt, n, five);
    b.op(OpKind::Barrier, &[]);
    let vote = b.one(OpKind::Vote(Vote::All), &[after]);
    wanted.extend([(after, Level::Program), (vote, Level::Warp)]);
    // A loop that all lanes leave at once.
    let (open, carried) = b.begin_loop(&[zero], &[Ty::B32]);
    let enough = b.cmp_u(Pred::Ge, carried[0], n);
    let mut arms = b.begin_if(enough, &[]);
    b.terminate(OpKind::Break(0), &[carried[0]]);
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
    b.op(OpKind::Barrier, &[]);
    let next = b.add(carried[0], one);
    b.terminate(OpKind::Continue(0), &[next]);
    wanted.extend([(carried[0], Level::Program), (next, Level::Program)]);
    wanted.push((b.end(open)[0], Level::Program));
    let func = finished(b);
    let found = analyze(&func);
    assert_eq!(found.diverged(), [], "{func}");
    for (value, level) in wanted {
        assert_eq!(found.level(value), level, "{value} of\n{func}");
    }
}

/// A loop that lanes leave one by one.
fn left_one_by_one(inside: impl FnOnce(&mut Builder, Value, Value), behind: bool) -> Func {
    let Case { mut b, lane, n, .. } = case();
    let zero = b.i32(0);
    let (open, carried) = b.begin_loop(&[zero], &[Ty::B32]);
    let enough = b.cmp_u(Pred::Ge, carried[0], lane);
    if !behind {
        inside(&mut b, carried[0], n);
        b.op(OpKind::Barrier, &[]);
    }
    let mut arms = b.begin_if(enough, &[]);
    b.terminate(OpKind::Break(0), &[carried[0]]);
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
    if behind {
        b.op(OpKind::Barrier, &[]);
    }
    let next = b.add_const(carried[0], 1);
    b.terminate(OpKind::Continue(0), &[next]);
    b.end(open);
    finished(b)
}

#[test]
fn lanes_that_leave_a_loop_at_different_times_have_parted_in_it() {
    for behind in [false, true] {
        let func = left_one_by_one(|_, _, _| (), behind);
        assert_eq!(
            analyze(&func).diverged().len(),
            1,
            "also before the break: the next round is without those that left\n{func}"
        );
    }
}
