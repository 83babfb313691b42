//! Which loads of a loop belong to which of its two MMAs, so that each MMA has a ring of its own and the second one can be an iteration late:
//! the softmax of attention then runs beside an MMA ([`crate::driver`] chooses the stages).
//!
//! Deliberately absent: loops with other numbers of MMAs.

use super::exits::leaves;
use crate::collections::SortedSet;
use crate::ir::{Block, BlockData, Effect, ForKind, Kernel, OpId, OpKind, TtgOp, Value};

/// The loads of a loop whose second MMA can be one iteration late, one group for each of its two MMAs: each group needs a separate ring.
///
/// `loads` are the loads that become copies. `None` if the loop does not have this form.
#[must_use]
pub fn loads_apart(kernel: &Kernel, looped: OpId, loads: &[OpId]) -> Option<[Vec<OpId>; 2]> {
    let body = *kernel.op(looped).regions.first()?;
    let [first, second] = chain(kernel, looped, body)?;
    let read_by = |load: &OpId, mma: OpId| {
        let tile = kernel.op(*load).results.first();
        tile.is_some_and(|tile| is_read_by(kernel, body, *tile, mma))
    };
    let of = |mma: OpId| loads.iter().copied().filter(|load| read_by(load, mma)).collect::<Vec<_>>();
    let apart = [of(first), of(second)];
    let all = apart.iter().all(|own| !own.is_empty()) && apart.iter().map(Vec::len).sum::<usize>() == loads.len();
    all.then_some(apart)
}

fn users(kernel: &Kernel, block: Block, value: Value) -> Vec<OpId> {
    let mut found = Vec::new();
    kernel.walk_block(block, &mut |id, op| found.extend(op.args.contains(&value).then_some(id)));
    found
}

/// Whether this MMA is the only reader of a tile and its transposes.
fn is_read_by(kernel: &Kernel, body: Block, tile: Value, mma: OpId) -> bool {
    let users = users(kernel, body, tile);
    let by = |user: &OpId| {
        let op = kernel.op(*user);
        let turned = matches!(op.kind, OpKind::Permute(_));
        *user == mma || turned && op.results.first().is_some_and(|v| is_read_by(kernel, body, *v, mma))
    };
    !users.is_empty() && users.iter().all(by)
}

/// The two MMAs of a loop, if the second one adds to what the loop carries, and its operand A depends on the first one.
fn chain(kernel: &Kernel, looped: OpId, body: Block) -> Option<[OpId; 2]> {
    let op = kernel.op(looped);
    let plain = matches!(op.kind, OpKind::For(kind) if kind != ForKind::Distributed);
    if !plain || kernel.int_constant(op.args[2]) != Some(1) || leaves(kernel, body) {
        return None;
    }
    let BlockData { args: inside, ops } = kernel.block(body);
    let mut count = 0;
    kernel.walk_block(body, &mut |_, op| count += usize::from(is_mma(&op.kind)));
    let mmas: Vec<OpId> = ops.iter().copied().filter(|id| kernel.op(*id).kind == OpKind::Mma).collect();
    let (&[first, second], 2) = (&mmas[..], count) else { return None };
    let ([a, _, sum], [result]) = (&kernel.op(second).args[..], &kernel.op(second).results[..]) else { return None };
    let last = kernel.op(*ops.last()?);
    let place = last.args.iter().position(|v| v == result)?;
    if users(kernel, body, *result) != [*ops.last()?] || last.args.iter().filter(|v| *v == result).count() != 1 {
        return None;
    }
    let carried = *inside.get(1 + place)?;
    computed_alone(kernel, body, carried, *sum)?;
    // The result of the first MMA is used for operand A of the second one, and the first MMA does not accumulate.
    let fed = depends(kernel, body, *a, *kernel.op(first).results.first()?);
    let [a, _, sum] = kernel.op(first).args[..] else { return None };
    // The first MMA of iteration i + 1 is issued before the second one of iteration i has its result, so it must not
    // need that.
    let anew = !depends(kernel, body, sum, carried) && !inside.contains(&sum) && !inside.contains(&a);
    (fed && anew).then_some([first, second])
}

const fn is_mma(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Mma | OpKind::Ttg(TtgOp::ComputeIssue | TtgOp::AccMma))
}

/// Whether pure operations compute `to` from `from`, and nothing else uses `from` or the values in between.
fn computed_alone(kernel: &Kernel, body: Block, from: Value, to: Value) -> Option<()> {
    let mut at = from;
    // Each round goes from a value to the result of its only user, which is defined later in the block: this ends.
    while at != to {
        let [user] = users(kernel, body, at)[..] else { return None };
        let op = kernel.op(user);
        let [result] = op.results[..] else { return None };
        if op.kind.effect() != Effect::Pure || !op.regions.is_empty() || is_mma(&op.kind) {
            return None;
        }
        at = result;
    }
    let mut users = users(kernel, body, to);
    users.retain(|user| !is_mma(&kernel.op(*user).kind));
    users.is_empty().then_some(())
}

/// Whether a value depends on another one within a body.
fn depends(kernel: &Kernel, body: Block, value: Value, on: Value) -> bool {
    let mut wanted = SortedSet::from([value]);
    for id in kernel.block(body).ops.iter().rev() {
        let op = kernel.op(*id);
        if op.results.iter().any(|v| wanted.contains(v)) {
            wanted.extend(kernel.operands_within(*id));
        }
    }
    wanted.contains(&on)
}
