//! The order of operations in the loops of a barrier program: what keeps the matrix units busy.
//!
//! A product by steps of `k` comes out of laying out as loads and products in turn, behind the copies of a later iteration:
//!
//! ```text
//! wait; barrier; if more { copies }; L0 M0 L1 M1 L2 M2 L3 M3
//! ```
//!
//! Products take long and run beside other instructions. So each step's fragments are loaded before the product of the step
//! before, and the copies are started when the first product has begun:
//!
//! ```text
//! wait; barrier; L0 L1 M0; if more { copies }; L2 M1 L3 M2 M3
//! ```
//!
//! What moves depends on nothing that it passes. That it does not pass what memory orders is left to the barriers, which are
//! placed after this, and to the verifier of the whole program.
//!
//! Deliberately absent: orders that depend on the machine, and the search for better ones.

use crate::ir::{Block, Effect, Kernel, LocalOp, NvOp, Op, OpId, OpKind, Value};
use std::collections::BTreeSet;

/// Orders the operations of all loops.
pub fn order(kernel: &mut Kernel) {
    let mut bodies = Vec::new();
    kernel.walk(&mut |_, op| {
        if op.kind.is_loop() {
            bodies.extend(op.regions.iter().copied());
        }
    });
    for body in bodies {
        let ops = kernel.block(body).ops.clone();
        let mut ordered = loads_first(kernel, &ops);
        copies_later(kernel, &mut ordered);
        if let Some(block) = kernel.blocks.get_mut(body.index()) {
            block.ops = ordered;
        }
    }
    // Values are numbered in the order of the text.
    *kernel = kernel.canonical();
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
    // Its group is closed right behind it.
    let commits = ops.get(branch + 1).is_some_and(|id| matches!(kernel.op(*id).kind, OpKind::Nv(NvOp::Commit { .. })));
    let moved = ops[branch..branch + 1 + usize::from(commits)].to_vec();
    let results: BTreeSet<Value> = moved.iter().flat_map(|id| &kernel.op(*id).results).copied().collect();
    let passed = &ops[branch + moved.len()..=first];
    let uses = |id: &OpId| {
        let mut any = kernel.op(*id).args.iter().any(|v| results.contains(v));
        for region in &kernel.op(*id).regions {
            kernel.walk_block(*region, &mut |_, op| any |= op.args.iter().any(|v| results.contains(v)));
        }
        any
    };
    let may_pass = |id: &OpId| (is(id, is_light) || is(id, is_product)) && !uses(id);
    if !passed.iter().all(may_pass) {
        return;
    }
    ops.drain(branch..branch + moved.len());
    let at = first + 1 - moved.len();
    ops.splice(at..at, moved);
}

/// Whether an operation is a branch in which copies are started, and nothing is read or written otherwise.
fn copies(kernel: &Kernel, id: OpId) -> bool {
    let op = kernel.op(id);
    let mut starts = false;
    let mut only = op.kind == OpKind::If;
    let mut block = |block: &Block| {
        kernel.walk_block(*block, &mut |_, op| {
            let copy = op.kind == OpKind::Local(LocalOp::Copy { asynchronous: true });
            starts |= copy;
            let number = matches!(op.kind.effect(), Effect::Pure) || op.kind == OpKind::Yield;
            only &= copy || number || matches!(op.kind, OpKind::Ttg(_));
        });
    };
    op.regions.iter().for_each(&mut block);
    only && starts
}
