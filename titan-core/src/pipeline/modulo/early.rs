//! What an operation may do for iterations that do not exist, because it runs ahead of the steady loop.
//!
//! * An operation that only reads registers and stages, and computes, is executed: nothing shows.
//! * *Fills* of a ring, if no other operation on rings runs ahead, are *guarded*: a branch executes them only if their iteration exists, and
//!   with them what only they use, as the load of a coordinate. If
//!   waits run ahead too, they are executed for stages beyond the last one, which must be filled. Then fills are executed always, with the
//!   *predicate* that the iteration exists, and fill stages with zeros otherwise.
//! * A *fetch* of a tile to registers is executed with the same predicate: what it loads is used later, so that no branch can guard it.
//! * Waits and releases of a ring are executed, and what of these iterations is left over is executed after the loop, so that all clocks of
//!   the ring agree.
//!
//! Deliberately absent: other effects, which are executed in the last stage.

use super::Violation;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::traffic::{On, traffic};
use crate::ir::{Effect, Kernel, LocalOp, Op, OpId, OpKind, Pipe, TtgOp, Ty, Value};

/// What an operation does that runs ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    /// It only reads registers and stages, and computes.
    Harmless,
    /// It reads a tensor, and has a predicate for iterations that do not exist.
    Predicated,
    /// It reads a tensor, may fail or may not end, and must not be executed for iterations that do not exist.
    Guarded,
    /// It fills a stage of this ring, or acquires the slot for it.
    Fills(Pipe),
    /// It waits for a stage of this ring, or ends reading it.
    Reads(Pipe),
}

/// How the loop treats iterations that do not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    /// Fills are guarded.
    Guarded,
    /// Stages of these rings are filled, waited for and released beyond the last iteration; for each, the greatest lead of its operations.
    Drained(SortedMap<Pipe, u16>),
    /// There are none: the first and the last iteration stand apart from the loop.
    Peeled,
}

/// What an operation does to a ring; `None` if to none. A branch whose arms fill one, does so itself.
pub(super) fn of_ring(kernel: &Kernel, id: OpId) -> Option<Early> {
    let op = kernel.op(id);
    if op.kind == OpKind::If {
        let mut inside = Vec::new();
        op.regions.iter().for_each(|arm| kernel.walk_block(*arm, &mut |id, _| inside.push(id)));
        // Only fills of one and the same ring. A branch that waits or releases takes part in the clocks of a ring in
        // one of its arms only, and a branch on two rings cannot belong to one of them: both are left to `beyond`,
        // which refuses them where their rings run ahead.
        let mut used = inside.iter().filter_map(|id| itself_of_ring(kernel, *id));
        let first = used.next().filter(|first| matches!(first, Early::Fills(_)))?;
        return used.all(|other| other == first).then_some(first);
    }
    itself_of_ring(kernel, id)
}

/// The ring that an operation fills, or of which it acquires a slot; for a branch, in its arms.
pub(crate) fn fills(kernel: &Kernel, id: OpId) -> Option<Pipe> {
    match of_ring(kernel, id) {
        Some(Early::Fills(pipe)) => Some(pipe),
        Some(Early::Reads(_) | Early::Harmless | Early::Predicated | Early::Guarded) | None => None,
    }
}

/// What an operation does to a ring, without those nested in it.
fn itself_of_ring(kernel: &Kernel, id: OpId) -> Option<Early> {
    let op = kernel.op(id);
    let token = || op.args.iter().find_map(|v| kernel.ty(*v).ring());
    let OpKind::Ttg(ttg) = &op.kind else { return None };
    match ttg {
        TtgOp::Acquire(pipe) => Some(Early::Fills(*pipe)),
        TtgOp::AsyncProduce { .. } | TtgOp::Fill(_) => token().map(Early::Fills),
        TtgOp::Ready(pipe) => Some(Early::Reads(*pipe)),
        TtgOp::WaitReady | TtgOp::ReadPerm | TtgOp::Consumed | TtgOp::Release => token().map(Early::Reads),
        // Names of stages, which only read.
        TtgOp::View { .. } | TtgOp::Read | TtgOp::Source(..) | TtgOp::SourceRows { .. } | TtgOp::Rematerialize => None,
        TtgOp::Write
        | TtgOp::Poisoned
        | TtgOp::Split(_)
        | TtgOp::Join
        | TtgOp::ComputeIssue
        | TtgOp::ComputeWait
        | TtgOp::AccStart(_)
        | TtgOp::AccMma
        | TtgOp::AccFinish
        | TtgOp::StoreIssue(_)
        | TtgOp::StoreWait
        | TtgOp::Roles
        | TtgOp::Finalize
        | TtgOp::Claim(..)
        | TtgOp::Fence { .. } => None,
    }
}

