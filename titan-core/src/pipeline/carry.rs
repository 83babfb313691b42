//! Carries the stage of the next iteration through a loop with prefetching: the loop waits for it at the end of the current iteration.
//!
//! The first fragments of the next iteration can then be loaded early, during the last MMA of the current one. Copies are issued
//! unconditionally, and write zeros after the last iteration, so that the body has no branch.
//!
//! ```text
//! for t in 0..P { if t < N { acquire; copy t } }
//! for c in 0..N { wait for c; if c + P < N { acquire; copy c + P }; compute; release }
//! ```
//!
//! becomes
//!
//! ```text
//! for t in 0..P { acquire; copy t if t < N, else zeros }
//! wait for 0
//! for c in 0..N, carrying a stage { acquire; copy c + P if c + P < N, else zeros; compute; release; wait for c + 1 }
//! release; P - 1 times { wait; release }
//! ```
//!
//! N + P stages are filled and read, of which the last P are not used. The result is correct for every N, including 0; the caller verifies
//! it.
//!
//! Deliberately absent: loops with early exits, and copies whose coordinates cannot be computed for iterations beyond the last (because
//! they divide, or load from tensors).

use super::edit::Edit;
use super::peel::leaves;
use crate::ir::{BinOp, Block, Fill, Kernel, Op, OpId, OpKind, Pipe, Proxy, TtgOp, Value};

/// The kernel with the loop over stages of a ring in this form; `None` if there is no such loop, or it does not qualify.
#[must_use]
pub fn carry(kernel: &Kernel, ring: Pipe) -> Option<Kernel> {
    let Found { around, ahead, looped, body } = find(kernel, ring)?;
    let Parts { wait, guard, release } = parts(kernel, body, ring)?;
    let distance = kernel.int_constant(*kernel.op(ahead).args.get(1)?)?;
    let first = *kernel.op(ahead).regions.first()?;
    let first_guard = guard_of(kernel, first, ring)?;
    let [perm] = kernel.op(*wait.last()?).results[..] else { return None };
    let mut edit = Edit::new(kernel.clone());
    flatten(&mut edit, first, first_guard)?;
    flatten(&mut edit, body, guard)?;
    // Before the loop, and in place of the old wait inside.
    edit.loc = kernel.op(*wait.first()?).loc;
    let initial = edit.wait_for(ring)?;
    edit.put_before(around, looped);
    let inside = edit.carry(looped, body, initial)?;
    edit.replace(perm, inside);
    wait.iter().for_each(|id| edit.take_out(body, *id));
    // At the end of the body.
    let next = edit.wait_for(ring)?;
    edit.put_after(body, release);
    let end = *edit.kernel.block(body).ops.last()?;
    edit.kernel.ops.get_mut(end.index())?.args.push(next);
    // After the loop.
    let mut rest = *edit.kernel.op(looped).results.last()?;
    for more in 1..=distance {
        let consumed = edit.one(OpKind::Ttg(TtgOp::Consumed), &[rest])?;
        edit.op(OpKind::Ttg(TtgOp::Release), &[consumed])?;
        if more < distance {
            rest = edit.wait_for(ring)?;
        }
    }
    edit.put_after(around, looped);
    Some(edit.kernel)
}

impl Edit {
    /// Waits for the next stage of a ring, and returns the permission to read it.
    fn wait_for(&mut self, ring: Pipe) -> Option<Value> {
        let ready = self.one(OpKind::Ttg(TtgOp::Ready(ring)), &[])?;
        let stage = self.one(OpKind::Ttg(TtgOp::WaitReady), &[ready])?;
        self.one(OpKind::Ttg(TtgOp::ReadPerm), &[stage])
    }
}

/// A loop that reads the stages of a ring, and the loop that starts the first copies.
struct Found {
    around: Block,
    ahead: OpId,
    looped: OpId,
    body: Block,
}

fn find(kernel: &Kernel, ring: Pipe) -> Option<Found> {
    for around in (0..kernel.blocks.len()).map(Block::new) {
        let ops = &kernel.block(around).ops;
        let bodies = |id: &OpId| {
            let Op { kind: OpKind::For(_), regions, .. } = kernel.op(*id) else { return None };
            regions.first().map(|body| (*id, *body))
        };
        let reads = |(_, body): &(OpId, Block)| has(kernel, *body, |k| *k == TtgOp::Ready(ring));
        let Some((looped, body)) = ops.iter().filter_map(bodies).find(reads) else { continue };
        let starts = |(id, body): &(OpId, Block)| *id != looped && guard_of(kernel, *body, ring).is_some();
        let (ahead, _) = ops.iter().filter_map(bodies).take_while(|(id, _)| *id != looped).find(starts)?;
        return Some(Found { around, ahead, looped, body });
    }
    None
}

