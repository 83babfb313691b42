//! The effects of barriers, rendezvous, fences and exits.

use super::access::bytes_of;
use super::barrier::Change;
use super::lanes::Span;
use super::mask::{Unit, bit};
use super::report::{Deed, Finding, Rule, Side};
use super::{Sanitizer, at_barrier};
use crate::engine::{
    Agent, BarrierFault, BarrierId, FenceSpace, Helper, OpId, Proxy, RendezvousId, Scope, SpaceId, Stop, Storage,
    SyncSide, Wait,
};

impl Sanitizer {
    /// The side of an agent that uses a barrier; its bytes are those of the barrier's word.
    fn user(&self, agent: Agent, deed: Deed, barrier: BarrierId) -> Side {
        let span = self.lives.find(barrier).and_then(super::barrier::Life::span);
        Side { bytes: span.and_then(bytes_of), ..at_barrier(self.side(agent, deed), barrier) }
    }

    /// Checks an access to the bytes of a barrier's word, and records it.
    fn touch(&mut self, side: Side, strong: bool) -> Result<(), Stop> {
        let Some((space, at, len)) = side.bytes else { return Ok(()) };
        let span = (space, at, at + len);
        self.still_there(&side, span)?;
        // Repeated uses of one barrier publish only its bytes; see `Slots::publish`.
        let last = self.last.insert(side.partition, side.barrier);
        if !strong || last != Some(side.barrier) {
            self.slots.learned(side.partition);
        }
        let deal = self.deal(side, strong);
        self.effect(span, &deal)
    }

    pub(super) fn init(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        count: u32,
        storage: Option<Storage>,
    ) -> Result<(), Stop> {
        if self.known(agent)?.is_none() {
            return Ok(());
        }
        let life = self.lives.get(barrier);
        let turned = life.turned;
        if !life.state.is_live() {
            life.storage = storage;
        }
        let side = self.user(agent, Deed::Init, barrier);
        let wrong = self.lives.get(barrier).state.init(count).err();
        if let Some(fault) = wrong {
            return self.report(Finding::misuse(fault, side, turned));
        }
        let life = self.lives.get(barrier);
        (life.turned, life.arrived) = (Some(side), None);
        let overlap = life.span().and_then(|span| self.lives.on(span));
        if let Some((other, _)) = overlap {
            let other = self.lives.get(other).turned;
            self.report(Finding::of(Rule::BarrierOverlap, side, other))?;
        }
        self.lives.store(barrier);
        self.touch(side, false)
    }

    pub(super) fn invalidate(&mut self, agent: Agent, barrier: BarrierId) -> Result<(), Stop> {
        if self.known(agent)?.is_none() {
            return Ok(());
        }
        let side = self.user(agent, Deed::Invalidate, barrier);
        let life = self.lives.get(barrier);
        if !life.state.is_live() {
            let turned = life.turned;
            return self.report(Finding::misuse(BarrierFault::NotLive, side, turned));
        }
        if let Some(waiter) = self.waiting.at(barrier) {
            let other = self.user(waiter, Deed::Wait, barrier);
            self.report(Finding::of(Rule::InvalidateWaiting, side, Some(other)))?;
        }
        let signals = self.ops.values().find(|u| u.signals.iter().any(|(b, _)| *b == barrier));
        if let Some((agent, class)) = signals.map(|u| (u.agent, u.class)) {
            let other = Side { class: Some(class), ..self.user(agent, Deed::Signal, barrier) };
            let pending = self.name(Some(class));
            self.report(Finding { pending, ..Finding::of(Rule::InvalidatePending, side, Some(other)) })?;
        }
        self.lives.unstore(barrier);
        let life = self.lives.get(barrier);
        life.turned = Some(side);
        for slot in life.end().into_iter().flatten() {
            self.slots.close(slot);
        }
        self.touch(side, false)
    }

    pub(super) fn expect(&mut self, barrier: BarrierId, count: u32) -> Result<(), Stop> {
        let life = self.lives.get(barrier);
        let Err(fault) = life.state.add_pending(count) else { return Ok(()) };
        let (turned, arrived) = (life.turned, life.arrived);
        let now = arrived.or(turned).unwrap_or_else(|| self.user(Agent::new(0), Deed::Arrive, barrier));
        self.report(Finding::misuse(fault, now, turned))
    }

    pub(super) fn arrive(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        helper: Option<Helper>,
        change: Change,
    ) -> Result<(), Stop> {
        let Some(p) = self.known(agent)? else { return Ok(()) };
        let mut side = self.user(agent, Deed::Arrive, barrier);
        if let Some(h) = helper {
            (side.class, side.unit) = (Some(h.class), self.config.work(h.class).unit);
        } else {
            self.waiting.set(agent, None);
        }
        let life = self.lives.get(barrier);
        let (live, turned, span) = (life.state.is_live(), life.turned, life.span());
        if !live {
            return self.report(Finding::misuse(BarrierFault::NotLive, side, turned));
        }
        if helper.is_none() {
            self.touch(side, true)?;
        }
        let slots = &mut self.slots;
        let slot = self.lives.get(barrier).slot(|| slots.open());
        match helper {
            Some(h) => self.publish_op(h.op, barrier, slot, change.count > 0),
            // Setting expected bytes alone publishes nothing.
            None if change.count == 0 => {}
            None => match change.relaxed {
                None => self.slots.publish(p, slot, span, &mut self.memory),
                Some(fences) => self.slots.publish_fenced(p, fences, slot, &mut self.memory),
            },
        }
        self.count(barrier, side, change)
    }

