//! Splits loops over MMAs into the iterations in which masks are true for every element, which need no masks, and the rest (index-set
//! splitting).
//!
//! ```text
//! for %j = 0 to %n {                         %whole = %NK / 64
//!     %key = iota<64> + %j * 64              for %j = 0 to min(%n, max(0, %whole)) {
//!     %seen = lt %key, %NK             ─▶        .. %s ..
//!     .. select %seen, %s, -inf ..           }
//! }                                          for %j = min(%n, max(0, %whole)) to %n {
//!                                                %key = iota<64> + %j * 64
//!                                                .. select lt(%key, %NK), %s, -inf ..
//!                                            }
//! ```
//!
//! The operations of an iteration and their order are unchanged: rings continue from the first loop to the second, and the copies that are
//! prefetched in the first loop are those that the second one reads. In attention, the masks of keys beyond the end and, in its causal
//! form, of keys after the query affect the last iterations only.
//!
//! In a kernel with `tails(split)`, the tiles that a loop loads count as masks too: the first loop then has only tiles without elements beyond
//! the end of the tensor along the loop's axis, including the tiles that are prefetched.
//!
//! Which loops are split is part of their schedules: `unmasked` stands behind them. They are split after all loops were expanded by their
//! schedules ([`super::modulo`]): the loop is split as it is then, and copies that run ahead in the first part are for iterations of the
//! second. That the result does what the loop did, and that each condition holds that is
//! left out, is checked by [`crate::verify::unmasked`]; its accesses are verified with the barrier program.
//!
//! Deliberately absent: conditions that hold for the last iterations instead of the first, as in sliding windows; loops with early
//! exits; steps other than 1; conditions in nested regions.

mod threshold;

use super::edit::Edit;
use super::exits::leaves;
use super::implicit::inside;
use super::modulo::Violation;
use crate::analysis::tiles::is_natural;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{
    BinOp, Block, Const, Effect, Elem, ForKind, Kernel, LocalOp, NvOp, Op, OpId, OpKind, Tails, TtgOp, Ty, Value,
};
use threshold::{Threshold, of_condition, of_tile};

/// The kernel with the loops split whose schedules say so. No operation is marked afterwards.
///
/// # Errors
/// Returns the first operation that is marked and is no loop with iterations that need no masks.
pub fn unmask(kernel: &Kernel) -> Result<Kernel, Violation> {
    if !kernel.ops.iter().any(|op| op.unmasked) {
        return Ok(kernel.clone());
    }
    let mut edit = Edit::new(kernel.clone());
    for around in (0..kernel.blocks.len()).map(Block::new) {
        for looped in kernel.block(around).ops.iter().copied().filter(|id| kernel.op(*id).unmasked) {
            // Each loop is found as it was, and splitting one changes nothing of another's masks and bounds.
            let found = find(kernel, looped);
            if found.and_then(|found| split(&mut edit, around, &found)).is_none() {
                let message = "no iteration of this loop is known to need no masks".to_owned();
                return Err(Violation { op: looped, message });
            }
        }
    }
    let mut made = edit.kernel;
    made.ops.iter_mut().for_each(|op| op.unmasked = false);
    Ok(made.canonical())
}

/// The loops that have iterations that need no masks.
#[must_use]
pub fn with_masks(kernel: &Kernel) -> Vec<OpId> {
    let mut all = Vec::new();
    kernel.walk(&mut |id, _| all.extend(find(kernel, id).map(|found| found.looped)));
    all
}

/// A loop with masks.
struct Found {
    looped: OpId,
    /// The conditions that are true for every element in the iterations below the thresholds.
    masks: Vec<Value>,
    /// The thresholds: iterations below all of them need no masks.
    thresholds: Vec<Threshold>,
}

fn find(kernel: &Kernel, looped: OpId) -> Option<Found> {
    let tiles = kernel.sig.tails == Some(Tails::Split);
    let op = kernel.op(looped);
    let body = *op.regions.first()?;
    let (OpKind::For(kind), [from, _, step, ..]) = (&op.kind, &op.args[..]) else { return None };
    // With step 1 from a number that is not negative, the counter of an iteration is its number plus the first one, as
    // thresholds assume.
    let is_plain = *kind != ForKind::Distributed && kernel.int_constant(*step) == Some(1);
    if !is_plain || !is_natural(kernel, *from) || leaves(kernel, body) || !has_mma(kernel, body) {
        return None;
    }
    let inside = inside(kernel, body);
    let (mut masks, mut thresholds) = (Vec::new(), Vec::new());
    for id in used(kernel, body) {
        let op = kernel.op(id);
        if let OpKind::Cmp(pred) = op.kind {
            let [result] = op.results[..] else { continue };
            let is_mask = matches!(kernel.ty(result), Ty::Tile(..));
            let threshold = if is_mask { of_condition(kernel, (body, &inside), pred, &op.args) } else { None };
            if let Some(threshold) = threshold {
                masks.push(result);
                thresholds.push(threshold);
            }
        } else if tiles {
            thresholds.extend(of_tile(kernel, (body, &inside), op));
            for region in &op.regions {
                kernel.walk_block(*region, &mut |_, op| thresholds.extend(of_tile(kernel, (body, &inside), op)));
            }
        }
    }
    (!thresholds.is_empty()).then_some(Found { looped, masks, thresholds })
}

