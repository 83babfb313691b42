//! The order of operations in the loops of a laid-out kernel: what keeps the matrix units busy.
//!
//! A product by steps of `k` comes out of laying out as loads and products in turn, behind the copies of a later iteration:
//!
//! ```text
//! wait; if more { copies }; L0 M0 L1 M1 L2 M2 L3 M3
//! ```
//!
//! Products take long and run beside other instructions. So each step's fragments are loaded before the product of the step
//! before, and the copies are started when the first product has begun:
//!
//! ```text
//! wait; L0 L1 M0; if more { copies }; L2 M1 L3 M2 M3
//! ```
//!
//! What moves depends on nothing that it passes. That it does not pass what memory orders is left to the barriers, which are
//! placed after this, and to the verifier of the barrier program.
//!
//! Deliberately absent: orders that depend on the machine, and the search for better ones.

use super::schedule::Body;
use crate::ir::{Block, Effect, Kernel, LocalOp, Op, OpId, OpKind, TtgOp, Value};
use std::collections::BTreeSet;

/// An order for the bodies of all loops that are better in another than the one they have.
#[must_use]
pub(super) fn choose(kernel: &Kernel) -> Vec<Body> {
    let mut found = Vec::new();
    for (number, body) in bodies(kernel).into_iter().enumerate() {
        let ops = &kernel.block(body).ops;
        let mut ordered = loads_first(kernel, ops);
        copies_later(kernel, &mut ordered);
        if ordered != *ops {
            let order = ordered.iter().filter_map(|id| ops.iter().position(|old| old == id)).collect();
            found.push(Body { number, order });
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
    for Body { number, order } in orders {
        let block = *bodies.get(*number)?;
        let ops = &kernel.block(block).ops;
        let distinct: BTreeSet<&usize> = order.iter().collect();
        let new: Vec<OpId> = order.iter().map(|at| ops.get(*at).copied()).collect::<Option<_>>()?;
        if distinct.len() != ops.len()
            || new.len() != ops.len()
            || new.last() != ops.last()
            || !defined_first(kernel, &new)
        {
            return None;
        }
        made.blocks.get_mut(block.index())?.ops = new;
    }
    // Values are numbered in the order of the text.
    Some(made.canonical())
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

/// Whether an operation may pass a product: it computes numbers, or loads a tile.
fn is_light(op: &Op) -> bool {
    op.regions.is_empty()
        && (op.kind.effect() == Effect::Pure && !is_product(op) || op.kind == OpKind::Local(LocalOp::Load))
}

/// Each product behind the loads of the one that follows it.
fn loads_first(kernel: &Kernel, ops: &[OpId]) -> Vec<OpId> {
    let mut out: Vec<OpId> = Vec::with_capacity(ops.len());
    // A product that waits for its place, and what has been put before it since.
    let mut held: Option<OpId> = None;
    for id in ops {
        let op = kernel.op(*id);
        if let Some(product) = held {
            let results: BTreeSet<Value> = kernel.op(product).results.iter().copied().collect();
            if is_light(op) && !op.args.iter().any(|arg| results.contains(arg)) {
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

/// Branches that copy behind the first of several products.
fn copies_later(kernel: &Kernel, ops: &mut Vec<OpId>) {
    let is = |id: &OpId, wanted: fn(&Op) -> bool| wanted(kernel.op(*id));
    let products = ops.iter().filter(|id| is(id, is_product)).count();
    let (Some(first), true) = (ops.iter().position(|id| is(id, is_product)), products > 1) else { return };
    let Some(branch) = ops[..first].iter().position(|id| copies(kernel, *id)) else { return };
    let moved: BTreeSet<Value> = kernel.op(ops[branch]).results.iter().copied().collect();
    let may_pass = |id: &OpId| (is(id, is_light) || is(id, is_product)) && !uses(kernel, *id, &moved);
    if !ops[branch + 1..=first].iter().all(may_pass) {
        return;
    }
    let copies = ops.remove(branch);
    ops.insert(first, copies);
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
