//! Introduces accumulators for the MMAs of loops that read a stage and release it, so that the stages can be released late.
//!
//! ```text
//! %y = for .. carry(%x = %init) {              %a = acc.start %init
//!     .. %n = mma %p, %q, %x                   %b = for .. carry(%x = %a) {
//!     release %stage                   ─▶          .. %n = acc.mma %x, %stage, %p, %q
//!     continue %n                                  continue %n
//! }                                            }
//!                                              %y = acc.finish %b
//! ```
//!
//! The caller verifies the result.
//!
//! Deliberately absent: stages that several MMAs read, and accumulators that the loop uses in other ways.

use super::edit::Edit;
use super::operands::only_read_by;
use crate::ir::{Block, ForKind, Kernel, Op, OpId, OpKind, Token, TtgOp, Ty, Value};

/// The number of MMAs that stay in flight.
const KEEP: u8 = 1;

/// The kernel with all such loops changed; `None` if there are none.
#[must_use]
pub fn accumulate(kernel: &Kernel) -> Option<Kernel> {
    let mut edit = Edit::new(kernel.clone());
    let mut any = false;
    for around in (0..kernel.blocks.len()).map(Block::new) {
        for looped in kernel.block(around).ops.clone() {
            if let Some(found) = find(kernel, looped) {
                one(&mut edit, around, looped, &found)?;
                any = true;
            }
        }
    }
    any.then(|| edit.kernel.canonical())
}

/// An MMA of a loop that is the only reader of a stage.
struct Found {
    body: Block,
    mma: OpId,
    /// The permission to read the stage, and the operations that end it.
    perm: Value,
    ends: [OpId; 2],
    /// The position of the accumulator among the carried values.
    place: usize,
}

fn users(kernel: &Kernel, block: Block, value: Value) -> Vec<OpId> {
    let mut found = Vec::new();
    kernel.walk_block(block, &mut |id, op| found.extend(op.args.contains(&value).then_some(id)));
    found
}

fn find(kernel: &Kernel, looped: OpId) -> Option<Found> {
    let op = kernel.op(looped);
    if !matches!(op.kind, OpKind::For(kind) if kind != ForKind::Distributed) {
        return None;
    }
    let body = *op.regions.first()?;
    let last = *kernel.block(body).ops.last()?;
    let mut mmas = kernel.block(body).ops.iter().copied().filter(|id| kernel.op(*id).kind == OpKind::Mma);
    let (Some(mma), None) = (mmas.next(), mmas.next()) else { return None };
    let [a, b, acc] = kernel.op(mma).args[..] else { return None };
    let result = *kernel.op(mma).results.first()?;
    let place = kernel.block(body).args.iter().skip(1).position(|v| *v == acc)?;
    let hands_on = kernel.op(last).kind == OpKind::Continue(0) && kernel.op(last).args.get(place) == Some(&result);
    // Between two MMAs nothing may see the accumulator: while one is in flight, its registers have no value.
    if !hands_on || users(kernel, body, acc) != [mma] || users(kernel, body, result) != [last] {
        return None;
    }
    let perm = stage(kernel, b)?;
    // The MMA must be the only reader of the stage.
    let mut ends = None;
    for user in users(kernel, body, perm) {
        let op = kernel.op(user);
        let views = matches!(op.kind, OpKind::Ttg(TtgOp::View { .. }));
        if op.kind == OpKind::Ttg(TtgOp::Consumed) {
            let [release] = users(kernel, body, *op.results.first()?)[..] else { return None };
            ends = Some([user, release]);
        } else if !views || !only_read_by(kernel, body, *op.results.first()?, &|id, _| id == mma) {
            return None;
        }
    }
    // The accumulator holds one stage for each MMA. Operands in two stages would need both to be held.
    let of_stage = stage(kernel, a).is_none_or(|other| other == perm);
    of_stage.then_some(Found { body, mma, perm, ends: ends?, place })
}

/// The stage that contains a tile in shared memory.
fn stage(kernel: &Kernel, tile: Value) -> Option<Value> {
    let op = kernel.def_op(tile)?;
    let from = *op.args.first()?;
    if let OpKind::Permute(_) = op.kind {
        return stage(kernel, from);
    }
    let views = matches!(op.kind, OpKind::Ttg(TtgOp::View { .. }));
    (views && matches!(kernel.ty(from), Ty::Token(Token::Rperm, _))).then_some(from)
}

fn one(edit: &mut Edit, around: Block, looped: OpId, found: &Found) -> Option<()> {
    let Found { body, mma, perm, ends, place } = *found;
    let Op { args, results, loc, .. } = edit.kernel.op(looped).clone();
    edit.loc = loc;
    let started = edit.one(OpKind::Ttg(TtgOp::AccStart(KEEP)), &[args[3 + place]])?;
    edit.put_before(around, looped);
    let ty = edit.kernel.ty(started);
    edit.kernel.ops[looped.index()].args[3 + place] = started;
    // Its operand becomes the loop's result below, when all other users of that result use `finished`.
    let finished = edit.one(OpKind::Ttg(TtgOp::AccFinish), &[started])?;
    edit.put_after(around, looped);
    // The result of the loop is the accumulator; the users of that result use the tile instead.
    edit.replace_outside(results[place], finished, &[]);
    let finish = edit.kernel.block(around).ops.iter().position(|id| *id == looped).map(|at| at + 1)?;
    let finish = edit.kernel.block(around).ops[finish];
    edit.kernel.ops[finish.index()].args = vec![results[place]];
    for value in [results[place], edit.kernel.block(body).args[1 + place], edit.kernel.op(mma).results[0]] {
        edit.kernel.values[value.index()].ty = ty;
    }
    let op = &mut edit.kernel.ops[mma.index()];
    let [a, b, acc] = op.args[..] else { return None };
    (op.kind, op.args) = (OpKind::Ttg(TtgOp::AccMma), vec![acc, perm, a, b]);
    ends.iter().for_each(|end| edit.take_out(body, *end));
    Some(())
}
