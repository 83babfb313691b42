//! `cp.async` with its groups, and `mbarrier`.
//!
//! A copy is an operation of the engine: it completes at the time that the options choose, but never after a wait that requires it. Its
//! bounds are checked at the issue, so that the error has the line of the copy.
//!
//! The state that an arrival returns is opaque in PTX; here it is the parity of the phase and, above, the arrivals that
//! were pending before.

use super::access::{fence_of, observed};
use super::events::How;
use super::{Fail, Run, Step, Who, World, misplaced};
use crate::emu::cluster::{COPY, Cluster, rank_of, split};
use crate::emu::error::ErrorCode;
use crate::emu::job::{Job, What};
use crate::emu::lane::lo;
use crate::emu::memory::code_of;
use crate::emu::op::{Addr, Op, PredSrc, Src};
use crate::emu::proxy::View;
use crate::emu::touched::Touch;
use crate::emu::ty::Space as PtxSpace;
use crate::emu::warp::{Hold, lanes_of};
use titan_sim::engine::{
    AccessKind, Agent, BarrierId, Class, Completion, Helper, Op as AsyncOp, Place, Signal, Storage, Strength,
};

impl Cluster<'_> {
    pub(super) fn asynchronous(&mut self, who: Who, op: &Op, world: &mut World<'_>) -> Run<Step> {
        match op {
            Op::CopyAsync { dst, src, bytes, src_bytes, ignore } => {
                self.copy(who, (dst, src), *bytes, (*src_bytes, *ignore), world)?;
            }
            Op::CopyCommit => {
                for lane in lanes_of(who.active) {
                    let agent = self.agent(who.warp, lane);
                    self.engine.commit(agent, COPY, world.watch)?;
                }
            }
            Op::CopyWait { at_most, uncommitted } => self.copy_wait(who, *at_most, *uncommitted, world)?,
            Op::CopyArrive { addr, counted } => self.copy_arrive(who, addr, *counted, world)?,
            Op::BarrierInit { addr, count } => self.init(who, addr, *count, world)?,
            Op::BarrierInval { addr } => self.invalidate(who, addr, world)?,
            Op::BarrierArrive { .. } => self.arrive(who, op, world)?,
            Op::BarrierTest { .. } => return self.test(who, op, world),
            Op::BarrierPending { dst, state } => {
                let pending = self.need(who, *state)?.map(|s| s >> 1);
                self.warps[who.warp].set_reg(*dst, who.active, &pending, u32::MAX);
            }
            _ => return Err(misplaced()),
        }
        Ok(Step::Next)
    }

    fn copy(
        &mut self,
        who: Who,
        (dst, src): (&Addr, &Addr),
        bytes: u32,
        (src_bytes, ignore): (Option<Src>, Option<PredSrc>),
        world: &mut World<'_>,
    ) -> Run<()> {
        let (to, from) = (self.addresses(who, dst)?, self.addresses(who, src)?);
        let sizes = src_bytes.map_or(Ok([u64::from(bytes); 32]), |s| self.need(who, s))?;
        let ignored = ignore.map_or(Ok(0), |p| self.need_pred(who, p))?;
        for lane in lanes_of(who.active) {
            let n = if ignored >> lane & 1 == 1 { 0 } else { lo(sizes[lane]) };
            if n > bytes {
                let message = format!("{n} bytes of a copy of {bytes}");
                return Err(Fail::new(ErrorCode::Operand, message).lane(lane));
            }
            let at = self.at(who, lane, dst, to[lane], bytes)?;
            let source = self.at(who, lane, src, from[lane], bytes)?;
            let shared = self.shared(at.address);
            let wrong = shared.and_then(|(s, at)| s.check(at, bytes as usize).err().map(|f| (s.explain(&f), f)));
            let global = &world.memory.space;
            let wrong = wrong.or_else(|| {
                let fault = (n > 0).then(|| global.check(source.address, n as usize).err()).flatten();
                fault.map(|f| (global.explain(&f), f))
            });
            if let Some((message, fault)) = wrong {
                return Err(Fail::new(code_of(&fault), message).lane(lane));
            }
            world.memory.touch(Touch::Read, source.address, n);
            let what = What::Copy { to: at.address, from: source.address, bytes, src_bytes: n };
            let payload = Job { place: who.pc, what, view: View::default(), map: None };
            let agent = self.agent(who.warp, lane);
            let op = AsyncOp { agent, class: COPY, after: vec![], signals: vec![], payload };
            let id = self.engine.issue(op, false, Place::new(who.pc as usize), world.watch)?;
            self.tell(who, at, bytes, How::copy(Helper { class: COPY, op: id }), world)?;
            if self.env.options.completion == Completion::Early {
                self.complete(id, world).map_err(|f| *f)?;
            }
        }
        Ok(())
    }

    fn copy_wait(&mut self, who: Who, at_most: u32, uncommitted: bool, world: &mut World<'_>) -> Run<()> {
        for lane in lanes_of(who.active) {
            let agent = self.agent(who.warp, lane);
            if uncommitted {
                self.engine.commit(agent, COPY, world.watch)?;
            }
            self.wait_groups(who, agent, COPY, at_most, world)?;
        }
        self.progress += 1;
        Ok(())
    }

    /// Waits until at most `at_most` groups of a thread and class are outstanding.
    pub(super) fn wait_groups(
        &mut self,
        who: Who,
        agent: Agent,
        class: Class,
        at_most: u32,
        world: &mut World<'_>,
    ) -> Run<()> {
        let mut place = who.pc;
        let (engine, mut ground) = self.ground(&mut *world.memory);
        let done = engine.wait_groups(agent, class, at_most, world.watch, |spaces, op| {
            place = op.payload.place;
            ground.complete(spaces, op.agent, &op.payload)
        });
        done.map_err(|f: Fail| f.or_at(place, agent))
    }

    /// The barrier at an address, with that address.
    pub(super) fn barrier_at(&mut self, who: Who, lane: usize, addr: &Addr, address: u64) -> Run<(BarrierId, u64)> {
        let at = self.at(who, lane, addr, address, 8)?;
        if at.space != PtxSpace::Shared {
            return Err(Fail::new(ErrorCode::Barrier, "an mbarrier is in shared memory").lane(lane));
        }
        Ok((self.barrier_of(at.address).map_err(|f| f.lane(lane))?, at.address))
    }

    /// The barrier whose word is at an address that carries the block's rank.
    pub(super) fn barrier_of(&mut self, address: u64) -> Run<BarrierId> {
        self.inside(address, 8)?;
        if let Some(id) = self.barriers.get(&address) {
            return Ok(*id);
        }
        let id = self.engine.add_barrier();
        self.barriers.insert(address, id);
        Ok(id)
    }

    /// Reports accesses to a barrier's bytes: `init` and `inval` write them, other instructions access them atomically.
    pub(super) fn tell_barrier(
        &mut self,
        who: Who,
        lane: usize,
        address: u64,
        writes: bool,
        world: &mut World<'_>,
    ) -> Run<()> {
        let at = super::access::At { lane, space: PtxSpace::Shared, address };
        let (kind, strength) =
            if writes { (AccessKind::Write, Strength::Weak) } else { (AccessKind::Atomic, Strength::Strong) };
        self.tell(who, at, 8, How::barrier(kind, strength), world)
    }

    fn init(&mut self, who: Who, addr: &Addr, count: Src, world: &mut World<'_>) -> Run<()> {
        let (addresses, counts) = (self.addresses(who, addr)?, self.need(who, count)?);
        for lane in lanes_of(who.active) {
            let (id, address) = self.barrier_at(who, lane, addr, addresses[lane])?;
            self.overlap(address, lane)?;
            let agent = self.agent(who.warp, lane);
            let place = Place::new(who.pc as usize);
            let (space, word) = split(address);
            let storage = Some(Storage { space, address: word, len: 8 });
            self.engine
                .init(agent, id, lo(counts[lane]), storage, place, world.watch)
                .map_err(|h| Fail::from(h).lane(lane))?;
            self.tell_barrier(who, lane, address, true, world)?;
            self.unfenced.insert(address, agent);
        }
        self.progress += 1;
        Ok(())
    }

    /// Checks that the initialisation of a barrier is visible to a bulk copy, or to a thread of another block.
    pub(super) fn is_visible(&self, address: u64, to: &str) -> Run<()> {
        if !self.unfenced.contains_key(&address) {
            return Ok(());
        }
        let name = self.address_name(address);
        let message = format!("{to} arrives at the mbarrier at {name}, whose initialisation was not fenced");
        Err(Fail::new(ErrorCode::Barrier, message)
            .help("`fence.mbarrier_init.release.cluster`, by the thread that initialises it"))
    }

    /// Checks that no other live barrier occupies some of these bytes.
    fn overlap(&self, address: u64, lane: usize) -> Run<()> {
        let near = self.barriers.range(address.saturating_sub(7)..address + 8).filter(|(a, _)| **a != address);
        let live = near.filter(|(_, b)| self.engine.barrier(**b).is_some_and(titan_sim::engine::PhaseBarrier::is_live));
        match live.max_by_key(|(a, _)| **a) {
            None => Ok(()),
            Some((other, _)) => {
                let message = format!("the mbarrier overlaps the one at shared address {}", self.address_name(*other));
                Err(Fail::new(ErrorCode::Barrier, message).lane(lane))
            }
        }
    }

    fn invalidate(&mut self, who: Who, addr: &Addr, world: &mut World<'_>) -> Run<()> {
        let addresses = self.addresses(who, addr)?;
        for lane in lanes_of(who.active) {
            let (id, address) = self.barrier_at(who, lane, addr, addresses[lane])?;
            let agent = self.agent(who.warp, lane);
            let place = Place::new(who.pc as usize);
            self.engine.invalidate(agent, id, place, world.watch).map_err(|h| Fail::from(h).lane(lane))?;
            self.tell_barrier(who, lane, address, true, world)?;
        }
        Ok(())
    }

    fn arrive(&mut self, who: Who, op: &Op, world: &mut World<'_>) -> Run<()> {
        let Op::BarrierArrive { addr, dst, count, bytes, arrives, drops, relaxed } = op else {
            return Err(misplaced());
        };
        let (addresses, counts) = (self.addresses(who, addr)?, self.need(who, *count)?);
        let bytes = bytes.map_or(Ok([0; 32]), |b| self.need(who, b))?;
        let mut states = [0; 32];
        for lane in lanes_of(who.active) {
            let (id, address) = self.barrier_at(who, lane, addr, addresses[lane])?;
            self.tell_barrier(who, lane, address, false, world)?;
            if rank_of(address) != u64::from(self.warps[who.warp].rank) {
                self.is_visible(address, "a thread of another block").map_err(|f| f.lane(lane))?;
            }
            if let Some(b) = self.engine.barrier(id) {
                states[lane] = u64::from(b.pending()) << 1 | b.phase() & 1;
            }
            let agent = self.agent(who.warp, lane);
            let (n, tx) = (lo(counts[lane]), lo(bytes[lane]));
            let fences = relaxed.then(|| fence_of(agent));
            let counted = if *arrives && !drops { n } else { 0 };
            let mut done = self.engine.arrive_ordered(agent, id, (counted, tx), fences, world.watch);
            if *drops && done.is_ok() {
                done = self.engine.arrive_and_drop(agent, id, n, fences, world.watch);
            }
            done.map_err(|h| Fail::from(h).lane(lane))?;
        }
        self.warps[who.warp].set_reg(*dst, who.active, &states, u32::MAX);
        self.progress += 1;
        Ok(())
    }

    fn test(&mut self, who: Who, op: &Op, world: &mut World<'_>) -> Run<Step> {
        let Op::BarrierTest { addr, dst, state, parity, blocks, relaxed } = op else { return Err(misplaced()) };
        let (is_parity, blocks) = (*parity, *blocks);
        let (addresses, states) = (self.addresses(who, addr)?, self.need(who, *state)?);
        let mut passed = 0_u32;
        // `try_wait` may give up before the phase is complete. Here it does so the first time; tried again by the same threads,
        // it suspends them until the phase ends.
        let whole = self.warps[who.warp].fragments[who.fragment].mask == who.active;
        let blocks = blocks && !relaxed && whole && self.warps[who.warp].tried == Some((who.pc, who.active));
        for lane in lanes_of(who.active) {
            let (id, address) = self.barrier_at(who, lane, addr, addresses[lane])?;
            self.tell_barrier(who, lane, address, false, world)?;
            if is_parity && states[lane] > 1 {
                let message = format!("a parity is 0 or 1, not {}", states[lane]);
                return Err(Fail::new(ErrorCode::Operand, message).lane(lane));
            }
            let agent = self.agent(who.warp, lane);
            let parity = states[lane] & 1 == 1;
            let done = if blocks {
                self.engine.wait_phase(agent, id, parity, world.watch)
            } else {
                self.engine.test_ordered(agent, id, parity, relaxed.then(|| observed(agent)), world.watch)
            };
            passed |= u32::from(done.map_err(|h| Fail::from(h).lane(lane))?) << lane;
        }
        let passes = passed == who.active;
        self.warps[who.warp].tried = (!passes).then_some((who.pc, who.active));
        if blocks && !passes {
            self.warps[who.warp].fragments[who.fragment].wait = Hold::Agents;
            return Ok(Step::Held);
        }
        self.warps[who.warp].set_pred(*dst, who.active, passed, u32::MAX);
        Ok(if passes { Step::Next } else { Step::Poll })
    }

    fn copy_arrive(&mut self, who: Who, addr: &Addr, counted: bool, world: &mut World<'_>) -> Run<()> {
        let addresses = self.addresses(who, addr)?;
        for lane in lanes_of(who.active) {
            let (barrier, address) = self.barrier_at(who, lane, addr, addresses[lane])?;
            self.tell_barrier(who, lane, address, false, world)?;
            if counted {
                self.engine.add_pending(barrier, 1, world.watch).map_err(|h| Fail::from(h).lane(lane))?;
            } else if !self.engine.barrier(barrier).is_some_and(titan_sim::engine::PhaseBarrier::is_live) {
                let fault = titan_sim::engine::BarrierFault::NotLive;
                return Err(Fail::new(ErrorCode::Barrier, fault.to_string()).lane(lane));
            }
            let agent = self.agent(who.warp, lane);
            let after = self.engine.pending().of(agent, COPY);
            let payload = Job { place: who.pc, what: What::Arrive, view: View::default(), map: None };
            let op = AsyncOp { agent, class: COPY, after, signals: vec![Signal::Arrive { barrier }], payload };
            let id = self.engine.issue(op, true, Place::new(who.pc as usize), world.watch)?;
            if self.env.options.completion == Completion::Early {
                self.complete(id, world).map_err(|f| *f)?;
            }
        }
        self.progress += 1;
        Ok(())
    }
}
