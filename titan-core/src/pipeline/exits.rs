//! Turns early exits into branches, so that a role can be sliced out of a kernel with them.
//!
//! ```text
//! if %empty { return } else { yield }        if %empty {
//! for ..                               ─▶        yield
//! return                                     } else {
//!                                                for ..
//!                                                yield
//!                                            }
//!                                            return
//! ```
//!
//! The same is done for `continue`, whose values become those of the branch. An exit of an outer loop stays as it is, and so does an exit from
//! the middle of a branch:
//!
//! ```text
//! if %a { if %b { return } else { yield }  x  yield } else { yield }   what follows the outer branch would be needed twice
//! ```
//!
//! The caller verifies the result.
//!
//! Deliberately absent: `break`; exits of kernels with roles, which execute them in each role.

use super::edit::Edit;
use crate::ir::{Block, Family, Flow, Kernel, Op, OpId, OpKind, Ty};

/// Whether an iteration of a loop may end other than by continuing with the next iteration.
pub(super) fn leaves(kernel: &Kernel, body: Block) -> bool {
    let last = kernel.block(body).ops.last().map(|id| &kernel.op(*id).kind);
    let mut leaves = last != Some(&OpKind::Continue(0));
    kernel.walk_block(body, &mut |_, op| leaves |= jumps(op));
    leaves
}

/// Whether an operation ends an iteration other than by continuing with the next iteration of the same loop.
pub(super) fn jumps(op: &Op) -> bool {
    match op.kind.family() {
        Family::Flow(Flow::Break(_) | Flow::Continue(1..) | Flow::Return) => true,
        Family::Flow(Flow::For(_) | Flow::Loop | Flow::If | Flow::Yield | Flow::Continue(0))
        | Family::Data(_)
        | Family::Ttg(_)
        | Family::Local(_)
        | Family::Region(_)
        | Family::Nv(_)
        | Family::Amd(_) => false,
    }
}

/// The kernel with branches in place of early exits, where that is possible.
#[must_use]
pub fn without_exits(kernel: &Kernel) -> Kernel {
    let mut edit = Edit::new(kernel.clone());
    block(&mut edit, kernel.body);
    edit.kernel.canonical()
}

/// Structures a block; what is inside of it comes first, because an arm that ends early may have early exits itself.
fn block(edit: &mut Edit, at: Block) {
    let ops = edit.kernel.block(at).ops.clone();
    for id in &ops {
        for region in edit.kernel.op(*id).regions.clone() {
            block(edit, region);
        }
    }
    let Some((last, before)) = ops.split_last() else { return };
    if !matches!(edit.kernel.op(*last).kind, OpKind::Return | OpKind::Continue(0)) {
        return;
    }
    // From the last branch to the first one: what follows a branch contains the branches that were changed.
    // Moving the rest into an arm changes only what is behind the branch, so that the places of those before it stay
    // valid.
    for (i, id) in before.iter().enumerate().rev() {
        if let Some(stays) = arm_that_stays(&edit.kernel, *id, *last) {
            move_rest(edit, at, i, stays);
        }
    }
}

/// The number of the arm of a branch that does not exit, if the other one ends like the block of the branch.
fn arm_that_stays(kernel: &Kernel, branch: OpId, last: OpId) -> Option<usize> {
    let op = kernel.op(branch);
    if op.kind != OpKind::If {
        return None;
    }
    let ends = |i: usize| Some(&kernel.op(*kernel.block(*op.regions.get(i)?).ops.last()?).kind);
    (0..2).find(|i| ends(*i) == Some(&OpKind::Yield) && ends(1 - i) == Some(&kernel.op(last).kind))
}

/// Moves what follows a branch into the arm that does not exit.
fn move_rest(edit: &mut Edit, at: Block, i: usize, stays: usize) {
    let ops = edit.kernel.block(at).ops.clone();
    let [head @ .., last] = &ops[..] else { return };
    let (before, rest) = head.split_at(i);
    let [branch, rest @ ..] = rest else { return };
    let Op { args, results, regions, loc, .. } = edit.kernel.op(*branch).clone();
    let (arm, exit) = (regions[stays], regions[1 - stays]);
    let ends = |kernel: &Kernel, block: Block| kernel.block(block).ops.last().copied();
    let (Some(yields), Some(exits)) = (ends(&edit.kernel, arm), ends(&edit.kernel, exit)) else { return };
    for (result, given) in results.into_iter().zip(edit.kernel.op(yields).args.clone()) {
        edit.replace(result, given);
    }
    let next = edit.kernel.op(*last).args.clone();
    let types: Vec<Ty> = next.iter().map(|v| edit.kernel.ty(*v)).collect();
    edit.kernel.ops[yields.index()].args = next;
    // The arm that left now yields what it left with, and the block ends with the results of the branch: both arms end
    // where they ended before.
    edit.kernel.ops[exits.index()].kind = OpKind::Yield;
    let inside = &mut edit.kernel.blocks[arm.index()].ops;
    inside.pop();
    inside.extend(rest.iter().chain([&yields]));
    edit.loc = loc;
    let given = edit.raw(OpKind::If, &args, &types, regions);
    edit.kernel.ops[last.index()].args = given;
    let made = std::mem::take(&mut edit.pending);
    edit.kernel.blocks[at.index()].ops = before.iter().copied().chain(made).chain([*last]).collect();
}
