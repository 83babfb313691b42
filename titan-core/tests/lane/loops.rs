//! What does not change in a loop stands in front of it, and nothing else is moved.

use crate::machine::Machine;
use crate::machine::memory::Memory;
use titan_core::ir::Pred;
use titan_core::lane::{Block, Builder, Func, IntBin, OpKind, Role, Space, Ty, Value, verify};
use titan_core::launch::abi::Slot;

fn word(param: u32) -> Slot {
    Slot::Scalar { param, wide: false }
}

fn builder(slots: u32) -> Builder {
    Builder::new("k", (0..slots).map(word).collect(), 64, 32)
}

/// The block in which a value is computed.
fn block_of(func: &Func, value: Value) -> Block {
    let made = |block: &usize| func.blocks[*block].ops.iter().any(|op| func.op(*op).results.contains(&value));
    Block::new((0..func.blocks.len()).find(made).expect("it is computed"))
}

fn finished(b: Builder) -> Func {
    let func = b.finish().expect("operands fit");
    verify(&func).unwrap_or_else(|e| panic!("{e}\n{func}"));
    func
}

#[test]
fn what_does_not_change_stands_in_front_of_the_outermost_loop() {
    let mut b = builder(2);
    let (n, x) = (b.one(OpKind::Slot(0), &[]), b.one(OpKind::Slot(1), &[]));
    let (zero, one) = (b.i32(0), b.i32(1));
    let (outer, i, a) = b.begin_for([zero, n, one], &[zero]);
    let (inner, j, c) = b.begin_for([zero, n, one], &[a[0]]);
    let lane = b.one(OpKind::LaneId, &[]);
    let still = b.mul(lane, x);
    let of_outer = b.mul(still, i);
    let of_inner = b.mul(of_outer, j);
    let sum = b.add(c[0], of_inner);
    b.terminate(OpKind::Continue(0), &[sum]);
    let c = b.end(inner);
    b.terminate(OpKind::Continue(0), &c);
    b.end(outer);
    b.terminate(OpKind::Return, &[]);
    let func = finished(b);
    assert_eq!(block_of(&func, still), func.body);
    assert_eq!(block_of(&func, lane), func.body);
    let args = |value: Value| func.block(block_of(&func, value)).args.clone();
    assert!(args(of_outer).contains(&i) && args(of_inner).contains(&j), "{func}");
}

/// An arm of a branch in a loop asks for it, so it is computed in front of the loop whether or not the arm runs.
#[test]
fn only_what_is_always_defined_is_computed_early() {
    let mut b = builder(3);
    let [n, x, by] = [0, 1, 2].map(|i| b.one(OpKind::Slot(i), &[]));
    let (zero, one) = (b.i32(0), b.i32(1));
    let (open, _, _) = b.begin_for([zero, n, one], &[]);
    let some = b.cmp_u(Pred::Ne, by, zero);
    let mut arms = b.begin_if(some, &[Ty::B32]);
    let eight = b.i32(8);
    let (safe, risky) = (b.int(IntBin::RemS, x, eight), b.int(IntBin::DivS, x, by));
    let (shifted, far) = (b.int(IntBin::Shl, x, eight), b.int(IntBin::ShrU, x, by));
    let from = b.one(OpKind::SharedBase, &[]);
    let loaded = b.one(OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[from]);
    let all = [safe, risky, shifted, far, loaded].into_iter().reduce(|a, c| b.add(a, c)).expect("there are some");
    b.terminate(OpKind::Yield, &[all]);
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[zero]);
    b.end(arms);
    b.terminate(OpKind::Continue(0), &[]);
    b.end(open);
    b.terminate(OpKind::Return, &[]);
    let mut func = finished(b);
    func.shared_bytes = 16;
    for (value, early) in [(safe, true), (shifted, true), (risky, false), (far, false), (loaded, false)] {
        assert_eq!(block_of(&func, value) == func.body, early, "{value} of\n{func}");
    }
    // Where the arm is not executed, no thread divides by zero.
    let mut machine = Machine::new(&func, vec![3, 7, 0], Memory::new());
    machine.run([0; 3]);
    assert!(machine.wrong.is_empty(), "{:?}", machine.wrong);
}

