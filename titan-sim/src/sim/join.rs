//! Barriers without a word in shared memory: named barriers, the cluster barrier, `s_barrier`; and the registers of a program.
//!
//! All of them are barriers with phases: a phase counts arrivals of threads or agents, and an agent waits for the phase in which
//! it arrived. Cluster and program barriers do not wait for an agent that has ended.

use super::barrier_ops::unknown;
use super::finding::{Found, Kind};
use super::machine::{Machine, Obs, index};
use super::state::{Moved, Named};
use super::work::Res;
use crate::engine::{self, Agent, BarrierId, Place, State, Wait};
use titan_core::ir::{NvOp, OpId, OpKind};

/// The reason for which an agent waits for registers that other warps release.
const REGISTERS: u32 = 3;

impl Machine<'_> {
    /// Arrives at a named barrier, and waits there unless the operation only arrives.
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

    /// The named barrier of a number; all its arrivals must expect the same number of threads.
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
                // Before the roles of a program that is not laid out, one agent executes what the threads of all roles do.
                let all = self.look(agent)?.local == 0 && self.plan.kernel.laid_out.is_none();
                let arrivals = if all { (self.plan.agents() - 1).max(1) } else { 1 };
                self.engine
                    .arrive(Agent::new(agent), barrier, index(arrivals), 0, &mut &mut *obs)
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
                .arrive_and_drop(Agent::new(agent), barrier, 1, None, &mut &mut *obs)
                .map_err(|h| self.fault(agent, None, h))?;
        }
        Ok(())
    }

    /// PTX ISA, "setmaxnreg": an agent releases registers to its program, or waits until that many are unassigned.
    pub(super) fn registers(&mut self, agent: usize, registers: u32) -> Res<Moved> {
        if !(24..=256).contains(&registers) || !registers.is_multiple_of(8) {
            return Err(Found::new(
                Kind::Participants,
                format!("{registers} registers requested; the count must be a multiple of 8 from 24 to 256"),
            ));
        }
        if self.registers_wanted(agent, registers) > self.registers_left(agent) {
            self.engine.agents_mut().set(Agent::new(agent), State::Blocked(Wait::Other(REGISTERS)));
            return Ok(Moved::Blocked);
        }
        self.thread(agent)?.registers = Some(registers);
        self.engine.agents_mut().wake(|w| w == Wait::Other(REGISTERS));
        Ok(Moved::On)
    }

    /// The number of additional registers that an agent needs, over all its threads.
    fn registers_wanted(&self, agent: usize, registers: u32) -> u64 {
        let has = self.threads.get(agent).and_then(|t| t.registers).unwrap_or_else(|| self.registers_at_entry());
        u64::from(registers.saturating_sub(has)) * self.register_threads(agent)
    }

    /// The number of threads whose register count an agent changes.
    fn register_threads(&self, agent: usize) -> u64 {
        let local = agent % self.plan.agents();
        let role = self.plan.role_of(local).and_then(|r| self.kernel().roles.get(r));
        let warps = match (self.kernel().laid_out.is_some(), role) {
            (true, _) => u64::from(local > 0),
            // Roles that have not been laid out occupy whole warpgroups.
            (false, Some(role)) => u64::from(role.warps).next_multiple_of(4),
            (false, None) => 0,
        };
        warps * 32
    }

    /// The registers of a thread when a program begins: an equal part of 65,536 for each thread of whole warpgroups, in steps of 8.
    fn registers_at_entry(&self) -> u32 {
        let threads: u64 = (0..self.plan.agents()).map(|local| self.register_threads(local)).sum();
        u32::try_from(65_536 / threads.next_multiple_of(128).max(128) / 8 * 8).unwrap_or(0).min(248)
    }

    /// The number of registers of a program that are assigned to no thread.
    fn registers_left(&self, agent: usize) -> u64 {
        let (entry, first) = (self.registers_at_entry(), agent / self.plan.agents() * self.plan.agents());
        let (mut all, mut taken) = (0, 0);
        for one in first..first + self.plan.agents() {
            let has = self.threads.get(one).and_then(|t| t.registers).unwrap_or(entry);
            all += u64::from(entry) * self.register_threads(one);
            taken += u64::from(has) * self.register_threads(one);
        }
        all.saturating_sub(taken)
    }

    /// Whether a request for registers releases some, or changes nothing: then it neither waits nor makes others wait.
    pub(super) fn gives_registers(&self, agent: usize, registers: u32) -> bool {
        self.registers_wanted(agent, registers) == 0
    }

    /// For an agent that waits for registers, a description of what is missing.
    pub(super) fn lacks_registers(&self, agent: usize) -> Option<String> {
        let OpKind::Nv(NvOp::SetMaxNReg { registers }) = self.kernel().op(self.next_op(agent)?).kind else {
            return None;
        };
        let (wanted, left) = (self.registers_wanted(agent, registers), self.registers_left(agent));
        (wanted > left).then(|| format!("{} waits for {wanted} registers, of which {left} are left", self.role(agent)))
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
