//! Who was busy when: what a picture of a pipeline is drawn from.
//!
//! The clock is the number of operations that all agents of the cluster have tried; it says in which order things happened
//! in this run, not how long anything takes.
#![expect(clippy::wildcard_enum_match_arm, reason = "most operations are of no interest here")]

use super::machine::Machine;
use super::plan::{BULK_LOAD, BULK_STORE, BULK_WRITE, CP_ASYNC, LGKMCNT, RING_COPY, VMCNT, WGMMA};
use super::state::Moved;
use super::value::Val;
use super::work::Work;
use crate::engine::{Class, OpId as Pending};
use std::collections::BTreeMap;
use titan_core::ir::op_table::mnemonic;
use titan_core::ir::{Effect, Loc, OpId, OpKind, Pipe, Ty, Value};

/// Something that an agent, or an operation under way, did for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The agent; several programs of a cluster count on.
    pub agent: u32,
    /// Its role.
    pub role: String,
    /// The kind of asynchronous operation that acts for it; `None` is the agent itself.
    pub helper: Option<&'static str>,
    /// The mnemonic of the operation.
    pub op: &'static str,
    /// Where it stands in the user's kernel.
    pub loc: Loc,
    /// The ring or region that it touches.
    pub what: String,
    /// The slot of the ring.
    pub slot: Option<u64>,
    /// The time of the ring.
    pub time: Option<u64>,
    /// When it began.
    pub begin: u64,
    /// When it ended; never before it began.
    pub end: u64,
    /// For whom it waited; empty if it was busy.
    pub waits_for: Vec<String>,
}

/// What a class of operations is called.
const fn class_name(class: Class) -> &'static str {
    match class {
        CP_ASYNC => "cp.async",
        WGMMA => "product",
        BULK_STORE => "store, reading",
        BULK_WRITE => "store, writing",
        VMCNT | BULK_LOAD | RING_COPY => "copy",
        LGKMCNT => "local memory",
        _ => "operation",
    }
}

/// Records a run.
#[derive(Debug, Default)]
pub(super) struct Tracer {
    on: bool,
    done: Vec<Interval>,
    waiting: BTreeMap<usize, Interval>,
    under_way: BTreeMap<Pending, Interval>,
}

impl Tracer {
    /// Records, or does not.
    pub(super) fn new(on: bool) -> Tracer {
        Tracer { on, ..Tracer::default() }
    }

    /// What an agent is about to do; tokens that it uses up are still there.
    pub(super) fn about(&self, machine: &Machine<'_>, agent: usize, now: u64) -> Option<(OpId, Interval)> {
        let op = machine.next_op(agent).filter(|_| self.on)?;
        Some((op, describe(machine, agent, op, &machine.kernel().op(op).args, now)))
    }

    /// An operation of an agent was tried.
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
        // What it takes is known before, what it makes afterwards.
        let mut interval = if before.time.is_some() { before } else { described(machine, agent, op, now) };
        if moved == Moved::Blocked {
            interval.waits_for = machine.waits_for(agent);
            self.waiting.insert(agent, interval);
        } else if shown(&machine.kernel().op(op).kind) {
            self.done.push(interval);
        }
        self.look(machine, now);
    }

    /// What began and what is over of what is under way.
    pub(super) fn look(&mut self, machine: &Machine<'_>, now: u64) {
        if !self.on {
            return;
        }
        let alive: BTreeMap<Pending, &crate::engine::Op<Work>> = machine.engine.pending().iter().collect();
        let over: Vec<Pending> = self.under_way.keys().copied().filter(|id| !alive.contains_key(id)).collect();
        for id in over {
            self.done.extend(self.under_way.remove(&id).map(|i| Interval { end: now, ..i }));
        }
        for (id, op) in alive.into_iter().filter(|(_, o)| !o.payload.touches.is_empty()) {
            let agent = op.agent.index();
            self.under_way.entry(id).or_insert_with(|| {
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

    /// The run is over.
    pub(super) fn finish(mut self, now: u64) -> Vec<Interval> {
        let left = self.waiting.into_values().chain(self.under_way.into_values());
        self.done.extend(left.map(|i| Interval { end: now, ..i }));
        self.done.sort_by_key(|i| (i.begin, i.agent, i.end));
        self.done
    }
}

/// Whether an operation is worth an interval: those of rings, barriers and memory.
fn shown(kind: &OpKind) -> bool {
    match kind {
        OpKind::Ttg(_) | OpKind::Nv(_) | OpKind::Amd(_) | OpKind::Region(_) => {
            !matches!(kind.effect(), Effect::Pure | Effect::Control)
        }
        other => matches!(other.effect(), Effect::Read | Effect::Write | Effect::Atomic),
    }
}

/// An operation that was tried.
fn described(machine: &Machine<'_>, agent: usize, id: OpId, now: u64) -> Interval {
    let op = machine.kernel().op(id);
    describe(machine, agent, id, &[&op.args[..], &op.results].concat(), now)
}

/// An operation, by some of its values.
fn describe(machine: &Machine<'_>, agent: usize, id: OpId, values: &[Value], now: u64) -> Interval {
    let op = machine.kernel().op(id);
    let token = values.iter().find_map(|v| match machine.val(agent, *v) {
        Val::Token { pipe, time } => Some((pipe as usize, time)),
        Val::Smem(s) => Some((s.pipe, s.time)),
        _ => None,
    });
    let named = values.iter().find(|v| matches!(machine.kernel().ty(**v), Ty::Raw(_) | Ty::Tensor(..)));
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