/// A condition is computed where it is asked for, and once more in front of the loop for what is chosen by it there.
#[test]
fn conditions_stay_in_loops_and_what_they_choose_leaves_them() {
    let mut b = builder(3);
    let [n, x, y] = [0, 1, 2].map(|i| b.one(OpKind::Slot(i), &[]));
    let (zero, one) = (b.i32(0), b.i32(1));
    let (open, i, c) = b.begin_for([zero, n, one], &[zero]);
    let (low, high) = (b.cmp_s(Pred::Lt, x, y), b.cmp_s(Pred::Gt, x, zero));
    let both = b.and(low, high);
    let chosen = b.select(both, x, y);
    let also = b.select(both, i, chosen);
    let sum = b.add(c[0], also);
    b.terminate(OpKind::Continue(0), &[sum]);
    let out = b.end(open)[0];
    b.terminate(OpKind::Return, &[]);
    let func = finished(b);
    assert_eq!(block_of(&func, chosen), func.body);
    assert!(block_of(&func, both) != func.body && block_of(&func, low) != func.body, "{func}");
    for (x, y) in [(1u64, 5u64), (5, 1), (0, 9), (3, 3)] {
        let mut machine = Machine::new(&func, vec![4, x, y], Memory::new());
        machine.run([0; 3]);
        let both = x < y && x > 0;
        let want: u64 = (0..4).map(|i| if both { i } else { y }).sum();
        assert_eq!(machine.get(out, 0), want, "{x} {y} of\n{func}");
    }
}

#[test]
fn what_a_role_computes_stays_in_its_code() {
    let mut b = builder(2);
    let (n, x) = (b.one(OpKind::Slot(0), &[]), b.one(OpKind::Slot(1), &[]));
    let (zero, one) = (b.i32(0), b.i32(1));
    let (outer, _, _) = b.begin_for([zero, n, one], &[]);
    let mut roles = b.begin_roles(&[Role { warps: 1, barrier: 1 }, Role { warps: 1, barrier: 2 }], &[]);
    let (open, _, c) = b.begin_for([zero, n, one], &[zero]);
    let still = b.mul(x, n);
    let sum = b.add(c[0], still);
    b.terminate(OpKind::Continue(0), &[sum]);
    b.end(open);
    b.terminate(OpKind::Yield, &[]);
    b.begin_else(&mut roles);
    b.terminate(OpKind::Yield, &[]);
    b.end(roles);
    b.terminate(OpKind::Continue(0), &[]);
    b.end(outer);
    b.terminate(OpKind::Return, &[]);
    let func = finished(b);
    let code = func.ops.iter().find(|op| matches!(op.kind, OpKind::Roles(_))).expect("roles part").regions[0];
    assert_eq!(block_of(&func, still), code, "{func}");
}

/// The index of a loop lies between its bounds, so what is asked of it may be known, or be solved for a constant.
#[test]
fn what_is_asked_of_an_index_is_answered_right() {
    for (lo, hi, extent) in [(0, 5i32, 3), (2, 9, 9), (0, 4, 0), (-3, 3, 2)] {
        let mut b = Builder::new("k", vec![word(0), Slot::Extent(1, 0)], 32, 32);
        let (n, extent_of) = (b.one(OpKind::Slot(0), &[]), b.one(OpKind::Slot(1), &[]));
        let [zero, one, most, from, width] = [0, 1, 1 << 20, lo, 8].map(|c| b.i32(c));
        let upper = b.int(IntBin::MinS, n, most);
        let (open, i, c) = b.begin_for([from, upper, one], &[zero]);
        let first = b.mul(i, width);
        let mut count = c[0];
        for part in 0..8 {
            let at = b.add_const(first, part);
            let (inside, low) = (b.cmp_s(Pred::Lt, at, extent_of), b.cmp_s(Pred::Ge, i, from));
            let both = b.and(inside, low);
            let more = b.one(OpKind::FromPred, &[both]);
            count = b.add(count, more);
        }
        b.terminate(OpKind::Continue(0), &[count]);
        let out = b.end(open)[0];
        b.terminate(OpKind::Return, &[]);
        let func = finished(b);
        let words = vec![u64::from(i32::cast_unsigned(hi)), extent];
        let mut machine = Machine::new(&func, words, Memory::new());
        machine.run([0; 3]);
        let want =
            (lo..hi).flat_map(|i| (0..8).map(move |p| 8 * i + p)).filter(|at| i64::from(*at) < extent as i64).count();
        assert_eq!(machine.get(out, 0), want as u64, "{lo} {hi} {extent} of\n{func}");
    }
}