/// What an operation does if it runs ahead; `None` if it may not.
pub(super) fn early(kernel: &Kernel, id: OpId) -> Option<Early> {
    if kernel.op(id).kind == OpKind::Local(LocalOp::Fetch { guarded: false }) {
        return Some(Early::Predicated);
    }
    of_ring(kernel, id).or_else(|| alone(kernel, id))
}

/// What an operation does with those nested in it; `None` if one of them writes or is of a ring.
fn alone(kernel: &Kernel, id: OpId) -> Option<Early> {
    let mut all = vec![id];
    kernel.op(id).regions.iter().for_each(|region| kernel.walk_block(*region, &mut |id, _| all.push(id)));
    let accesses = |op: &Op| traffic(&op.kind).accesses.into_iter().flatten().collect::<Vec<_>>();
    // A copy to shared memory has the effect of the read of its tensor, and is told by its accesses.
    // What is written, printed or done to a ring for an iteration that does not exist would be seen after the loop.
    let writes = |op: &Op| {
        accesses(op).iter().any(|access| access.writes)
            || match op.kind.effect() {
                Effect::Pure | Effect::Read | Effect::Control | Effect::Trap => false,
                Effect::Write | Effect::Atomic | Effect::Print | Effect::Pipeline => true,
            }
    };
    // Tensors may end where the last iteration reads, and steps of 0 are excluded for iterations that exist, or if they are constant.
    let must_exist = |op: &Op| {
        let has_steps = |step: &Value| kernel.int_constant(*step).is_some();
        accesses(op).iter().any(|access| access.on == On::Tensor)
            || op.kind.effect() == Effect::Trap
            || op.kind == OpKind::Loop
            || op.kind.is_loop() && !op.args.get(2).is_some_and(has_steps)
    };
    let any = |wanted: &dyn Fn(&Op) -> bool| all.iter().any(|id| wanted(kernel.op(*id)));
    // A write is not guarded either: it stays in the last stage, which is executed for existing iterations only.
    match (any(&writes), any(&must_exist)) {
        (true, _) => None,
        (false, true) => Some(Early::Guarded),
        (false, false) => Some(Early::Harmless),
    }
}

/// Whether an operation of a body only reads and computes, so that it may be executed ahead where a branch guards it.
pub(crate) fn may_be_guarded(kernel: &Kernel, id: OpId) -> bool {
    // What is fetched is used outside of the branch, so that it has a predicate instead.
    let alone =
        if kernel.op(id).kind == OpKind::Local(LocalOp::Fetch { guarded: false }) { None } else { alone(kernel, id) };
    match alone {
        Some(Early::Harmless | Early::Guarded) => true,
        Some(Early::Fills(_) | Early::Reads(_) | Early::Predicated) | None => false,
    }
}

/// Whether an operation fills a stage only under a condition.
fn is_conditional(kernel: &Kernel, id: OpId) -> bool {
    matches!(
        kernel.op(id).kind,
        OpKind::If | OpKind::Ttg(TtgOp::AsyncProduce { skipped: Some(_), .. } | TtgOp::Fill(_))
    ) || kernel.op(id).args.iter().any(|v| kernel.ty(*v) == Ty::BOOL)
}

/// Whether an operation fills a stage with what is in registers.
fn has_tiles(kernel: &Kernel, id: OpId) -> bool {
    let op = kernel.op(id);
    let is_produced = matches!(op.kind, OpKind::Ttg(TtgOp::AsyncProduce { .. }));
    is_produced && op.args.iter().any(|v| matches!(kernel.ty(*v), Ty::Tile(..)))
}

/// Why an operation may not run ahead.
pub(super) const HAS_EFFECT: &str =
    "the schedule executes this operation, which has an effect, for iterations that do not exist";

