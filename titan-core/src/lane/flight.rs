//! Registers of MMAs in flight: between the start of a warpgroup's MMA and the wait for its group, no other instruction may read or write
//! its results. They are passed from MMA to MMA, through loops and branches, to the wait, which returns them as ordinary values.
//!
//! ```text
//! %d = group_mma.. %a, %b, %c       in flight
//! for .. carry(%x = %d)             %x and the result of the loop are in flight too
//!     %y = group_mma.. %p, %q, %x
//!     continue %y
//! %z = group_wait 0 %r              ordinary: the result of the loop, complete
//! ```
//!
//! So a back end may keep each of them in one register from the first MMA on, and no instruction in between accesses it.
//!
//! Deliberately absent: which groups a wait completes; the verifier of barrier programs checks that (`crate::verify::barriers`).

use super::family::{Family, Flow, Grouped};
use super::func::{Func, Op, OpId, Value};
use super::nv::NvOp;
use super::op::OpKind;
use crate::collections::{SortedMap, SortedSet};

/// The values in flight: the results of MMAs, and the values that loops and branches derive from them.
#[must_use]
pub fn in_flight(func: &Func) -> SortedSet<Value> {
    let starts = |op: &Op| matches!(op.kind, OpKind::Nv(NvOp::GroupMma(_)));
    let mut found: SortedSet<Value> =
        func.ops.iter().filter(|op| starts(op)).flat_map(|op| &op.results).copied().collect();
    if found.is_empty() {
        return found;
    }
    let handed = handed(func);
    loop {
        let next = |hand: &&Hand| found.contains(&hand.from) && !found.contains(&hand.to);
        let more: Vec<Value> = handed.iter().filter(next).map(|hand| hand.to).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// The values in flight, each with the first of those in the same registers: the results of MMAs that add to each other, and what loops and
/// branches pass on. The verifier of barrier programs has shown that at most one of these is in flight at a time.
#[must_use]
pub fn homes(func: &Func) -> SortedMap<Value, Value> {
    let in_flight = in_flight(func);
    let mut pairs: Vec<(Value, Value)> = handed(func).into_iter().map(|hand| (hand.from, hand.to)).collect();
    for op in &func.ops {
        if let OpKind::Nv(NvOp::GroupMma(mma)) = &op.kind {
            let sums = op.args.iter().skip(mma.registers().0.max(1) + 1);
            pairs.extend(sums.copied().zip(op.results.iter().copied()));
        }
    }
    pairs.retain(|(from, to)| in_flight.contains(from) && in_flight.contains(to));
    let mut homes: SortedMap<Value, Value> = in_flight.into_iter().map(|value| (value, value)).collect();
    // Both values of a pair take the smaller home of the two until nothing changes. This ends: homes only become smaller.
    loop {
        let mut changed = false;
        for (from, to) in &pairs {
            let (Some(a), Some(b)) = (homes.get(from).copied(), homes.get(to).copied()) else { continue };
            changed |= a != b;
            homes.insert(*from, a.min(b));
            homes.insert(*to, a.min(b));
        }
        if !changed {
            return homes;
        }
    }
}

/// The first operation that violates these rules for values in flight, with a message.
pub(super) fn check(func: &Func) -> Option<(OpId, String)> {
    let in_flight = in_flight(func);
    if in_flight.is_empty() {
        return None;
    }
    // The values that are in flight on some of the paths that lead to them. A loop may begin with ordinary values, before any of its MMAs.
    let mut mixed = handed(func);
    mixed.retain(|hand| !hand.initial && in_flight.contains(&hand.to) && !in_flight.contains(&hand.from));
    let mixed: SortedSet<Value> = mixed.into_iter().map(|hand| hand.to).collect();
    let mut uses: SortedMap<Value, u32> = SortedMap::new();
    let mut wrong = None;
    func.walk(&mut |id, op| {
        for (place, value) in op.args.iter().enumerate().filter(|(_, v)| in_flight.contains(v)) {
            let number = uses.entry(*value).or_default();
            *number += 1;
            if !takes(op, place) {
                wrong.get_or_insert((id, format!("{value} is used while the MMA that computes it is in flight")));
            } else if *number > 1 {
                wrong.get_or_insert((id, format!("{value} of an MMA in flight is used a second time")));
            }
        }
        // If a result of a branch is in flight in one arm, it must be in flight in the other; so must what a loop carries, on each of its
        // `continue`s, and its results, on each of its `break`s. Otherwise the register would be written while an MMA may still write it.
        let blocks = op.regions.iter().flat_map(|block| &func.block(*block).args);
        if let Some(to) = op.results.iter().chain(blocks).find(|to| mixed.contains(to)) {
            wrong.get_or_insert((id, format!("{to} is in flight on one path only")));
        }
    });
    wrong
}

/// Whether an operation may have a value in flight as this operand.
fn takes(op: &Op, place: usize) -> bool {
    match op.kind.family() {
        // The operands are A, the descriptor of B, then C; only C may be in flight.
        Family::Group(Grouped::Mma(mma)) => place > mma.registers().0.max(1),
        Family::Flow(Flow::For) => place >= 3,
        Family::Group(Grouped::Await(_)) => true,
        Family::Flow(Flow::Loop | Flow::Yield | Flow::Break(_) | Flow::Continue(_)) => true,
        // All others read their operands.
        Family::Pure
        | Family::Warp
        | Family::Mark { .. }
        | Family::Access { .. }
        | Family::Matrix { .. }
        | Family::Copy(_)
        | Family::Protocol
        | Family::Order
        | Family::Group(Grouped::Commit | Grouped::Plain)
        | Family::Barrier(_)
        | Family::Flow(Flow::If | Flow::Roles(_) | Flow::Return) => false,
    }
}

/// A value that another one receives through a loop or branch.
struct Hand {
    from: Value,
    to: Value,
    /// Whether it is an initial value of a loop.
    initial: bool,
}

/// The values that others receive.
fn handed(func: &Func) -> Vec<Hand> {
    let mut found = Vec::new();
    walk(func, func.body, &mut Vec::new(), None, &mut found);
    found
}

fn walk<'f>(
    func: &'f Func,
    block: super::func::Block,
    loops: &mut Vec<&'f Op>,
    arm_of: Option<&'f Op>,
    found: &mut Vec<Hand>,
) {
    let carried = |op: &Op| -> Vec<Value> {
        let args = op.regions.first().map_or(&[][..], |body| &func.block(*body).args);
        args.get(usize::from(op.kind == OpKind::For)..).unwrap_or_default().to_vec()
    };
    for id in &func.block(block).ops {
        let op = func.op(*id);
        let mut pass = |from: &[Value], to: &[Value], initial: bool| {
            found.extend(from.iter().zip(to).map(|(from, to)| Hand { from: *from, to: *to, initial }));
        };
        let Family::Flow(flow) = op.kind.family() else { continue };
        match flow {
            Flow::For | Flow::Loop => {
                let init = op.args.get(if op.kind == OpKind::For { 3 } else { 0 }..).unwrap_or_default();
                pass(init, &carried(op), true);
                if op.kind == OpKind::For {
                    pass(&carried(op), &op.results, false);
                }
                loops.push(op);
                op.regions.iter().for_each(|body| walk(func, *body, loops, None, found));
                loops.pop();
            }
            Flow::If | Flow::Roles(_) => {
                op.regions.iter().for_each(|arm| walk(func, *arm, loops, Some(op), found));
            }
            Flow::Yield => pass(&op.args, arm_of.map_or(&[][..], |op| &op.results), false),
            Flow::Break(n) | Flow::Continue(n) => {
                let Some(around) = loops.len().checked_sub(1 + n as usize).and_then(|at| loops.get(at)) else {
                    continue;
                };
                if matches!(flow, Flow::Break(_)) {
                    pass(&op.args, &around.results, false);
                } else {
                    pass(&op.args, &carried(around), false);
                }
            }
            // The end of the thread hands nothing on.
            Flow::Return => {}
        }
    }
}