fn has_mma(kernel: &Kernel, body: Block) -> bool {
    kernel.block(body).ops.iter().any(|id| {
        matches!(
            kernel.op(*id).kind,
            OpKind::Mma
                | OpKind::Local(LocalOp::Mma)
                | OpKind::Nv(NvOp::Wgmma)
                | OpKind::Ttg(TtgOp::AccMma | TtgOp::ComputeIssue | TtgOp::ComputeWait)
        )
    })
}

/// The operations of a body, in order, without those whose results nothing uses.
fn used(kernel: &Kernel, body: Block) -> Vec<OpId> {
    let mut needed: SortedSet<Value> = SortedSet::new();
    let mut used = Vec::new();
    // Backwards, users come before what they use, so that one pass suffices.
    for id in kernel.block(body).ops.iter().rev() {
        let op = kernel.op(*id);
        let idle = op.kind.effect() == Effect::Pure && op.regions.is_empty();
        if idle && !op.results.iter().any(|v| needed.contains(v)) {
            continue;
        }
        needed.extend(kernel.operands_within(*id));
        used.push(*id);
    }
    used.reverse();
    used
}

/// Moves the iterations without masks to a separate loop before the others.
fn split(edit: &mut Edit, around: Block, found: &Found) -> Option<()> {
    let Found { looped, masks, thresholds } = found;
    let Op { args, results, loc, .. } = edit.kernel.op(*looped).clone();
    let [from, to, ..] = args[..] else { return None };
    edit.loc = loc;
    let mut end: Option<Value> = None;
    for threshold in thresholds {
        let next = threshold.value(edit)?;
        end = Some(match end {
            // Below the least threshold, all masks are true.
            Some(end) => edit.one(OpKind::Binary(BinOp::Min), &[end, next])?,
            None => next,
        });
    }
    // The end of the first loop is between the bounds of the loop, if that has iterations; otherwise neither loop has any.
    let end = edit.one(OpKind::Binary(BinOp::Max), &[from, end?])?;
    let end = edit.one(OpKind::Binary(BinOp::Min), &[to, end])?;
    let mut names = SortedMap::new();
    edit.copies(&[*looped], &mut names);
    let copy = *edit.pending.last()?;
    edit.kernel.ops.get_mut(copy.index())?.args[1] = end;
    let renamed = |value: &Value| names.get(value).copied();
    remove_masks(edit, copy, &masks.iter().filter_map(renamed).collect())?;
    let first: Vec<Value> = results.iter().filter_map(renamed).collect();
    edit.put_before(around, *looped);
    let rest = edit.kernel.ops.get_mut(looped.index())?;
    // from ≤ end ≤ to: the iterations of both loops are those of the one before, in the same order, and the second
    // begins with what the first carried. If to < from, end is `to`, and neither loop has an iteration.
    rest.args = [vec![end, to, args[2]], first].concat();
    Some(())
}

/// Replaces the conditions of a loop that are true for every element, and values that follow from them.
fn remove_masks(edit: &mut Edit, looped: OpId, masks: &SortedSet<Value>) -> Option<()> {
    let body = *edit.kernel.op(looped).regions.first()?;
    let outer = std::mem::take(&mut edit.pending);
    let holds = edit.one(OpKind::Const(Const::Int(Elem::Bool, 1)), &[])?;
    let mut known: SortedSet<Value> = SortedSet::from([holds]);
    for id in edit.kernel.block(body).ops.clone() {
        let op = edit.kernel.op(id).clone();
        let Some(result) = op.results.first().copied().filter(|_| op.results.len() == 1) else { continue };
        // In program order: what follows from true conditions is known to be true behind them. An `and` with one true
        // operand is its other one.
        let all = !op.args.is_empty() && op.args.iter().all(|v| known.contains(v));
        let replaced = match (&op.kind, &op.args[..]) {
            (OpKind::Select, [mask, then, _]) if known.contains(mask) => Some(*then),
            (OpKind::Binary(BinOp::And), [a, b]) if known.contains(a) && !known.contains(b) => Some(*b),
            (OpKind::Binary(BinOp::And), [a, b]) if known.contains(b) && !known.contains(a) => Some(*a),
            _ => None,
        };
        if let Some(by) = replaced {
            edit.replace(result, by);
            edit.take_out(body, id);
        } else if masks.contains(&result) || all && keeps_truth(&op.kind) {
            known.insert(result);
            let op = edit.kernel.ops.get_mut(id.index())?;
            if let Ty::Tile(_, shape) = edit.kernel.values[result.index()].ty {
                (op.kind, op.args) = (OpKind::Splat(shape), vec![holds]);
            } else {
                edit.replace(result, holds);
                edit.take_out(body, id);
            }
        }
    }
    let first = *edit.kernel.block(body).ops.first()?;
    edit.put_before(body, first);
    edit.pending = outer;
    edit.kernel.blocks[body.index()].ops = used(&edit.kernel, body);
    Some(())
}

/// Whether an operation on conditions that are true has a result that is true.
const fn keeps_truth(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Binary(BinOp::And | BinOp::Or)
            | OpKind::Splat(_)
            | OpKind::Broadcast { .. }
            | OpKind::Permute(_)
            | OpKind::Reshape(_)
            | OpKind::Local(LocalOp::Convert)
            | OpKind::Ttg(TtgOp::Rematerialize)
    )
}
