//! Barriers without a word in shared memory: named barriers, the cluster barrier, `s_barrier`; and the register budget.
//!
//! All of them are barriers with phases: a phase counts arrivals of threads or agents, and an agent waits for the phase in which
//! it arrived. Cluster and program barriers do not wait for an agent that has ended.

use super::barrier_ops::unknown;
use super::finding::{Found, Kind};
use super::machine::{Machine, Obs, index};
use super::state::{Moved, Named};
use super::work::Res;
use crate::engine::{self, Agent, BarrierId, Place};
use titan_core::ir::OpId;

impl Machine<'_> {
    /// Arrives at a named barrier, and waits there or not.
    pub(super) fn named_barrier(
        &mut self,
        agent: usize,
        id: OpId,
        (named, threads, waits): (u8, u32, bool),
        obs: Obs<'_, '_>,
    ) -> Res<Moved> {
        if self.look(agent)?.joined.is_some() {
            return self.arrive_and_wait(agent, id, (BarrierId::new(0), 0), obs);
        }
        let own = self.threads_of(agent, threads)?;
        let barrier = self.named(agent, id, (named, threads), obs)?;
        if waits {
            return self.arrive_and_wait(agent, id, (barrier, own), obs);
        }
        self.engine
            .arrive(Agent::new(agent), barrier, own, 0, &mut &mut *obs)
            .map_err(|h| self.fault(agent, Some(id), h))?;
        Ok(Moved::On)
    }

    /// The number of threads that an agent arrives with.
    fn threads_of(&self, agent: usize, all: u32) -> Res<u32> {
        let role = self.look(agent)?.local.checked_sub(1).and_then(|r| self.kernel().roles.get(r));
        let own = match self.warp_set(agent) {
            Some(warp_set) => warp_set.lanes,
            None => role.map_or(all, |r| r.warps.saturating_mul(32)),
        };
        if !all.is_multiple_of(32) || all == 0 || own > all {
            return Err(Found::new(
                Kind::Participants,
                format!("a barrier of {all} threads, at which {own} arrive at once"),
            ));
        }
        Ok(own)
    }

    /// The named barrier of a number; all arrivals must expect the same number of threads.
    fn named(&mut self, agent: usize, id: OpId, (named, threads): (u8, u32), obs: Obs<'_, '_>) -> Res<BarrierId> {
        if named >= 16 {
            return Err(Found::new(
                Kind::Participants,
                format!("there is no named barrier {named}: their numbers are below 16"),
            ));
        }
        let known = self.ctas.get(self.cta(agent)).and_then(|c| c.named.get(&named)).cloned();
        if let Some(known) = known {
            let idle = self.engine.barrier(known.barrier).is_some_and(|b| b.pending() == known.threads);
            if known.threads == threads {
                return Ok(known.barrier);
            }
            if !idle {
                return Err(Found::new(
                    Kind::Participants,
                    format!("barrier {named} counts {} threads, but an arrival expects {threads}", known.threads),
                ));
            }
        }
        let barrier = self.engine.add_barrier();
        self.engine
            .init(Agent::new(agent), barrier, threads, None, Place::new(id.index()), &mut &mut *obs)
            .map_err(|h| self.fault(agent, Some(id), h))?;
        if let Some(cta) = self.cta_mut(agent) {
            cta.named.insert(named, Named { threads, barrier });
        }
        Ok(barrier)
    }

    pub(super) fn cluster(&mut self, agent: usize, id: OpId, arrives: bool, obs: Obs<'_, '_>) -> Res<Moved> {
        let (met, barrier) =
            (self.look(agent)?.cluster, self.cluster.ok_or_else(|| unknown("a barrier of the cluster"))?);
        match (arrives, met) {
            (true, None) => {
                let parity = self.engine.barrier(barrier).map_or(0, engine::PhaseBarrier::phase) & 1 == 1;
                self.thread(agent)?.cluster = Some(parity);
                self.engine
                    .arrive(Agent::new(agent), barrier, 1, 0, &mut &mut *obs)
                    .map_err(|h| self.fault(agent, Some(id), h))?;
                Ok(Moved::On)
            }
            (true, Some(_)) => Err(Found::new(
                Kind::Participants,
                format!("{} arrives at the cluster barrier again without having waited", self.role(agent)),
            )),
            (false, None) => Err(Found::new(
                Kind::Participants,
                format!("{} waits at the cluster barrier without having arrived", self.role(agent)),
            )),
            (false, Some(parity)) => {
                let passed = self
                    .engine
                    .wait_phase(Agent::new(agent), barrier, parity, &mut &mut *obs)
                    .map_err(|h| self.fault(agent, Some(id), h))?;
                if passed {
                    self.thread(agent)?.cluster = None;
                }
                Ok(if passed { Moved::On } else { Moved::Blocked })
            }
        }
    }

    /// The cluster and the program no longer wait for an agent that has ended.
    pub(super) fn leave_barriers(&mut self, agent: usize, obs: Obs<'_, '_>) -> Res<()> {
        let thread = self.look(agent)?;
        if thread.local == 0 && self.plan.roles_op.is_some() {
            return Ok(());
        }
        let cluster = self.cluster.filter(|_| thread.cluster.is_none());
        let block = self.ctas.get(thread.cta).and_then(|c| c.block);
        for barrier in [cluster, block].into_iter().flatten() {
            self.engine
                .arrive_and_drop(Agent::new(agent), barrier, 1, &mut &mut *obs)
                .map_err(|h| self.fault(agent, None, h))?;
        }
        Ok(())
    }

    /// `setmaxnreg` has no effect on the simulation, but the register budget is checked.
    pub(super) fn registers(&mut self, agent: usize, registers: u32) -> Res<()> {
        if !(24..=256).contains(&registers) || !registers.is_multiple_of(8) {
            return Err(Found::new(
                Kind::Participants,
                format!("{registers} registers requested; the count must be a multiple of 8 from 24 to 256"),
            ));
        }
        self.thread(agent)?.registers = Some(registers);
        let (per, main) = (self.plan.agents(), agent / self.plan.agents() * self.plan.agents());
        let of = |a: usize| {
            let role = self.plan.role_of(a - main).and_then(|r| self.kernel().roles.get(r));
            let warps = if self.kernel().laid_out.is_some() { 1 } else { role.map_or(0, |r| r.warps) };
            u64::from(warps) * 32 * u64::from(self.threads.get(a).and_then(|t| t.registers).unwrap_or(0))
        };
        let all: u64 = (main..main + per).map(of).sum();
        if all > 65536 {
            return Err(Found::new(
                Kind::Participants,
                format!("the roles request {all} registers, but a program has 65536"),
            ));
        }
        Ok(())
    }

    /// The barrier of all agents of a program; it does not wait for those that have ended.
    pub(super) fn s_barrier(&mut self, agent: usize, id: OpId, obs: Obs<'_, '_>) -> Res<Moved> {
        match self.ctas.get(self.cta(agent)).and_then(|c| c.block) {
            Some(barrier) => self.arrive_and_wait(agent, id, (barrier, 1), obs),
            None => Err(unknown("a barrier of the program")),
        }
    }

    /// Arrives at a barrier with a count, and waits there.
    fn arrive_and_wait(
        &mut self,
        agent: usize,
        id: OpId,
        (barrier, count): (BarrierId, u32),
        obs: Obs<'_, '_>,
    ) -> Res<Moved> {
        if self.look(agent)?.joined.is_none() {
            let parity = self.engine.barrier(barrier).map_or(0, engine::PhaseBarrier::phase) & 1 == 1;
            self.engine
                .arrive(Agent::new(agent), barrier, count, 0, &mut &mut *obs)
                .map_err(|h| self.fault(agent, Some(id), h))?;
            self.thread(agent)?.joined = Some((index(barrier.index()), parity));
        }
        let Some((barrier, parity)) = self.look(agent)?.joined else { return Ok(Moved::On) };
        let barrier = BarrierId::new(barrier as usize);
        let passed = self
            .engine
            .wait_phase(Agent::new(agent), barrier, parity, &mut &mut *obs)
            .map_err(|h| self.fault(agent, Some(id), h))?;
        if passed {
            self.thread(agent)?.joined = None;
        }
        Ok(if passed { Moved::On } else { Moved::Blocked })
    }
}
