//! The rules for accesses, and for asynchronous operations at their issue, their waits and their completion.

use super::lanes::Span;
use super::mask::{Mask, Unit};
use super::publish::Slot;
use super::report::{Deed, Finding, Rule, Side};
use super::visible::{Deal, conflict, record, unfenced};
use super::{Sanitizer, at_barrier, deed};
use crate::engine::{Access, Agent, BarrierFault, BarrierId, Class, OpId, Scope, Signal, Stop, Strength};

/// An asynchronous operation in flight, with what its completion or wait must find.
#[derive(Clone, Debug)]
pub(super) struct Under {
    pub(super) agent: Agent,
    pub(super) class: Class,
    group: Option<u32>,
    /// The bytes that it accesses.
    pub(super) data: Vec<Span>,
    /// The barriers that it will signal, with their bytes.
    pub(super) signals: Vec<(BarrierId, Option<Span>)>,
    /// The effects that it publishes if its completion arrives at a barrier: their slot, and the bytes to which they are restricted.
    pub(super) frontier: Option<(Slot, Option<Vec<Span>>)>,
}

/// A span in the form that reports use: space, first byte, length.
pub(super) const fn bytes_of((space, start, end): Span) -> Option<(crate::engine::SpaceId, u64, u64)> {
    Some((space, start, end - start))
}

impl Sanitizer {
    pub(super) fn access(&mut self, a: &Access) -> Result<(), Stop> {
        let Some(p) = self.known(a.agent)? else { return Ok(()) };
        if a.helper.is_none() {
            self.set_at(a.agent, a.place, Some(a.tag));
            self.waiting.set(a.agent, None);
        }
        let span = (a.space, a.address, a.address.saturating_add(a.len.into()));
        let unit = a.helper.map_or(Unit::Base, |h| self.config.work(h.class).unit);
        let side = Side {
            unit,
            class: a.helper.map(|h| h.class),
            proxy: a.proxy,
            place: a.place,
            tag: a.tag,
            bytes: bytes_of(span),
            ..self.side(a.agent, deed(a))
        };
        self.spare(&side, span)?;
        let op = a.helper.map(|h| h.op);
        let under = op.and_then(|op| self.ops.get_mut(&op));
        let group = under.and_then(|u| {
            u.data.push(span);
            u.group
        });
        let deal = Deal { op, group, unchanged: a.unchanged, ..self.deal(side, a.strength == Strength::Strong) };
        match a.helper {
            None => self.slots.learned(p),
            Some(h) => self.commits.accessed(a.agent, h.class, group, span),
        }
        self.effect(span, &deal)
    }

    /// Checks that an ordinary access touches neither live barriers nor the memory of blocks that have ended.
    fn spare(&mut self, side: &Side, span: Span) -> Result<(), Stop> {
        self.still_there(side, span)?;
        let Some((barrier, on)) = self.lives.on(span) else { return Ok(()) };
        let other = self.lives.get(barrier).turned;
        let bytes = bytes_of((on.0, on.1.max(span.1), on.2.min(span.2)));
        self.report(Finding { bytes, ..Finding::of(Rule::BarrierBytes, *side, other) })
    }

    /// Checks that memory belongs to a block that has not ended.
    pub(super) fn still_there(&mut self, side: &Side, span: Span) -> Result<(), Stop> {
        match self.config.home_of(span.0) {
            Some(home) if self.over.contains(&home) => self.report(Finding::of(Rule::ExitedMemory, *side, None)),
            Some(_) | None => Ok(()),
        }
    }

    /// The access of a side: the unit whose visibility is checked, and the logical threads that see the access afterwards.
    pub(super) fn deal(&self, side: Side, strong: bool) -> Deal {
        let p = side.partition;
        let (eyes, seen) = match side.class.map(|c| self.config.work(c)) {
            None => (Unit::Base, Mask::peers(p)),
            Some(work) => {
                let seen = if work.unit == Unit::Base { Mask::default() } else { Mask::one(p, work.unit) };
                (if work.ordered { work.unit } else { Unit::Base }, seen)
            }
        };
        let home = side.bytes.and_then(|(space, ..)| self.config.home_of(space));
        let (scope, far) = match home {
            None => (Scope::Device, Scope::Device),
            Some(home) if home == self.config.cta_of(p) => (Scope::Cta, Scope::Cluster),
            Some(_) => (Scope::Cluster, Scope::Cluster),
        };
        let strict = self.config.is_strict();
        let pipelined = side.class.map(|c| self.config.executed_before(c)).unwrap_or_default();
        Deal { side, op: None, group: None, strong, unchanged: false, eyes, seen, scope, far, strict, pipelined }
    }