    /// Publishes the effects of a completed operation at a barrier.
    fn publish_op(&mut self, op: OpId, barrier: BarrierId, slot: super::publish::Slot, arrives: bool) {
        let Some(under) = self.ops.get(&op) else { return };
        let home = self.lives.find(barrier).and_then(|l| l.storage).and_then(|s| self.config.home_of(s.space));
        // For a multicast, each block's barrier publishes the bytes copied to that block; a barrier in a block without
        // copied bytes publishes all.
        let of = |span: &&Span| self.config.home_of(span.0);
        let mut spans: Vec<Span> = under.data.iter().filter(|s| of(s) == home).copied().collect();
        if spans.is_empty() {
            spans.clone_from(&under.data);
        } else if home.is_some() {
            spans.extend(under.data.iter().filter(|s| of(s).is_none()));
        }
        spans.extend(under.signals.iter().filter(|(b, _)| *b == barrier).filter_map(|(_, span)| *span));
        self.slots.publish_op(op, &spans, slot, &mut self.memory);
        if let Some((frontier, places)) = under.frontier.as_ref().filter(|_| arrives) {
            self.slots.forward(*frontier, slot, places.as_deref(), &mut self.memory);
        }
    }

    /// Counts arrivals or bytes at a barrier.
    fn count(&mut self, barrier: BarrierId, side: Side, change: Change) -> Result<(), Stop> {
        let life = self.lives.get(barrier);
        let phase = life.state.phase();
        let before = life.arrived.or(life.turned);
        life.arrived = Some(side);
        match life.apply(change) {
            Err(fault) => self.report(Finding::misuse(fault, side, before)),
            Ok(forgotten) => {
                if let Some(slot) = forgotten {
                    self.slots.close(slot);
                }
                let state = &self.lives.get(barrier).state;
                if state.phase() != phase {
                    self.waiting.phase_ended(barrier, |parity| state.passed(parity));
                }
                Ok(())
            }
        }
    }

    pub(super) fn observe(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        phase: u64,
        relaxed: Option<(SpaceId, u64)>,
    ) -> Result<(), Stop> {
        let Some(p) = self.known(agent)? else { return Ok(()) };
        self.waiting.set(agent, None);
        let side = self.user(agent, Deed::Wait, barrier);
        let life = self.lives.get(barrier);
        let (live, turned, slot) = (life.state.is_live(), life.turned, life.complete(phase));
        if !live {
            return self.report(Finding::misuse(BarrierFault::NotLive, side, turned));
        }
        self.touch(side, true)?;
        match (slot, relaxed) {
            (None, _) => {}
            (Some(slot), None) => self.slots.take(slot, p, &mut self.memory),
            (Some(slot), Some(observed)) => self.slots.pass_on(slot, observed, &mut self.memory),
        }
        Ok(())
    }

    pub(super) fn wait(&mut self, agent: Agent, wait: Wait) -> Result<(), Stop> {
        if self.known(agent)?.is_none() {
            return Ok(());
        }
        let mut passed = false;
        if let Wait::Phase { barrier, parity } = wait {
            let side = self.user(agent, Deed::Wait, barrier);
            let life = self.lives.get(barrier);
            if !life.state.is_live() {
                let turned = life.turned;
                return self.report(Finding::misuse(BarrierFault::NotLive, side, turned));
            }
            passed = life.state.passed(parity);
        }
        self.waiting.set(agent, (!passed).then_some(wait));
        self.check_deadlock()
    }

    pub(super) fn meet(&mut self, place: RendezvousId, waited: &[Agent], passed: &[Agent]) -> Result<(), Stop> {
        waited.iter().for_each(|a| self.waiting.set(*a, None));
        if self.config.is_relaxed(place) {
            return Ok(());
        }
        let all: Vec<Agent> = waited.iter().chain(passed).copied().collect();
        self.share(&all, waited)
    }

    /// Agents acquire the knowledge of others.
    pub(super) fn share(&mut self, from: &[Agent], into: &[Agent]) -> Result<(), Stop> {
        let (from, into) = (self.partitions(from)?, self.partitions(into)?);
        // A rendezvous within one partition adds nothing.
        if from != into || from.count_ones() > 1 {
            self.slots.share(from, into, &mut self.memory);
        }
        Ok(())
    }

