//! Shifts the second MMA of a loop by one iteration, so that it runs beside what the first one feeds.
//!
//! An iteration of attention has an MMA (the scores), work in registers on its result (softmax), and an MMA that takes this as operand A
//! and adds to an accumulator. Each waits for the one before, so that the matrix units idle during the softmax. Here the second MMA of
//! an iteration is issued in the next one, behind the first MMA of that one, and waited for behind its softmax:
//!
//! ```text
//! %z = for t = lo to hi carry(%x = %init) {      %z = if lo < hi {
//!     wait k; %s = mma %q, k, 0; release k           wait k; %s = mma %q, k, 0; release k
//!     %p, %f = softmax of %s                         %p0, %f = softmax of %s; %x0 = %init * %f
//!     wait v; %y = mma %p, v, %x * %f                %x, %p = for t = lo + 1 to hi carry(%x = %x0, %p = %p0) {
//!     release v; continue %y                             wait k; %1 = compute.issue %q, k, 0
//! }                                          becomes     wait v; %2 = compute.issue %p, v, %x
//!                                                        %s = compute.wait %1; release k
//!                                                        %f, %r = softmax of %s
//!                                                        %y = compute.wait %2; release v
//!                                                        continue %y * %f, cast %r
//!                                                    }
//!                                                    wait v; %y = mma %p, v, %x; release v
//!                                                    yield %y
//!                                                } else { yield %init }
//! ```
//!
//! What scales the accumulator, and what only converts operand A, stands behind the wait for the second MMA: until then it has the
//! accumulator's registers, and reads those of the operand.
//!
//! This needs a ring for each of the two stages, and no operation with an effect that it would pass. The caller verifies the result.
//!
//! Deliberately absent: loops with other numbers of MMAs, early exits, steps other than 1, and a shift of more than one iteration.

use super::edit::Edit;
use super::peel::leaves;
use crate::ir::{
    BinOp, Block, BlockData, Effect, ForKind, Kernel, Op, OpId, OpKind, Pipe, Pred, Token, TtgOp, Ty, Value,
};
use std::collections::{BTreeMap, BTreeSet};

/// The kernel with all such loops shifted; `None` if there is none.
#[must_use]
pub fn shift(kernel: &Kernel) -> Option<Kernel> {
    let mut edit = Edit::new(kernel.clone());
    let mut any = false;
    for around in (0..kernel.blocks.len()).map(Block::new) {
        for looped in kernel.block(around).ops.clone() {
            if let Some(parts) = parts(kernel, looped) {
                one(&mut edit, around, looped, &parts)?;
                any = true;
            }
        }
    }
    any.then(|| edit.kernel.canonical())
}

/// The loads of a loop that could be shifted, one group for each of its two MMAs: each needs a ring of its own.
///
/// `loads` are those that become copies. `None` if the loop is not of that form.
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

/// Two MMAs of a loop's body, of which the second adds to what the loop carries.
struct Chain {
    first: OpId,
    second: OpId,
    /// The place of the accumulator among the carried values.
    place: usize,
    /// What computes the second MMA's accumulator from the carried one, in order.
    scaling: Vec<OpId>,
    /// What only converts the second MMA's operand A.
    converting: Vec<OpId>,
}

/// The operations of a body by what becomes of them.
struct Parts {
    body: Block,
    chain: Chain,
    /// What waits for and views the stage of an MMA, and what releases it.
    stages: [[Vec<OpId>; 2]; 2],
    /// Everything else but the terminator, in order.
    rest: Vec<OpId>,
}

fn users(kernel: &Kernel, block: Block, value: Value) -> Vec<OpId> {
    let mut found = Vec::new();
    kernel.walk_block(block, &mut |id, op| found.extend(op.args.contains(&value).then_some(id)));
    found
}

/// Whether only this MMA reads a tile, or transposes of it.
fn is_read_by(kernel: &Kernel, body: Block, tile: Value, mma: OpId) -> bool {
    let users = users(kernel, body, tile);
    let by = |user: &OpId| {
        let op = kernel.op(*user);
        let turned = matches!(op.kind, OpKind::Permute(_));
        *user == mma || turned && op.results.first().is_some_and(|v| is_read_by(kernel, body, *v, mma))
    };
    !users.is_empty() && users.iter().all(by)
}

/// The two MMAs of a loop, if nothing else has to do with them than this transform moves.
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
    // The first MMA feeds operand A of the second one, and begins anew.
    let fed = depends(kernel, body, *a, *kernel.op(first).results.first()?);
    let [a, _, sum] = kernel.op(first).args[..] else { return None };
    let anew = !depends(kernel, body, sum, carried) && !inside.contains(&sum) && !inside.contains(&a);
    (fed && anew).then_some(Chain { first, second, place, scaling, converting })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other operation is an MMA")]