/// Whether a ring operation is directly in a block.
fn has(kernel: &Kernel, block: Block, wanted: impl Fn(&TtgOp) -> bool) -> bool {
    kernel.block(block).ops.iter().any(|id| matches!(&kernel.op(*id).kind, OpKind::Ttg(ttg) if wanted(ttg)))
}

/// The branch of a block that copies to a stage of the ring.
fn guard_of(kernel: &Kernel, block: Block, ring: Pipe) -> Option<OpId> {
    let guards = |id: &&OpId| {
        let op = kernel.op(**id);
        op.kind == OpKind::If
            && op.regions.first().is_some_and(|then| has(kernel, *then, |k| *k == TtgOp::Acquire(ring)))
    };
    kernel.block(block).ops.iter().find(guards).copied()
}

/// The operations of a loop over stages.
struct Parts {
    /// The operations that create the wait, wait for, and read the stage.
    wait: [OpId; 3],
    guard: OpId,
    /// The operation that releases the stage.
    release: OpId,
}

fn parts(kernel: &Kernel, body: Block, ring: Pipe) -> Option<Parts> {
    let ops = &kernel.block(body).ops;
    if leaves(kernel, body) {
        return None;
    }
    let users = |value: Value| {
        let mut found = Vec::new();
        kernel.walk_block(body, &mut |id, op| found.extend(op.args.contains(&value).then_some(id)));
        found
    };
    let only = |id: OpId, wanted: &TtgOp| {
        let [value] = kernel.op(id).results[..] else { return None };
        let [user] = users(value)[..] else { return None };
        (kernel.op(user).kind == OpKind::Ttg(wanted.clone()) && ops.contains(&user)).then_some(user)
    };
    let mut claims = ops.iter().filter(|id| kernel.op(**id).kind == OpKind::Ttg(TtgOp::Ready(ring)));
    let (Some(ready), None) = (claims.next(), claims.next()) else { return None };
    let stage = only(*ready, &TtgOp::WaitReady)?;
    let perm = only(stage, &TtgOp::ReadPerm)?;
    let [value] = kernel.op(perm).results[..] else { return None };
    let mut release = None;
    for user in users(value) {
        let OpKind::Ttg(ttg) = &kernel.op(user).kind else { return None };
        // There must be no other operation that keeps the stage or a part of it.
        let releases = match (ttg == &TtgOp::Consumed, ttg == &TtgOp::AccMma) {
            (true, _) => Some(only(user, &TtgOp::Release)?),
            (_, true) => Some(user),
            (false, false) if matches!(ttg, TtgOp::View { .. }) => None,
            (false, false) => return None,
        };
        if let Some(op) = releases.filter(|op| ops.contains(op))
            && release.replace(op).is_some()
        {
            return None;
        }
    }
    Some(Parts { wait: [*ready, stage, perm], guard: guard_of(kernel, body, ring)?, release: release? })
}

/// Replaces a branch with copies by copies that depend on its condition, and write zeros if it is false.
fn flatten(edit: &mut Edit, block: Block, guard: OpId) -> Option<()> {
    let Op { args, regions, results, .. } = edit.kernel.op(guard).clone();
    let ([condition], [then, otherwise], []) = (&args[..], &regions[..], &results[..]) else { return None };
    let ops = edit.kernel.block(*then).ops.clone();
    if edit.kernel.block(*otherwise).ops.len() != 1 {
        return None;
    }
    let (last, ops) = ops.split_last()?;
    for id in ops {
        let op = edit.kernel.ops.get_mut(id.index())?;
        if let OpKind::Ttg(TtgOp::AsyncProduce { proxy: Proxy::Generic, skipped: skipped @ None, .. }) = &mut op.kind {
            *skipped = Some(Fill::Zero);
            op.args.push(*condition);
        } else if !is_total(&op.kind) {
            return None;
        }
    }
    if edit.kernel.op(*last).kind != OpKind::Yield {
        return None;
    }
    edit.pending.extend(ops);
    edit.put_before(block, guard);
    edit.take_out(block, guard);
    Some(())
}

/// Whether an operation may be executed for an iteration beyond the last, because it cannot fail.
fn is_total(kind: &OpKind) -> bool {
    let divides = matches!(kind, OpKind::Binary(BinOp::Div | BinOp::Rem));
    let number = matches!(
        kind,
        OpKind::Const(_)
            | OpKind::Binary(_)
            | OpKind::Cmp(_)
            | OpKind::Select
            | OpKind::Cast(_)
            | OpKind::Dim(_)
            | OpKind::ProgramId(_)
            | OpKind::NumPrograms(_)
            | OpKind::Ttg(TtgOp::Rematerialize | TtgOp::Acquire(_) | TtgOp::Source(..) | TtgOp::SourceRows { .. })
    );
    number && !divides
}
