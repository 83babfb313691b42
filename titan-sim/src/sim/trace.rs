//! The activity timeline of a run: the intervals from which `titan sim` draws its picture.
//!
//! The clock is the number of operations that all agents of the cluster have attempted. It gives the order of events in this
//! run, not durations.
#![expect(clippy::wildcard_enum_match_arm, reason = "most operations are not recorded")]

use super::machine::Machine;
use super::plan::{BULK_LOAD, BULK_STORE, BULK_WRITE, CP_ASYNC, LGKMCNT, RING_COPY, VMCNT, WGMMA};
use super::state::Moved;
use super::value::Val;
use super::work::Work;
use crate::engine::{Class, OpId as Pending};
use std::collections::BTreeMap;
use titan_core::ir::op_table::mnemonic;
use titan_core::ir::{Effect, Loc, OpId, OpKind, Pipe, Ty, Value};

/// An activity of an agent, or of an asynchronous operation in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The agent; numbered consecutively over the programs of a cluster.
    pub agent: u32,
    /// The name of the agent's role.
    pub role: String,
    /// The kind of asynchronous operation; `None` for the agent itself.
    pub helper: Option<&'static str>,
    /// The mnemonic of the operation.
    pub op: &'static str,
    /// Its location in the user's kernel.
    pub loc: Loc,
    /// The ring or region that it accesses.
    pub what: String,
    /// The slot of the ring that it accesses.
    pub slot: Option<u64>,
    /// The ring time that it accesses.
    pub time: Option<u64>,
    /// The clock when it began.
    pub begin: u64,
    /// The clock when it ended; never before `begin`.
    pub end: u64,
    /// The roles that it waited for; empty if it was active.
    pub waits_for: Vec<String>,
}

/// The name of a class of operations.
const fn class_name(class: Class) -> &'static str {
    match class {
        CP_ASYNC => "cp.async",
        WGMMA => "MMA",
        BULK_STORE => "store, reading",
        BULK_WRITE => "store, writing",
        VMCNT | BULK_LOAD | RING_COPY => "copy",
        LGKMCNT => "local memory",
        _ => "operation",
    }
}

/// The recorder of the activity timeline of a run.
#[derive(Debug, Default)]
pub(super) struct Tracer {
    on: bool,
    done: Vec<Interval>,
    waiting: BTreeMap<usize, Interval>,
    in_flight: BTreeMap<Pending, Interval>,
}

impl Tracer {
    /// Creates a recorder; with `on` false, it records nothing.
    pub(super) fn new(on: bool) -> Tracer {
        Tracer { on, ..Tracer::default() }
    }

    /// Describes the next operation of an agent before it is attempted, while the tokens that it consumes still exist.
    pub(super) fn about(&self, machine: &Machine<'_>, agent: usize, now: u64) -> Option<(OpId, Interval)> {
        let op = machine.next_op(agent).filter(|_| self.on)?;
        Some((op, describe(machine, agent, op, &machine.kernel().op(op).args, now)))
    }

    /// Records that an operation of an agent was attempted.
    pub(super) fn stepped(
        &mut self,
        machine: &Machine<'_>,
        agent: usize,
        (about, moved): (Option<(OpId, Interval)>, Moved),
        now: u64,
    ) {
        let Some((op, before)) = about else { return };
        if let Some(mut waited) = self.waiting.remove(&agent) {
            waited.end = now;
            self.done.push(waited);
        }
        // Operands are known before the operation, results after it.
        let mut interval = if before.time.is_some() { before } else { described(machine, agent, op, now) };
        if moved == Moved::Blocked {
            interval.waits_for = machine.waits_for(agent);
            self.waiting.insert(agent, interval);
        } else if shown(&machine.kernel().op(op).kind) {
            self.done.push(interval);
        }
        self.look(machine, now);
    }

    /// Updates the intervals of operations in flight: those that were started and those that completed.
    pub(super) fn look(&mut self, machine: &Machine<'_>, now: u64) {
        if !self.on {
            return;
        }
        let alive: BTreeMap<Pending, &crate::engine::Op<Work>> = machine.engine.pending().iter().collect();
        let over: Vec<Pending> = self.in_flight.keys().copied().filter(|id| !alive.contains_key(id)).collect();
        for id in over {
            self.done.extend(self.in_flight.remove(&id).map(|i| Interval { end: now, ..i }));
        }
        for (id, op) in alive.into_iter().filter(|(_, o)| !o.payload.touches.is_empty()) {
            let agent = op.agent.index();
            self.in_flight.entry(id).or_insert_with(|| {
                let side = machine.side(agent, op.payload.op, op.payload.touches.first(), op.payload.time);
                Interval {
                    helper: Some(class_name(op.class)),
                    what: side.what,
                    slot: side.stage,
                    time: side.time,
                    ..described(machine, agent, op.payload.op, now)
                }
            });
        }
    }

    /// Closes all intervals at the end of the run.
    pub(super) fn finish(mut self, now: u64) -> Vec<Interval> {
        let left = self.waiting.into_values().chain(self.in_flight.into_values());
        self.done.extend(left.map(|i| Interval { end: now, ..i }));
        self.done.sort_by_key(|i| (i.begin, i.agent, i.end));
        self.done
    }
}

/// Whether an operation gets an interval: those of rings, barriers and memory do.
fn shown(kind: &OpKind) -> bool {
    match kind {
        OpKind::Ttg(_) | OpKind::Nv(_) | OpKind::Amd(_) | OpKind::Region(_) => {
            !matches!(kind.effect(), Effect::Pure | Effect::Control)
        }
        other => matches!(other.effect(), Effect::Read | Effect::Write | Effect::Atomic),
    }
}

/// The interval of an operation that was attempted.
fn described(machine: &Machine<'_>, agent: usize, id: OpId, now: u64) -> Interval {
    let op = machine.kernel().op(id);
    describe(machine, agent, id, &[&op.args[..], &op.results].concat(), now)
}

/// The interval of an operation, described by some of its values.
fn describe(machine: &Machine<'_>, agent: usize, id: OpId, values: &[Value], now: u64) -> Interval {
    let op = machine.kernel().op(id);
    let token = values.iter().find_map(|v| match machine.val(agent, *v) {
        Val::Token { pipe, time } => Some((pipe as usize, time)),
        Val::Smem(s) => Some((s.pipe, s.time)),
        _ => None,
    });
    let named = values.iter().find(|v| matches!(machine.kernel().ty(**v), Ty::Barrier(_) | Ty::Tensor(..)));
    let (what, slot) = match token {
        Some((pipe, time)) => {
            let slots = machine.plan.rings.get(pipe).map_or(1, |r| r.slots);
            (machine.kernel().pipe_name(Pipe::new(pipe)), Some(time % slots))
        }
        None => (named.map(|v| machine.kernel().display_name(*v)).unwrap_or_default(), None),
    };
    Interval {
        agent: super::machine::index(agent),
        role: machine.role(agent),
        helper: None,
        op: mnemonic(&op.kind),
        loc: op.loc,
        what,
        slot,
        time: token.map(|t| t.1),
        begin: now,
        end: now,
        waits_for: Vec::new(),
    }
}