const fn is_mma(kind: &OpKind) -> bool {
    match kind {
        OpKind::Mma | OpKind::Ttg(TtgOp::ComputeIssue | TtgOp::AccMma) => true,
        _ => false,
    }
}

/// The pure operations by which `to` is computed from `from`, in order: nothing else uses `from` or the values between.
fn between(kernel: &Kernel, body: Block, from: Value, to: Value) -> Option<Vec<OpId>> {
    let (mut found, mut at) = (Vec::new(), from);
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

/// The casts that only make operand A of an MMA, in order.
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

/// Whether a value is computed from another one within a body.
fn depends(kernel: &Kernel, body: Block, value: Value, on: Value) -> bool {
    let mut wanted = BTreeSet::from([value]);
    for id in kernel.block(body).ops.iter().rev() {
        let op = kernel.op(*id);
        if op.results.iter().any(|v| wanted.contains(v)) {
            wanted.extend(&op.args);
            for region in &op.regions {
                kernel.walk_block(*region, &mut |_, op| wanted.extend(&op.args));
            }
        }
    }
    wanted.contains(&on)
}

fn parts(kernel: &Kernel, looped: OpId) -> Option<Parts> {
    let body = *kernel.op(looped).regions.first()?;
    let chain = chain(kernel, looped, body)?;
    if kernel.op(looped).results.iter().any(|v| kernel.ty(*v).is_linear()) {
        return None;
    }
    let stages = [stage(kernel, body, chain.first)?, stage(kernel, body, chain.second)?];
    let apart: BTreeSet<OpId> = stages
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
    // What remains is passed by waits and releases of stages: it may only compute.
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

/// What waits for and views the stage that operand B of an MMA is in, and what releases it; nothing else may read the stage.
fn stage(kernel: &Kernel, body: Block, mma: OpId) -> Option<[Vec<OpId>; 2]> {
    let ops = &kernel.block(body).ops;
    let mut tile = *kernel.op(mma).args.get(1)?;
    let pipe = loop {
        let op = kernel.def_op(tile)?;
        match op.kind {
            OpKind::Permute(_) => tile = *op.args.first()?,
            OpKind::Ttg(TtgOp::View { .. }) => match kernel.ty(*op.args.first()?) {
                Ty::Token(Token::Rperm, pipe) => break pipe,
                _ => return None,
            },
            _ => return None,
        }
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
        match op.kind {
            OpKind::Ttg(TtgOp::Ready(_) | TtgOp::WaitReady | TtgOp::ReadPerm) => wait.push(*id),
            OpKind::Ttg(TtgOp::View { .. }) | OpKind::Permute(_)
                if is_read_by(kernel, body, *op.results.first()?, mma) =>
            {
                wait.push(*id);
            }
            OpKind::Ttg(TtgOp::Consumed | TtgOp::Release) => end.push(*id),
            _ => return None,
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

type Names = BTreeMap<Value, Value>;

fn named(names: &Names, value: Value) -> Value {
    names.get(&value).copied().unwrap_or(value)
}

/// The operations of `rest` that the first MMA needs, and the others.
fn halves(kernel: &Kernel, parts: &Parts) -> [Vec<OpId>; 2] {
    let body = parts.body;
    let before = |id: &OpId| {
        let results = &kernel.op(*id).results;
        results.iter().any(|v| kernel.op(parts.chain.first).args.iter().any(|arg| depends(kernel, body, *arg, *v)))
    };
    let (before, behind) = parts.rest.iter().copied().partition(before);
    [before, behind]
}

fn one(edit: &mut Edit, around: Block, looped: OpId, parts: &Parts) -> Option<()> {
    let Op { kind, args, results, loc, .. } = edit.kernel.op(looped).clone();
    let (bounds, init) = args.split_at(3);
    let ([lo, hi, step], init) = (<[Value; 3]>::try_from(bounds).ok()?, init.to_vec());
    let types: Vec<Ty> = results.iter().map(|v| edit.kernel.ty(*v)).collect();
    edit.loc = loc;
    let some = edit.one(OpKind::Cmp(Pred::Lt), &[lo, hi])?;
    let then = edit.block(&[], |edit, _| {
        let first = peeled(edit, parts, lo, &init)?;
        edit.loc = loc;
        let second = edit.one(OpKind::Binary(BinOp::Add), &[lo, step])?;
        let types: Vec<Ty> = [vec![Ty::I32], first.iter().map(|v| edit.kernel.ty(*v)).collect()].concat();
        let body = edit.block(&types, |edit, args| shifted(edit, parts, args))?;
        edit.loc = loc;
        let mut out = edit.raw(kind, &[&[second, hi, step][..], &first].concat(), &types[1..], vec![body]);
        let place = parts.chain.place;
        let operand = out.pop()?;
        out[place] = last_mma(edit, parts, operand, out[place])?;
        edit.loc = loc;
        edit.raw(OpKind::Yield, &out, &[], Vec::new());
        Some(())
    })?;
    let otherwise = edit.block(&[], |edit, _| {
        edit.raw(OpKind::Yield, &init, &[], Vec::new());
        Some(())
    })?;
    let given = edit.raw(OpKind::If, &[some], &types, vec![then, otherwise]);
    edit.put_before(around, looped);
    edit.take_out(around, looped);
    for (old, new) in results.iter().zip(&given) {
        edit.kernel.values[new.index()].name = edit.kernel.value(*old).name.clone();
        edit.replace(*old, *new);
    }
    Some(())
}

/// What the loop carries next, with the accumulator that the second MMA adds to, and its operand A last.
fn next(edit: &Edit, parts: &Parts, names: &Names) -> Option<Vec<Value>> {
    let last = *edit.kernel.block(parts.body).ops.last()?;
    let [a, _, sum] = edit.kernel.op(parts.chain.second).args[..] else { return None };
    let mut values = edit.kernel.op(last).args.clone();
    values[parts.chain.place] = sum;
    values.push(a);
    Some(values.into_iter().map(|v| named(names, v)).collect())
}

/// The first iteration, without its second MMA.
fn peeled(edit: &mut Edit, parts: &Parts, lo: Value, init: &[Value]) -> Option<Vec<Value>> {
    let args = edit.kernel.block(parts.body).args.clone();
    let mut names: Names = args.into_iter().zip([&[lo][..], init].concat()).collect();
    let [before, behind] = halves(&edit.kernel, parts);
    let [wait, end] = &parts.stages[0];
    for ops in [&before, wait, &vec![parts.chain.first], end, &behind, &parts.chain.scaling, &parts.chain.converting] {
        edit.copies(ops, &mut names);
    }
    next(edit, parts, &names)
}

/// The body of the loop: an iteration with the second MMA of the one before.
fn shifted(edit: &mut Edit, parts: &Parts, args: &[Value]) -> Option<()> {
    let Chain { first, second, place, scaling, converting } = &parts.chain;
    let inside = edit.kernel.block(parts.body).args.clone();
    let (operand, own) = args.split_last()?;
    let mut names: Names = inside.iter().copied().zip(own.iter().copied()).collect();
    let [before, behind] = halves(&edit.kernel, parts);
    let [[wait_first, end_first], [wait_second, end_second]] = &parts.stages;
    edit.copies(&before, &mut names);
    edit.copies(wait_first, &mut names);
    let issued_first = issued(edit, *first, &names, None)?;
    edit.copies(wait_second, &mut names);
    let issued_second = issued(edit, *second, &names, Some([*operand, *own.get(1 + place)?]))?;
    waited(edit, *first, issued_first, &mut names)?;
    edit.copies(end_first, &mut names);
    edit.copies(&behind, &mut names);
    let sum = waited(edit, *second, issued_second, &mut names)?;
    edit.copies(end_second, &mut names);
    names.insert(*inside.get(1 + place)?, sum);
    edit.copies(scaling, &mut names);
    edit.copies(converting, &mut names);
    let values = next(edit, parts, &names)?;
    edit.raw(OpKind::Continue(0), &values, &[], Vec::new());
    Some(())
}

/// Issues an MMA, of other operands than its own if A and the accumulator are given.
fn issued(edit: &mut Edit, mma: OpId, names: &Names, other: Option<[Value; 2]>) -> Option<Value> {
    let Op { args, loc, .. } = edit.kernel.op(mma).clone();
    let [a, b, sum] = args[..] else { return None };
    let [a, sum] = other.unwrap_or([named(names, a), named(names, sum)]);
    edit.loc = loc;
    edit.one(OpKind::Ttg(TtgOp::ComputeIssue), &[a, named(names, b), sum])
}

fn waited(edit: &mut Edit, mma: OpId, issued: Value, names: &mut Names) -> Option<Value> {
    let Op { results, loc, .. } = edit.kernel.op(mma).clone();
    edit.loc = loc;
    let tile = edit.one(OpKind::Ttg(TtgOp::ComputeWait), &[issued])?;
    names.insert(*results.first()?, tile);
    Some(tile)
}

/// The second MMA of the last iteration.
fn last_mma(edit: &mut Edit, parts: &Parts, operand: Value, sum: Value) -> Option<Value> {
    let [wait, end] = &parts.stages[1];
    let mut names = Names::new();
    edit.copies(wait, &mut names);
    let Op { args, loc, .. } = edit.kernel.op(parts.chain.second).clone();
    edit.loc = loc;
    let tile = edit.one(OpKind::Mma, &[operand, named(&names, *args.get(1)?), sum])?;
    edit.copies(end, &mut names);
    Some(tile)
}
