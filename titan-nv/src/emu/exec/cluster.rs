//! Instructions of a cluster's blocks: its barrier, addresses in other blocks, and fences between proxies.
//!
//! The barrier of a cluster counts every thread that has not ended. An arrival releases; a relaxed one releases what the thread's fences
//! before it have released, and no more. A wait acquires what the phase released.

use super::access::fence_of;
use super::{Fail, Run, Step, Who, World, misplaced};
use crate::emu::async_op::Reach;
use crate::emu::cluster::{Cluster, in_block, rank_of, split};
use crate::emu::error::ErrorCode;
use crate::emu::job::numbered;
use crate::emu::maps::MAP;
use crate::emu::memory::{from_generic, to_generic};
use crate::emu::op::Op;
use crate::emu::proxy::{GLOBAL, View};
use crate::emu::ty::Space;
use crate::emu::warp::{Hold, lanes_of};
use crate::emu::watch::Watch;
use titan_sim::engine::{Agent, Event, FenceSpace, Observer as _, Place, Proxy, Scope, State};

impl Cluster<'_> {
    pub(super) fn across_blocks(&mut self, who: Who, op: &Op, world: &mut World<'_>) -> Run<Step> {
        match op {
            Op::ClusterArrive { relaxed, aligned } => self.cluster_arrive(who, *relaxed, *aligned, world.watch),
            Op::ClusterWait { aligned } => self.cluster_wait(who, *aligned, world.watch),
            Op::ProxyFence { to } => self.proxy_fence(who, *to, world),
            Op::InitFence => {
                for lane in lanes_of(who.active) {
                    let agent = self.agent(who.warp, lane);
                    self.unfenced.retain(|_, who| *who != agent);
                    self.tell_fence(who, agent, (Scope::Cluster, FenceSpace::Inits), world.watch)?;
                }
                Ok(Step::Next)
            }
            Op::MapAddress { dst, src, rank, generic } => {
                let (values, ranks) = (self.need(who, *src)?, self.need(who, *rank)?);
                let mut out = [0; 32];
                for lane in lanes_of(who.active) {
                    let own = if *generic { from_generic(values[lane]).1 } else { values[lane] };
                    if ranks[lane] >= self.ctas.len() as u64 {
                        let message = format!("block {} of a cluster of {}", ranks[lane], self.ctas.len());
                        return Err(Fail::new(ErrorCode::Operand, message).lane(lane));
                    }
                    let mapped = in_block(ranks[lane] + 1, own);
                    out[lane] = if *generic { to_generic(Space::Cluster, mapped) } else { mapped };
                }
                self.warps[who.warp].set_reg(*dst, who.active, &out, u32::MAX);
                Ok(Step::Next)
            }
            Op::RankOf { dst, src, generic } => {
                let values = self.need(who, *src)?;
                let mut out = [0; 32];
                for lane in lanes_of(who.active) {
                    let address = if *generic { from_generic(values[lane]).1 } else { values[lane] };
                    out[lane] = rank_of(self.ranked(who, address, true).map_err(|f| f.lane(lane))?);
                }
                self.warps[who.warp].set_reg(*dst, who.active, &out, u32::MAX);
                Ok(Step::Next)
            }
            _ => Err(misplaced()),
        }
    }

    /// An address as a thread sees it, with the rank of the block that contains it.
    pub(super) fn ranked(&self, who: Who, address: u64, any: bool) -> Run<u64> {
        let own = u64::from(self.warps[who.warp].rank);
        let rank = match rank_of(address) {
            0 => own,
            n => n - 1,
        };
        if rank == own {
            return Ok(in_block(own, address));
        }
        if rank >= self.ctas.len() as u64 {
            return Err(Fail::new(ErrorCode::OutOfBounds, format!("{address:#x} is in no block's shared memory")));
        }
        if !any {
            let message =
                format!("the address is of block {rank} of the cluster, where one of the own block is needed");
            return Err(Fail::new(ErrorCode::OutOfBounds, message).help("use `.shared::cluster`"));
        }
        if self.engine.barrier(self.barrier).is_none_or(|b| b.phase() == 0) {
            let message = format!("an access to block {rank} of the cluster, which may not have begun");
            return Err(Fail::new(ErrorCode::Race, message).help("`barrier.cluster` must come before"));
        }
        if self.warps.iter().filter(|w| u64::from(w.rank) == rank).all(|w| w.live == 0) {
            let message = format!("an access to block {rank} of the cluster, which has ended");
            return Err(Fail::new(ErrorCode::Permission, message).help("no block may end while others may reach it"));
        }
        Ok(in_block(rank, address))
    }

    fn cluster_arrive(&mut self, who: Who, relaxed: bool, aligned: bool, watch: &mut Watch) -> Run<Step> {
        if aligned {
            self.together(who, "a barrier of the cluster")?;
        }
        let agents = self.agents(who.warp, who.active);
        watch.at(&agents, who.pc)?;
        let phase = self.cluster_phase();
        for agent in &agents {
            let arrived = &mut self.arrived[agent.index()];
            if arrived.is_some() {
                let message =
                    "a thread arrives again at the barrier of the cluster, and has not waited for the last time";
                return Err(Fail::new(ErrorCode::Barrier, message).lane(agent.index() % 32));
            }
            *arrived = Some(phase);
            let fences = relaxed.then(|| fence_of(*agent));
            self.engine.arrive_ordered(*agent, self.barrier, (1, 0), fences, watch)?;
        }
        self.progress += 1;
        self.drop_those_who_left(watch)?;
        Ok(Step::Next)
    }

    fn cluster_phase(&self) -> u64 {
        self.engine.barrier(self.barrier).map_or(0, titan_sim::engine::PhaseBarrier::phase)
    }

    fn cluster_wait(&mut self, who: Who, aligned: bool, watch: &mut Watch) -> Run<Step> {
        if aligned {
            self.together(who, "a barrier of the cluster")?;
        }
        if self.part(who) {
            return Ok(Step::Changed);
        }
        let agents = self.agents(who.warp, who.active);
        watch.at(&agents, who.pc)?;
        for agent in &agents {
            let Some(phase) = self.arrived[agent.index()] else {
                let message = "a thread waits at the barrier of the cluster and has not arrived there";
                return Err(Fail::new(ErrorCode::Barrier, message));
            };
            self.engine.wait_phase(*agent, self.barrier, phase & 1 == 1, watch)?;
        }
        if agents.iter().any(|a| self.engine.agents().state(*a) != State::Ready) {
            self.warps[who.warp].fragments[who.fragment].wait = Hold::Agents;
            return Ok(Step::Held);
        }
        agents.iter().for_each(|a| self.arrived[a.index()] = None);
        Ok(Step::Next)
    }

    /// Records that threads end: the barrier of the cluster no longer waits for them.
    pub(super) fn leave_cluster(&mut self, agents: &[Agent], watch: &mut Watch) -> Run<()> {
        if !self.env.program.has_cluster_barrier {
            return Ok(());
        }
        let phase = self.cluster_phase();
        for agent in agents {
            if self.arrived[agent.index()] == Some(phase) {
                self.left.push(*agent);
            } else {
                self.engine.arrive_and_drop(*agent, self.barrier, 1, None, watch)?;
            }
        }
        self.drop_those_who_left(watch)
    }

    /// Lowers the arrival count of later phases by the threads that ended after they had arrived.
    fn drop_those_who_left(&mut self, watch: &mut Watch) -> Run<()> {
        let phase = self.cluster_phase();
        let left = std::mem::take(&mut self.left);
        let (stay, gone): (Vec<Agent>, _) = left.into_iter().partition(|a| self.arrived[a.index()] == Some(phase));
        self.left = stay;
        gone.iter().try_for_each(|a| Ok(self.engine.arrive_and_drop(*a, self.barrier, 1, None, watch)?))
    }

    fn proxy_fence(&mut self, who: Who, to: Reach, world: &mut World<'_>) -> Run<Step> {
        let rank = self.warps[who.warp].rank;
        let (scope, space) = match to {
            Reach::All => (Scope::Device, FenceSpace::All),
            Reach::Global => (Scope::Device, FenceSpace::Global),
            Reach::Block => (Scope::Cta, FenceSpace::Shared),
            Reach::Cluster => (Scope::Cluster, FenceSpace::Shared),
        };
        for lane in lanes_of(who.active) {
            let agent = self.agent(who.warp, lane);
            let writer = self.writer(agent.index());
            self.unfenced.retain(|_, who| *who != agent);
            self.stores.fence(writer, to, rank);
            world.stores.fence(writer, to, rank);
            self.tell_fence(who, agent, (scope, space), world.watch)?;
        }
        Ok(Step::Next)
    }

    fn tell_fence(&self, who: Who, agent: Agent, (scope, space): (Scope, FenceSpace), watch: &mut Watch) -> Run<()> {
        let place = Place::new(who.pc as usize);
        let event = Event::Fence { agent, from: Proxy::Generic, to: Proxy::Async, scope, space, place };
        Ok(watch.event(&event)?)
    }

    /// The number of a thread among all threads of the launch.
    pub(super) const fn writer(&self, thread: usize) -> u64 {
        self.number << 32 | thread as u64
    }

    /// The bytes of a range of shared memory that an operation of `reader` sees differently than threads do.
    pub(super) fn read_view(&self, reader: u64, address: u64, len: u64, view: &mut View) {
        let (space, address) = split(address);
        self.stores.read(reader, numbered(space), address, len, view);
    }

    /// Records a store of a thread to memory that asynchronous operations may read, before it takes place.
    pub(super) fn note_store(
        &mut self,
        thread: usize,
        at: super::access::At,
        len: usize,
        world: &mut World<'_>,
    ) -> Run<()> {
        let writer = self.writer(thread);
        // No store is larger than a tensor map.
        let (mut value, mut written) = ([0; MAP], [false; MAP]);
        let (value, written) = (&mut value[..len.min(MAP)], &mut written[..len.min(MAP)]);
        match at.space {
            Space::Shared => {
                let (space, address) = split(at.address);
                if self.engine.space(space).is_some_and(|s| s.look(address, value, written).is_ok()) {
                    self.stores.store(writer, numbered(space), address, (value, written));
                }
            }
            Space::Global | Space::Const => {
                if world.memory.space.look(at.address, value, written).is_ok() {
                    world.stores.store(writer, GLOBAL, at.address, (value, written));
                    if self.env.program.has_map_fences {
                        self.spare_maps(at, len as u64)?;
                        world.maps.store(self.party_of(thread), at.address, (value, written));
                    }
                }
            }
            Space::Generic | Space::Local | Space::Param | Space::Cluster => {}
        }
        Ok(())
    }
}