/// How a loop treats iterations that do not exist. The operations of its body are given with their leads.
pub(super) fn beyond(kernel: &Kernel, ops: &[(OpId, u16)]) -> Result<Beyond, Violation> {
    let at = |op: OpId, message: &str| Err(Violation { op, message: message.to_owned() });
    let (mut read_early, mut guarded) = (SortedSet::new(), None);
    // An operation of lead 0 is executed for existing iterations only, whatever its effect.
    for (id, _) in ops.iter().filter(|(_, lead)| *lead > 0) {
        match early(kernel, *id) {
            Some(Early::Reads(pipe)) => drop(read_early.insert(pipe)),
            Some(Early::Guarded) => drop(guarded.get_or_insert(*id)),
            Some(Early::Harmless | Early::Predicated | Early::Fills(_)) => {}
            None => return at(*id, HAS_EFFECT),
        }
    }
    // No stage is awaited beyond the last one, so none must be filled: each fill can be left out with a branch, and all
    // clocks agree without a drain.
    if read_early.is_empty() {
        return Ok(Beyond::Guarded);
    }
    // A wait for a stage beyond the last one must return, so the stage must be filled, and nothing in its chain may be
    // skipped.
    if let Some(id) = guarded {
        return at(id, HAS_EFFECT);
    }
    let mut leads: SortedMap<Pipe, u16> = SortedMap::new();
    // All clocks of a ring must advance equally far, which is as far as the operation that runs ahead most. With fills
    // at lead 2 and waits at lead 1, the loop and what follows execute all of them N + 2 times.
    for (id, lead) in ops {
        if let Some(Early::Fills(pipe) | Early::Reads(pipe)) = of_ring(kernel, *id) {
            let most = leads.entry(pipe).or_default();
            *most = (*most).max(*lead);
        }
    }
    for (id, lead) in ops {
        match of_ring(kernel, *id) {
            // It would need the conjunction of both conditions.
            Some(Early::Fills(pipe))
                if leads.get(&pipe).is_some_and(|lead| *lead > 0) && is_conditional(kernel, *id) =>
            {
                return at(*id, "a copy with a condition cannot be ahead where waits for its stages are");
            }
            // Beyond the last iteration, a copy writes zeros in place of what it names; what is in registers already is no name.
            Some(Early::Fills(pipe)) if leads.get(&pipe).is_some_and(|lead| *lead > 0) && has_tiles(kernel, *id) => {
                return at(*id, "a copy out of registers cannot be ahead where waits for its stages are");
            }
            Some(Early::Fills(pipe)) if leads.get(&pipe) != Some(lead) => {
                return at(*id, "the schedule reads stages of this ring before it fills them");
            }
            Some(Early::Fills(_) | Early::Reads(_) | Early::Harmless | Early::Predicated | Early::Guarded) | None => {}
        }
        let mut inside = Vec::new();
        for region in &kernel.op(*id).regions {
            kernel.walk_block(*region, &mut |id, _| inside.push(id));
        }
        // After the loop, operations are executed one by one; one inside of a branch or a loop could not be executed
        // without what is around it, and the clocks of its ring would disagree.
        let ahead = |id: &&OpId| match of_ring(kernel, **id) {
            Some(Early::Fills(pipe) | Early::Reads(pipe)) => leads.get(&pipe).is_some_and(|lead| *lead > 0),
            Some(Early::Harmless | Early::Predicated | Early::Guarded) | None => false,
        };
        if let Some(nested) = inside.iter().find(ahead) {
            return at(*nested, "other operations of this ring run ahead, which this one in a branch or a loop cannot");
        }
    }
    leads.retain(|_, lead| *lead > 0);
    for (pipe, _) in leads.iter() {
        let of_ring = |fills: bool| {
            ops.iter().find(|(id, _)| {
                of_ring(kernel, *id) == Some(if fills { Early::Fills(*pipe) } else { Early::Reads(*pipe) })
            })
        };
        // A role that only reads a ring cannot wait for stages beyond the last one: the role that fills them stops at
        // N, and the wait would be for ever. Where both are in one loop, the fills are as far ahead as any wait
        // (above).
        if let (None, Some((id, _))) = (of_ring(true), of_ring(false)) {
            return at(
                *id,
                "the schedule awaits stages of this ring for iterations that do not exist, and nothing fills them",
            );
        }
    }
    Ok(Beyond::Drained(leads))
}
