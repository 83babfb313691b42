//! The event that an agent waits for, determined without taking its step: for schedulers, and for the reports of waits.
#![expect(clippy::wildcard_enum_match_arm, reason = "most operations are of no interest here")]

use super::control::ROLES_JOIN;
use super::machine::Machine;
use super::value::Val;
use crate::engine::{Agent, BarrierId, State, Wait};
use titan_core::ir::{NvOp, OpKind, Pipe, TtgOp};

impl Machine<'_> {
    /// The barrier and the parity for which an agent's next operation waits, if it only waits.
    pub(super) fn awaited(&self, agent: usize) -> Option<(BarrierId, bool)> {
        let thread = self.threads.get(agent)?;
        let op = self.kernel().op(self.next_op(agent)?);
        if let Some((barrier, parity)) = thread.joined {
            return Some((BarrierId::new(barrier as usize), parity));
        }
        let sides = |ring: usize| self.ctas.get(thread.cta).and_then(|c| c.rings.get(ring));
        let slot = |ring: usize, time: u64| {
            let slots = self.plan.rings.get(ring)?.slots;
            Some((usize::try_from(time % slots).ok()?, time / slots))
        };
        match &op.kind {
            OpKind::Ttg(TtgOp::Acquire(pipe)) => {
                let (s, epoch) = slot(pipe.index(), *thread.fill.get(pipe.index())?)?;
                sides(pipe.index())?.1.get(s).map(|b| (*b, epoch & 1 == 0))
            }
            OpKind::Ttg(TtgOp::WaitReady) => {
                let Val::Token { pipe, time } = self.arg(agent, op, 0) else { return None };
                let (s, epoch) = slot(pipe as usize, time)?;
                sides(pipe as usize)?.0.get(s).map(|b| (*b, epoch & 1 == 1))
            }
            OpKind::Nv(NvOp::MbarrierWait | NvOp::WaitParity) => {
                let parity = match self.arg(agent, op, 1) {
                    Val::Phase(p) => p == 1,
                    Val::Num(n) if matches!(n.int(), 0 | 1) => n.int() == 1,
                    _ => return None,
                };
                let Val::Barriers { made, first, n: 1 } = self.arg(agent, op, 0) else { return None };
                let base = self.ctas.get(thread.cta)?.made.get(&made)?;
                let barrier = BarrierId::new(base.index() + first as usize);
                self.engine.barrier(barrier).filter(|b| b.is_live()).map(|_| (barrier, parity))
            }
            OpKind::Nv(NvOp::ClusterWait) => Some((self.cluster?, thread.cluster?)),
            _ => None,
        }
    }

    /// Blocks every agent whose next step would only discover that it must wait.
    pub(super) fn settle(&mut self) {
        for agent in 0..self.threads.len() {
            if self.is_ready(agent)
                && let Some((barrier, parity)) = self.awaited(agent)
                && self.engine.barrier(barrier).is_some_and(|b| !b.passed(parity))
            {
                self.engine.agents_mut().set(Agent::new(agent), State::Blocked(Wait::Phase { barrier, parity }));
            }
        }
    }

    /// The names of the roles that could end the wait of an agent.
    pub(super) fn waits_for(&self, agent: usize) -> Vec<String> {
        if self.engine.agents().state(Agent::new(agent)) == State::Blocked(Wait::Other(ROLES_JOIN)) {
            return (1..self.plan.agents()).map(|r| self.role(agent + r)).collect();
        }
        let cta = self.cta(agent);
        let first = cta * self.plan.agents();
        if self.lacks_registers(agent).is_some() {
            return (1..self.plan.agents()).filter(|l| first + l != agent).map(|l| self.role(first + l)).collect();
        }
        let Some((barrier, _)) = self.awaited(agent) else { return Vec::new() };
        let others = |locals: &[usize]| locals.iter().map(|l| self.role(first + l)).collect();
        for (i, ring) in self.plan.rings.iter().enumerate() {
            let Some((ready, free)) = self.ctas.get(cta).and_then(|c| c.rings.get(i)) else { continue };
            if ready.contains(&barrier) {
                return others(&ring.fillers);
            }
            if let Some(slot) = free.iter().position(|b| *b == barrier) {
                let late = |r: &&usize| {
                    self.threads.get(first + **r).is_some_and(|t| {
                        let time = t.read.get(i).map_or(0, |r| r.below);
                        usize::try_from(time % ring.slots).is_ok_and(|s| s == slot) || time == 0
                    })
                };
                let behind: Vec<usize> = ring.readers.iter().filter(late).copied().collect();
                return others(if behind.is_empty() { &ring.readers } else { &behind });
            }
        }
        let made = self.ctas.get(cta).map(|c| &c.made);
        for (alloc, who) in self.plan.allocs.iter().zip(&self.plan.arrivers) {
            let base = made.and_then(|m| m.get(&super::machine::index(alloc.value.index())));
            if base.and_then(|b| barrier.index().checked_sub(b.index())).is_some_and(|i| i < alloc.n as usize) {
                return others(who);
            }
        }
        (1..self.plan.agents()).filter(|l| first + l != agent).map(|l| self.role(first + l)).collect()
    }

    /// A description of what an agent waits for.
    pub(super) fn waiting(&self, agent: usize) -> String {
        let who = self.role(agent);
        if let Some(said) = self.lacks_registers(agent).or_else(|| self.lacks_columns(agent)) {
            return said;
        }
        let Some((barrier, _)) = self.awaited(agent) else { return format!("{who} waits") };
        let name = self.barrier_name(barrier);
        let missing = self.engine.barrier(barrier).map_or_else(String::new, |b| format!(", of which {}", b.missing()));
        let time = self.next_op(agent).and_then(|id| match &self.kernel().op(id).kind {
            OpKind::Ttg(TtgOp::Acquire(p)) => {
                self.threads.get(agent)?.fill.get(p.index()).map(|t| (self.kernel().pipe_name(*p), *t))
            }
            OpKind::Ttg(TtgOp::WaitReady) => match self.arg(agent, self.kernel().op(id), 0) {
                Val::Token { pipe, time } => Some((self.kernel().pipe_name(Pipe::new(pipe as usize)), time)),
                _ => None,
            },
            _ => None,
        });
        let time = time.map_or(String::new(), |(ring, t)| format!(" for time {t} of `{ring}`"));
        format!("{who} waits{time} at `{name}`{missing}")
    }
}
