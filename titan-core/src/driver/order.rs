//! The order of operations in the loops of a laid-out kernel: what keeps the matrix units busy.
//!
//! A product by steps of `k` comes out of laying out as loads and products in turn, behind the copies of a later iteration:
//!
//! ```text
//! copies; L0 M0 L1 M1 L2 M2 L3 M3; release; wait
//! ```
//!
//! Products take long and run beside other instructions. So each step's fragments are loaded before the product of the step
//! before, the first ones (L0 of the next iteration) before the last product; and copies are started when the first product has
//! begun:
//!
//! ```text
//! L1 M0; copies; L2 M1 L3 M2; release; wait; L0 M3
//! ```
//!
//! What moves depends on nothing that it passes. That it does not pass what memory orders is left to the barriers, which are
//! placed after this, and to the verifier of the barrier program.
//!
//! Deliberately absent: orders that depend on the machine, and the search for better ones.

use super::rotate::{is_light, needed, rotate};
use super::schedule::Body;
use crate::ir::{Block, Effect, Kernel, LocalOp, Op, OpId, OpKind, Token, TtgOp, Ty, Value};
use std::collections::BTreeSet;

/// An order for the bodies of all loops that are better in another than the one they have.
#[must_use]
pub(super) fn choose(kernel: &Kernel) -> Vec<Body> {
    let mut found = Vec::new();
    for (number, body) in bodies(kernel).into_iter().enumerate() {
        let early = first_fragments(kernel, body);
        let rotated = if early.is_empty() { None } else { rotate(kernel, body, &early) };
        let ops = &kernel.block(body).ops;
        let ahead = ops.iter().enumerate().filter(|(_, id)| rotated.is_some() && early.contains(id));
        let ahead: Vec<usize> = ahead.map(|(at, _)| at).collect();
        let kernel = rotated.as_ref().unwrap_or(kernel);
        let ops = &kernel.block(body).ops;
        let mut ordered = loads_first(kernel, ops, !ahead.is_empty());
        copies_later(kernel, &mut ordered, !ahead.is_empty());
        if !ahead.is_empty() || ordered != *ops {
            let order = ordered.iter().filter_map(|id| ops.iter().position(|old| old == id)).collect();
            found.push(Body { number, ahead, order });
        }
    }
    found
}

/// Puts the operations of loops into the orders of a schedule. `None` if one is not an order of its loop's operations, or puts a
/// value behind its use.
#[must_use]
pub(super) fn apply(kernel: &Kernel, orders: &[Body]) -> Option<Kernel> {
    let mut made = kernel.clone();
    let bodies = bodies(kernel);
    for Body { number, ahead, order } in orders {
        let block = *bodies.get(*number)?;
        if !ahead.is_empty() {
            let early = ahead.iter().map(|at| made.block(block).ops.get(*at).copied()).collect::<Option<_>>()?;
            made = rotate(&made, block, &early)?;
        }
        let ops = &made.block(block).ops;
        let distinct: BTreeSet<&usize> = order.iter().collect();
        let new: Vec<OpId> = order.iter().map(|at| ops.get(*at).copied()).collect::<Option<_>>()?;
        let whole = distinct.len() == ops.len() && new.len() == ops.len() && new.last() == ops.last();
        if !whole || !defined_first(&made, &new) {
            return None;
        }
        made.blocks.get_mut(block.index())?.ops = new;
    }
    // Values are numbered in the order of the text.
    Some(made.canonical())
}

/// What the first product of a body loads from a stage that the loop carries; nothing if there is no second product, behind which
/// the next stage could be waited for.
fn first_fragments(kernel: &Kernel, body: Block) -> BTreeSet<OpId> {
    let ops = &kernel.block(body).ops;
    let carried = |v: &&Value| matches!(kernel.ty(**v), Ty::Token(Token::Rperm, _));
    let stages: BTreeSet<Value> = kernel.block(body).args.iter().filter(carried).copied().collect();
    let mut products = ops.iter().filter(|id| is_product(kernel.op(**id)));
    let (Some(first), Some(_)) = (products.next(), products.next()) else { return BTreeSet::new() };
    let loads = |v: &Value| {
        let from = ops.iter().copied().find(|id| kernel.op(*id).results.contains(v))?;
        let all = needed(kernel, body, &BTreeSet::from([from]))?;
        let of_stage = all.iter().any(|id| kernel.op(*id).args.iter().any(|v| stages.contains(v)));
        (kernel.op(from).kind == OpKind::Local(LocalOp::Load) && of_stage).then_some(from)
    };
    kernel.op(*first).args.iter().filter_map(loads).collect()
}

/// Whether no operation uses what a later one of the same block gives.
fn defined_first(kernel: &Kernel, ops: &[OpId]) -> bool {
    let mut later: BTreeSet<Value> = ops.iter().flat_map(|id| &kernel.op(*id).results).copied().collect();
    ops.iter().all(|id| {
        let right = !uses(kernel, *id, &later);
        later.retain(|v| !kernel.op(*id).results.contains(v));
        right
    })
}

