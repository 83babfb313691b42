//! Finds loops that can be shifted, and the operations that belong to each of their two MMAs.
//!
//! Deliberately absent: the rewrite.

use super::super::peel::leaves;
use crate::collections::SortedSet;
use crate::ir::{Block, BlockData, Effect, ForKind, Kernel, Op, OpId, OpKind, Pipe, Token, TtgOp, Ty, Value};

/// The loads of a loop that could be shifted, one group for each of its two MMAs: each group needs a separate ring.
///
/// `loads` are the loads that become copies. `None` if the loop does not have this form.
#[must_use]
pub fn loads_apart(kernel: &Kernel, looped: OpId, loads: &[OpId]) -> Option<[Vec<OpId>; 2]> {
    let body = *kernel.op(looped).regions.first()?;
    let chain = chain(kernel, looped, body)?;
    let read_by = |load: &OpId, mma: OpId| {
        let tile = kernel.op(*load).results.first();
        tile.is_some_and(|tile| is_read_by(kernel, body, *tile, mma))
    };
    let of = |mma: OpId| loads.iter().copied().filter(|load| read_by(load, mma)).collect::<Vec<_>>();
    let apart = [of(chain.first), of(chain.second)];
    let all = apart.iter().all(|own| !own.is_empty()) && apart.iter().map(Vec::len).sum::<usize>() == loads.len();
    all.then_some(apart)
}

/// Two MMAs of a loop's body, of which the second accumulates to a carried value.
pub(super) struct Chain {
    pub(super) first: OpId,
    pub(super) second: OpId,
    /// The position of the accumulator among the carried values.
    pub(super) place: usize,
    /// The operations that compute the second MMA's accumulator from the carried one, in order.
    pub(super) scaling: Vec<OpId>,
    /// The operations that only convert the second MMA's operand A.
    pub(super) converting: Vec<OpId>,
}

/// The operations of a body, by the way in which they are moved.
pub(super) struct Parts {
    pub(super) body: Block,
    pub(super) chain: Chain,
    /// For each MMA, the operations that wait for and view its stage, and those that release it.
    pub(super) stages: [[Vec<OpId>; 2]; 2],
    /// All other operations except for the terminator, in order.
    pub(super) rest: Vec<OpId>,
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

/// The two MMAs of a loop, if they are connected only by operations that this transform moves.
fn chain(kernel: &Kernel, looped: OpId, body: Block) -> Option<Chain> {
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
    let scaling = between(kernel, body, carried, *sum)?;
    let converting = only_for(kernel, body, *a, second);
    // The result of the first MMA is used for operand A of the second one, and the first MMA does not accumulate.
    let fed = depends(kernel, body, *a, *kernel.op(first).results.first()?);
    let [a, _, sum] = kernel.op(first).args[..] else { return None };
    // The first MMA of iteration i + 1 is issued before the second one of iteration i has its result, so it must not
    // need that.
    let anew = !depends(kernel, body, sum, carried) && !inside.contains(&sum) && !inside.contains(&a);
    (fed && anew).then_some(Chain { first, second, place, scaling, converting })
}

const fn is_mma(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Mma | OpKind::Ttg(TtgOp::ComputeIssue | TtgOp::AccMma))
}

/// The pure operations that compute `to` from `from`, in order, if nothing else uses `from` or the values in between.
fn between(kernel: &Kernel, body: Block, from: Value, to: Value) -> Option<Vec<OpId>> {
    let (mut found, mut at) = (Vec::new(), from);
    // Each round goes from a value to the result of its only user, which is defined later in the block: this ends.
    while at != to {
        let [user] = users(kernel, body, at)[..] else { return None };
        let op = kernel.op(user);
        let [result] = op.results[..] else { return None };
        if op.kind.effect() != Effect::Pure || !op.regions.is_empty() || is_mma(&op.kind) {
            return None;
        }
        found.push(user);
        at = result;
    }
    let mut users = users(kernel, body, to);
    users.retain(|user| !is_mma(&kernel.op(*user).kind));
    users.is_empty().then_some(found)
}

/// The casts that are only for operand A of an MMA, in order.
fn only_for(kernel: &Kernel, body: Block, operand: Value, mma: OpId) -> Vec<OpId> {
    let (mut found, mut at, mut user) = (Vec::new(), operand, mma);
    while users(kernel, body, at) == [user] {
        let Some(id) = kernel.block(body).ops.iter().copied().find(|id| kernel.op(*id).results == [at]) else { break };
        let OpKind::Cast(_) = kernel.op(id).kind else { break };
        found.insert(0, id);
        (at, user) = (kernel.op(id).args[0], id);
    }
    found
}

