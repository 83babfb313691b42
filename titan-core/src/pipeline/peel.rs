//! Peels the first iteration off loops over an accumulator, so that the loop begins with an MMA in flight.
//!
//! An accumulator releases a stage when the MMA that reads it is complete. In a loop it keeps as many stages as at the loop's head
//! (`crate::lay_out`): none if it is new, so that every MMA is waited for at once. After its first MMA it keeps one, so that each stage is
//! released one iteration late, during the next MMA. The first MMA also starts from zero, without zeroed registers.
//!
//! ```text
//! %a = acc.start %zero                          %a = acc.start %zero
//! %b = for t = lo to hi carry(%x = %a) {        %z = if lo < hi {
//!     .. acc.mma %x ..                              .. acc.mma %a ..                        t = lo
//! }                                    becomes      %b = for t = lo + 1 to hi carry(%x = ..) { .. acc.mma %x .. }
//! %z = acc.finish %b                                yield acc.finish %b
//!                                               } else { yield acc.finish %a }
//! ```
//!
//! The caller verifies the result.
//!
//! Deliberately absent: loops with early exits, and steps other than 1.

use super::edit::Edit;
use crate::collections::SortedMap;
use crate::ir::{BinOp, Block, Family, Flow, ForKind, Kernel, Op, OpId, OpKind, Pred, TtgOp, Ty, Value};

/// The kernel with all such loops peeled; `None` if there are none.
#[must_use]
pub fn peel(kernel: &Kernel) -> Option<Kernel> {
    let mut edit = Edit::new(kernel.clone());
    let mut any = false;
    for around in (0..kernel.blocks.len()).map(Block::new) {
        for looped in kernel.block(around).ops.clone() {
            if let Some(found) = find(kernel, around, looped) {
                one(&mut edit, &found)?;
                any = true;
            }
        }
    }
    any.then(|| edit.kernel.canonical())
}

/// A loop over an accumulator, and the operation after it that ends the accumulator.
struct Found {
    around: Block,
    looped: OpId,
    body: Block,
    finish: OpId,
    /// The position of the accumulator among the carried values.
    place: usize,
}

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

fn find(kernel: &Kernel, around: Block, looped: OpId) -> Option<Found> {
    let op = kernel.op(looped);
    if !matches!(op.kind, OpKind::For(kind) if kind != ForKind::Distributed)
        || kernel.int_constant(op.args[2]) != Some(1)
    {
        return None;
    }
    let body = *op.regions.first()?;
    let leaves = leaves(kernel, body);
    let mut accumulators = op.results.iter().enumerate().filter(|(_, v)| matches!(kernel.ty(**v), Ty::Acc(_, _, 1..)));
    let ((place, result), None) = (accumulators.next()?, accumulators.next()) else { return None };
    let starts = kernel.def_op(*op.args.get(3 + place)?)?;
    let is_finish = |id: &&OpId| {
        let op = kernel.op(**id);
        op.kind == OpKind::Ttg(TtgOp::AccFinish) && op.args.first() == Some(result)
    };
    let finish = *kernel.block(around).ops.iter().find(is_finish)?;
    let others = op.results.iter().any(|v| kernel.ty(*v).is_linear() && v != result);
    (!leaves && !others && matches!(starts.kind, OpKind::Ttg(TtgOp::AccStart(_)))).then_some(Found {
        around,
        looped,
        body,
        finish,
        place,
    })
}

fn one(edit: &mut Edit, found: &Found) -> Option<()> {
    let Found { around, looped, body, finish, place } = *found;
    let Op { args, results, loc, .. } = edit.kernel.op(looped).clone();
    let tile = *edit.kernel.op(finish).results.first()?;
    let (bounds, init) = args.split_at(3);
    let [lo, hi, step] = bounds[..] else { return None };
    edit.loc = loc;
    // A loop may have no iteration at all: then there is none to peel, and the accumulator is what it started with.
    let some = edit.one(OpKind::Cmp(Pred::Lt), &[lo, hi])?;
    // The branch returns the results of the loop, with the tile in place of the accumulator.
    let mut types: Vec<Ty> = results.iter().map(|v| edit.kernel.ty(*v)).collect();
    types[place] = edit.kernel.ty(tile);
    let init = init.to_vec();
    let then = edit.block(&[], |edit, _| {
        let data = edit.kernel.block(body).clone();
        let mut names: SortedMap<Value, Value> =
            data.args.iter().copied().zip([lo].into_iter().chain(init.clone())).collect();
        let (last, ops) = data.ops.split_last()?;
        edit.copies(ops, &mut names);
        edit.loc = loc;
        let next: Vec<Value> = edit.kernel.op(*last).args.iter().map(|v| names.get(v).copied().unwrap_or(*v)).collect();
        // Does not wrap: lo < hi, and the step is 1.
        let second = edit.one(OpKind::Binary(BinOp::Add), &[lo, step])?;
        let rest = edit.kernel.ops.get_mut(looped.index())?;
        rest.args = [vec![second, hi, step], next].concat();
        edit.pending.push(looped);
        yields(edit, results.clone(), place)
    })?;
    let otherwise = edit.block(&[], |edit, _| yields(edit, init, place))?;
    let given = edit.raw(OpKind::If, &[some], &types, vec![then, otherwise]);
    edit.put_before(around, looped);
    edit.take_out(around, looped);
    edit.take_out(around, finish);
    // Uses outside of the branch are replaced; in the branch, the results of the loop keep their names.
    for (i, (old, new)) in results.iter().zip(&given).enumerate() {
        let old = if i == place { tile } else { *old };
        edit.replace_outside(old, *new, &[then, otherwise]);
    }
    Some(())
}

/// Ends an arm with these values, of which one is the tile of the accumulator.
fn yields(edit: &mut Edit, mut values: Vec<Value>, place: usize) -> Option<()> {
    values[place] = edit.one(OpKind::Ttg(TtgOp::AccFinish), &[values[place]])?;
    edit.raw(OpKind::Yield, &values, &[], Vec::new());
    Some(())
}