    fn partitions(&mut self, agents: &[Agent]) -> Result<u64, Stop> {
        agents.iter().try_fold(0, |set, a| Ok(self.known(*a)?.map_or(set, |p| set | bit(p))))
    }

    pub(super) fn release(&mut self, agent: Agent, (space, address): (SpaceId, u64)) -> Result<(), Stop> {
        let Some(p) = self.known(agent)? else { return Ok(()) };
        let slot = self.slots.word(space, address);
        // The barrier that was used last may have been used again since.
        let used =
            self.last.get(&p).copied().flatten().and_then(|b| self.lives.find(b)).and_then(super::barrier::Life::span);
        self.slots.publish(p, slot, used, &mut self.memory);
        Ok(())
    }

    pub(super) fn acquire(&mut self, agent: Agent, (space, address): (SpaceId, u64)) -> Result<(), Stop> {
        let Some(p) = self.known(agent)? else { return Ok(()) };
        let slot = self.slots.word(space, address);
        self.slots.take(slot, p, &mut self.memory);
        Ok(())
    }

    pub(super) fn fence(
        &mut self,
        agent: Agent,
        (from, to): (Proxy, Proxy),
        scope: Scope,
        (space, of_reads): (FenceSpace, bool),
    ) -> Result<(), Stop> {
        let Some(p) = self.known(agent)? else { return Ok(()) };
        if from == Proxy::Generic && to != Proxy::Generic {
            let about = |id: SpaceId| match space {
                FenceSpace::All => true,
                FenceSpace::Shared | FenceSpace::Inits => self.config.home_of(id).is_some(),
                FenceSpace::Global => self.config.home_of(id).is_none(),
            };
            self.memory.each(|e| {
                let deed = e.kind.deed;
                let meant = (space != FenceSpace::Inits || deed == Deed::Init) && (of_reads || deed.writes());
                if meant && e.kind.proxy == Proxy::Generic && e.seen.has(p, Unit::Base) && about(e.kind.space) {
                    e.fences.fence(p, to, scope);
                }
            });
            self.slots.learned(p);
        }
        Ok(())
    }

    /// A fence on one side of a synchronization, for memories whose operations run out of order: it concerns what the partition has observed.
    pub(super) fn sync_fence(&mut self, agent: Agent, side: SyncSide) -> Result<(), Stop> {
        let Some(p) = self.known(agent)? else { return Ok(()) };
        self.memory.each(|e| {
            if e.kind.out_of_order && e.seen.has(p, Unit::Base) {
                match side {
                    SyncSide::Before => e.sync.before |= bit(p),
                    SyncSide::After => e.sync.after |= bit(p),
                }
            }
        });
        self.slots.learned(p);
        Ok(())
    }

    pub(super) fn exit(&mut self, agent: Agent) -> Result<(), Stop> {
        let Some(p) = self.known(agent)? else { return Ok(()) };
        if self.waiting.exit(agent) {
            let cta = self.config.cta_of(p);
            let left = self.left.entry(cta).or_default();
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.over.insert(cta);
                self.check_in_flight(agent, cta)?;
            }
        }
        self.check_deadlock()
    }

    /// A block ends: some agent must have established that each operation on its memory is complete.
    fn check_in_flight(&mut self, agent: Agent, cta: u32) -> Result<(), Stop> {
        let outstanding = |e: &super::effect::Effect| {
            self.memory.records().of(e).seen.base() == 0 && e.side.class.is_some_and(|c| self.config.work(c).must_end)
        };
        let on_it = self.memory.iter().filter(|(span, _)| self.config.home_of(span.0) == Some(cta));
        let found: Vec<(Span, Side)> = on_it.filter(|(_, e)| outstanding(e)).map(|(span, e)| (span, e.side)).collect();
        for (span, other) in found {
            let (now, pending) = (self.side(agent, Deed::Exit), self.name(other.class));
            let bytes = bytes_of(span);
            self.report(Finding { bytes, pending, ..Finding::of(Rule::ExitInFlight, now, Some(other)) })?;
        }
        Ok(())
    }

    /// Checks whether all agents are deadlocked.
    pub(super) fn check_deadlock(&mut self) -> Result<(), Stop> {
        let Some(stuck) = self.waiting.stuck() else { return Ok(()) };
        if self.ops.values().any(|u| !u.signals.is_empty()) {
            return Ok(());
        }
        let side = |(agent, wait): &(Agent, Wait)| match *wait {
            Wait::Phase { barrier, .. } => at_barrier(self.side(*agent, Deed::Wait), barrier),
            Wait::Meeting { .. } | Wait::Groups { .. } | Wait::Other(_) => self.side(*agent, Deed::Wait),
        };
        let mut sides = stuck.iter().map(side);
        let Some(now) = sides.next() else { return Ok(()) };
        let (others, waits) = (sides.collect(), stuck.iter().map(|(_, w)| *w).collect());
        self.report(Finding { others, waits, ..Finding::of(Rule::Deadlock, now, None) })
    }
}