/// The bodies of all loops, in the order of the text.
fn bodies(kernel: &Kernel) -> Vec<Block> {
    let mut bodies = Vec::new();
    kernel.walk(&mut |_, op| {
        if op.kind.is_loop() {
            bodies.extend(op.regions.iter().copied());
        }
    });
    bodies
}

/// Whether an operation, or one inside of it, uses one of these values.
fn uses(kernel: &Kernel, id: OpId, values: &BTreeSet<Value>) -> bool {
    let op = kernel.op(id);
    let mut any = op.args.iter().any(|v| values.contains(v));
    for region in &op.regions {
        kernel.walk_block(*region, &mut |_, op| any |= op.args.iter().any(|v| values.contains(v)));
    }
    any
}

fn is_product(op: &Op) -> bool {
    op.kind == OpKind::Local(LocalOp::Mma)
}

/// Whether an operation only says something of stages of a ring, or waits for one.
const fn is_of_stages(op: &Op) -> bool {
    matches!(
        op.kind,
        OpKind::Ttg(TtgOp::Consumed | TtgOp::Release | TtgOp::Ready(_) | TtgOp::WaitReady | TtgOp::ReadPerm)
    )
}

/// Each product behind the loads of the one that follows it; the last one behind the loads of the next iteration, if these are
/// in this one.
fn loads_first(kernel: &Kernel, ops: &[OpId], rotated: bool) -> Vec<OpId> {
    let mut out: Vec<OpId> = Vec::with_capacity(ops.len());
    // A product that waits for its place, and what has been put before it since.
    let mut held: Option<OpId> = None;
    for id in ops {
        let op = kernel.op(*id);
        if let Some(product) = held {
            let results: BTreeSet<Value> = kernel.op(product).results.iter().copied().collect();
            let passes = is_light(op) || rotated && is_of_stages(op);
            if passes && !op.args.iter().any(|arg| results.contains(arg)) {
                out.push(*id);
                continue;
            }
            out.push(product);
            held = None;
        }
        if is_product(op) {
            held = Some(*id);
        } else {
            out.push(*id);
        }
    }
    out.extend(held);
    out
}

/// What starts copies behind the first of several products, or one in the middle: a branch that does, or a copy with its slot.
fn copies_later(kernel: &Kernel, ops: &mut Vec<OpId>, rotated: bool) {
    let is = |id: &OpId, wanted: fn(&Op) -> bool| wanted(kernel.op(*id));
    let products = ops.iter().filter(|id| is(id, is_product)).count();
    // With the first loads of the next iteration at the end, the middle of the body has the fewest.
    let nth = if rotated { products.saturating_sub(1) / 2 } else { 0 };
    let (Some(first), true) =
        (ops.iter().enumerate().filter(|(_, id)| is(id, is_product)).map(|(i, _)| i).nth(nth), products > 1)
    else {
        return;
    };
    let starts =
        |id: &OpId| copies(kernel, *id) || is(id, |op| matches!(op.kind, OpKind::Ttg(TtgOp::AsyncProduce { .. })));
    let Some(copy) = ops[..first].iter().position(starts) else { return };
    let slot = kernel.op(ops[copy]).args.first().copied();
    let acquires = |id: &OpId| matches!(kernel.op(*id).kind, OpKind::Ttg(TtgOp::Acquire(_)));
    let of_slot = |id: &OpId| acquires(id) && kernel.op(*id).results.first().copied() == slot;
    let begin = ops[..copy].iter().position(of_slot).unwrap_or(copy);
    let moved: Vec<OpId> = if begin == copy { vec![ops[copy]] } else { vec![ops[begin], ops[copy]] };
    let results: BTreeSet<Value> = moved.iter().flat_map(|id| &kernel.op(*id).results).copied().collect();
    let may_pass =
        |id: &OpId| moved.contains(id) || (is(id, is_light) || is(id, is_product)) && !uses(kernel, *id, &results);
    if !ops[begin..=first].iter().all(may_pass) {
        return;
    }
    ops.retain(|id| !moved.contains(id));
    let behind = first + 1 - moved.len();
    ops.splice(behind..behind, moved);
}

/// Whether an operation is a branch in which copies are started, and nothing is read or written otherwise.
fn copies(kernel: &Kernel, id: OpId) -> bool {
    let op = kernel.op(id);
    let mut starts = false;
    let mut only = op.kind == OpKind::If;
    let mut block = |block: &Block| {
        kernel.walk_block(*block, &mut |_, op| {
            let copy = matches!(op.kind, OpKind::Ttg(TtgOp::AsyncProduce { .. }));
            starts |= copy;
            let number = matches!(op.kind.effect(), Effect::Pure) || op.kind == OpKind::Yield;
            only &= copy || number || matches!(op.kind, OpKind::Ttg(_));
        });
    };
    op.regions.iter().for_each(&mut block);
    only && starts
}
