//! What an operation may do for iterations that do not exist, because it runs ahead of the steady loop.
//!
//! * An operation that only reads registers and stages, and computes, is executed: nothing shows.
//! * *Fills* of a ring, if no other operation on rings runs ahead, are *guarded*: a branch executes them only if their iteration exists. If
//!   waits run ahead too, they are executed for stages beyond the last one, which must be filled. Then fills are executed always, with the
//!   *predicate* that the iteration exists, and fill stages with zeros otherwise.
//! * Waits and releases of a ring are executed, and what of these iterations is left over is executed after the loop, so that all clocks of
//!   the ring agree.
//!
//! Deliberately absent: other effects, which are executed in the last stage.

use super::Violation;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::traffic::{On, traffic};
use crate::ir::{Effect, Kernel, OpId, OpKind, Pipe, TtgOp, Ty};

/// What an operation does that runs ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    /// It only reads and computes.
    Harmless,
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
}

/// What an operation does to a ring; `None` if to none.
pub(super) fn of_ring(kernel: &Kernel, id: OpId) -> Option<Early> {
    let op = kernel.op(id);
    let token = || op.args.iter().find_map(|v| kernel.ty(*v).ring());
    let OpKind::Ttg(ttg) = &op.kind else { return None };
    match ttg {
        TtgOp::Acquire(pipe) => Some(Early::Fills(*pipe)),
        TtgOp::AsyncProduce { .. } => token().map(Early::Fills),
        TtgOp::Ready(pipe) => Some(Early::Reads(*pipe)),
        TtgOp::WaitReady | TtgOp::ReadPerm | TtgOp::Consumed | TtgOp::Release => token().map(Early::Reads),
        // Names of stages, which only read.
        TtgOp::View { .. } | TtgOp::Read | TtgOp::Source(..) | TtgOp::SourceRows { .. } | TtgOp::Rematerialize => None,
        TtgOp::Fill(_)
        | TtgOp::Write
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
fn early(kernel: &Kernel, id: OpId) -> Option<Early> {
    match of_ring(kernel, id) {
        Some(early) => Some(early),
        None => only_reads(kernel, id).then_some(Early::Harmless),
    }
}

/// Whether an operation fills a stage only under a condition.
fn is_conditional(kernel: &Kernel, id: OpId) -> bool {
    matches!(kernel.op(id).kind, OpKind::Ttg(TtgOp::AsyncProduce { skipped: Some(_), .. }))
        || kernel.op(id).args.iter().any(|v| kernel.ty(*v) == Ty::BOOL)
}

/// Whether an operation and those nested in it only read and compute, so many times as it is known when they begin. A copy to shared memory
/// has the effect of the read of its tensor, and is told by its accesses; tensors may end where the last iteration reads.
fn only_reads(kernel: &Kernel, id: OpId) -> bool {
    let op = kernel.op(id);
    let shows = traffic(&op.kind).accesses.iter().flatten().any(|access| access.writes || access.on == On::Tensor);
    // The steps of a loop are not 0 in any iteration if they are constant.
    let ends = op.kind != OpKind::Loop
        && (!op.kind.is_loop() || op.args.get(2).is_some_and(|step| kernel.int_constant(*step).is_some()));
    let reads = !shows
        && ends
        && match op.kind.effect() {
            Effect::Pure | Effect::Read | Effect::Control => true,
            Effect::Trap | Effect::Write | Effect::Atomic | Effect::Print | Effect::Pipeline => false,
        };
    reads && op.regions.iter().flat_map(|region| &kernel.block(*region).ops).all(|id| only_reads(kernel, *id))
}

/// How a loop treats iterations that do not exist. The operations of its body are given with their leads.
pub(super) fn beyond(kernel: &Kernel, ops: &[(OpId, u16)]) -> Result<Beyond, Violation> {
    let at = |op: OpId, message: &str| Err(Violation { op, message: message.to_owned() });
    let mut read_early = SortedSet::new();
    for (id, _) in ops.iter().filter(|(_, lead)| *lead > 0) {
        match early(kernel, *id) {
            Some(Early::Reads(pipe)) => drop(read_early.insert(pipe)),
            Some(Early::Harmless | Early::Fills(_)) => {}
            None => {
                return at(
                    *id,
                    "the schedule executes this operation, which has an effect, for iterations that do not exist",
                );
            }
        }
    }
    if read_early.is_empty() {
        return Ok(Beyond::Guarded);
    }
    let mut leads: SortedMap<Pipe, u16> = SortedMap::new();
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
            Some(Early::Fills(pipe)) if leads.get(&pipe) != Some(lead) => {
                return at(*id, "the schedule reads stages of this ring before it fills them");
            }
            Some(Early::Fills(_) | Early::Reads(_) | Early::Harmless) | None => {}
        }
        let mut inside = Vec::new();
        for region in &kernel.op(*id).regions {
            kernel.walk_block(*region, &mut |id, _| inside.push(id));
        }
        let ahead = |id: &&OpId| match of_ring(kernel, **id) {
            Some(Early::Fills(pipe) | Early::Reads(pipe)) => leads.get(&pipe).is_some_and(|lead| *lead > 0),
            Some(Early::Harmless) | None => false,
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
        if let (None, Some((id, _))) = (of_ring(true), of_ring(false)) {
            return at(
                *id,
                "the schedule awaits stages of this ring for iterations that do not exist, and nothing fills them",
            );
        }
    }
    Ok(Beyond::Drained(leads))
}