    /// Publishes the effects of an agent's operations of a class, for a later operation that arrives for them; returns their bytes.
    fn publish_class(&mut self, (agent, class): (Agent, Class), slot: Slot) -> Vec<Span> {
        let spans = self.commits.places(agent, class);
        let left = self.slots.publish_class((agent, class), &spans, slot, &mut self.memory);
        self.commits.keep(agent, class, &left);
        left
    }

    /// Checks an access against the state of its bytes, and records it.
    pub(super) fn effect(&mut self, span: Span, deal: &Deal) -> Result<(), Stop> {
        let (space, start, end) = span;
        let (config, p) = (&self.config, deal.side.partition);
        let mut found: Option<(Rule, Side, Span)> = None;
        let known = self.memory.made(space, &deal.side, deal.seen);
        self.memory.each_of(span, |first, last, state, records| {
            // A missing order is reported before a missing fence.
            let fence = |rule: &Rule| matches!(rule, Rule::MissingFence | Rule::NarrowFence);
            if found.as_ref().is_none_or(|(rule, ..)| fence(rule)) {
                let near = |e: &super::effect::Effect| config.cta_of(e.side.partition) == config.cta_of(p);
                let skip = found.is_some() || deal.side.barrier.is_some();
                let fenced = || if skip { None } else { unfenced(state, deal, records, near) };
                let wrong = conflict(state, deal, records).or_else(fenced);
                found = wrong.map(|(rule, e)| (rule, e.side, (space, first, last))).or(found);
            }
            record(state, deal, known, records);
        });
        let Some((rule, other, common)) = found else { return Ok(()) };
        // Lanes may be narrower than what both have in common.
        let common = match other.bytes {
            Some((_, at, len)) => (space, start.max(at.min(common.1)), end.min((at + len).max(common.2))),
            None => common,
        };
        let pending = self.name(other.class);
        self.report(Finding { bytes: bytes_of(common), pending, ..Finding::of(rule, deal.side, Some(other)) })
    }

    pub(super) fn issue(
        &mut self,
        agent: Agent,
        (op, class): (OpId, Class),
        grouped: bool,
        signals: &[Signal],
    ) -> Result<(), Stop> {
        let Some(p) = self.known(agent)? else { return Ok(()) };
        let work = self.config.work(class);
        let group = grouped.then(|| self.commits.current(agent, class));
        let arrives = signals.iter().any(|s| matches!(s, Signal::Arrive { .. }));
        let frontier = arrives.then(|| {
            let slot = self.slots.open();
            if work.ordered {
                self.slots.publish_unit(p, work.unit, slot, &mut self.memory);
                return (slot, None);
            }
            if let Some(covered) = self.config.covered(class).map(<[Class]>::to_vec) {
                for class in covered {
                    self.publish_class((agent, class), slot);
                }
                self.slots.publish_others(p, slot, &mut self.memory);
                return (slot, None);
            }
            let left = self.publish_class((agent, class), slot);
            (slot, Some(left))
        });
        let under = Under { agent, class, group, data: Vec::new(), signals: Vec::new(), frontier };
        self.ops.insert(op, under);
        for signal in signals {
            let (Signal::Bytes { barrier, .. } | Signal::Arrive { barrier }) = *signal;
            self.will_signal((agent, class, op), barrier)?;
        }
        Ok(())
    }

    /// A future signal is a read of the barrier's bytes until it is waited for.
    fn will_signal(&mut self, (agent, class, op): (Agent, Class, OpId), barrier: BarrierId) -> Result<(), Stop> {
        let life = self.lives.get(barrier);
        let (span, live, turned) = (life.span(), life.state.is_live(), life.turned);
        let unit = self.config.work(class).unit;
        let side = Side { unit, class: Some(class), ..at_barrier(self.side(agent, Deed::Signal), barrier) };
        let side = Side { bytes: span.and_then(bytes_of), ..side };
        if let Some(under) = self.ops.get_mut(&op) {
            under.signals.push((barrier, span));
        }
        if !live {
            return self.report(Finding::misuse(BarrierFault::NotLive, side, turned));
        }
        let Some(span) = span else { return Ok(()) };
        self.still_there(&side, span)?;
        let deal = Deal { op: Some(op), ..self.deal(side, true) };
        self.effect(span, &deal)
    }

    pub(super) fn group_wait(&mut self, agent: Agent, class: Class, complete: u32) -> Result<(), Stop> {
        let Some(p) = self.known(agent)? else { return Ok(()) };
        if self.commits.wait(agent, p, class, complete, &mut self.memory) {
            self.slots.learned(p);
        }
        Ok(())
    }

    pub(super) fn complete(&mut self, op: OpId) -> Result<(), Stop> {
        if let Some((slot, _)) = self.ops.remove(&op).and_then(|u| u.frontier) {
            self.slots.close(slot);
        }
        self.check_deadlock()
    }
}