/// Whether a value depends on another one within a body.
pub(super) fn depends(kernel: &Kernel, body: Block, value: Value, on: Value) -> bool {
    let mut wanted = SortedSet::from([value]);
    for id in kernel.block(body).ops.iter().rev() {
        let op = kernel.op(*id);
        if op.results.iter().any(|v| wanted.contains(v)) {
            wanted.extend(kernel.operands_within(*id));
        }
    }
    wanted.contains(&on)
}

/// A loop that can be shifted.
pub(super) fn parts(kernel: &Kernel, looped: OpId) -> Option<Parts> {
    let body = *kernel.op(looped).regions.first()?;
    let chain = chain(kernel, looped, body)?;
    if kernel.op(looped).results.iter().any(|v| kernel.ty(*v).is_linear()) {
        return None;
    }
    let stages = [stage(kernel, body, chain.first)?, stage(kernel, body, chain.second)?];
    let apart: SortedSet<OpId> = stages
        .iter()
        .flatten()
        .flatten()
        .chain(&chain.scaling)
        .chain(&chain.converting)
        .chain([&chain.first, &chain.second])
        .copied()
        .collect();
    let (_, ops) = kernel.block(body).ops.split_last()?;
    let rest: Vec<OpId> = ops.iter().copied().filter(|id| !apart.contains(id)).collect();
    // Waits and releases of stages are moved across the remaining operations, which must therefore be pure computations.
    let computes = |id: &OpId| {
        let mut pure = true;
        let mut see =
            |op: &Op| pure &= op.kind.effect() == Effect::Pure || op.kind.is_terminator() || op.kind.is_loop();
        see(kernel.op(*id));
        kernel.op(*id).regions.iter().for_each(|region| kernel.walk_block(*region, &mut |_, op| see(op)));
        pure
    };
    rest.iter().all(computes).then_some(Parts { body, chain, stages, rest })
}

/// The operations that wait for and view the stage of operand B of an MMA, and those that release it; nothing else may read the stage.
fn stage(kernel: &Kernel, body: Block, mma: OpId) -> Option<[Vec<OpId>; 2]> {
    let ops = &kernel.block(body).ops;
    let mut tile = *kernel.op(mma).args.get(1)?;
    let pipe = loop {
        let op = kernel.def_op(tile)?;
        if let OpKind::Permute(_) = op.kind {
            tile = *op.args.first()?;
            continue;
        }
        let OpKind::Ttg(TtgOp::View { .. }) = op.kind else { return None };
        let Ty::Token(Token::Rperm, pipe) = kernel.ty(*op.args.first()?) else { return None };
        break pipe;
    };
    let (mut wait, mut end) = (Vec::new(), Vec::new());
    for id in ops {
        let op = kernel.op(*id);
        let mut of_ring = op.kind == OpKind::Ttg(TtgOp::Ready(pipe)) || is_acquire(&op.kind, pipe);
        of_ring |= op.args.iter().any(|v| matches!(kernel.ty(*v), Ty::Token(_, of) if of == pipe));
        let views = op.args.first().and_then(|v| kernel.def_op(*v)).is_some_and(|from| {
            let own = wait.iter().any(|id: &OpId| kernel.op(*id) == from);
            own && matches!(op.kind, OpKind::Permute(_))
        });
        if !of_ring && !views {
            continue;
        }
        if let OpKind::Ttg(TtgOp::Ready(_) | TtgOp::WaitReady | TtgOp::ReadPerm) = op.kind {
            wait.push(*id);
        } else if let OpKind::Ttg(TtgOp::View { .. }) | OpKind::Permute(_) = op.kind
            && is_read_by(kernel, body, *op.results.first()?, mma)
        {
            wait.push(*id);
        } else if let OpKind::Ttg(TtgOp::Consumed | TtgOp::Release) = op.kind {
            end.push(*id);
        } else {
            // Any other operation on the ring stays where it is, and with it the loop.
            return None;
        }
    }
    let count = |kind: fn(&OpKind) -> bool| {
        ops.iter().filter(|id| kind(&kernel.op(**id).kind) && wait_or(&wait, &end, **id)).count()
    };
    let once = count(|k| matches!(k, OpKind::Ttg(TtgOp::Ready(_)))) == 1
        && count(|k| matches!(k, OpKind::Ttg(TtgOp::Release))) == 1;
    once.then_some([wait, end])
}

fn wait_or(wait: &[OpId], end: &[OpId], id: OpId) -> bool {
    wait.contains(&id) || end.contains(&id)
}

fn is_acquire(kind: &OpKind, pipe: Pipe) -> bool {
    *kind == OpKind::Ttg(TtgOp::Acquire(pipe))
}
