//! Mbarriers: the barriers that an operand refers to, their words and lifetimes, arrivals and waits.
#![expect(clippy::wildcard_enum_match_arm, reason = "operands that are not what an operation takes are refused alike")]

use super::barrier_ops::unknown;
use super::finding::{Found, Kind};
use super::machine::{Machine, Obs, index};
use super::plan::CP_ASYNC;
use super::state::Moved;
use super::value::Val;
use super::work::{Effect, Res, Work};
use crate::engine::{self, Agent, BarrierId, Place, Signal, Storage};
use titan_core::ir::{self, NvOp, Op, OpId};

impl Machine<'_> {
    /// The barriers that an operand refers to: the first, and their number.
    pub(super) fn barriers_of(&self, agent: usize, cta: usize, op: &Op, i: usize) -> Res<(BarrierId, u32)> {
        let Val::Barriers { made, first, n } = self.arg(agent, op, i) else { return Err(unknown("a barrier")) };
        let base = self.ctas.get(cta).and_then(|c| c.made.get(&made)).ok_or_else(|| unknown("a barrier"))?;
        Ok((BarrierId::new(base.index() + first as usize), n))
    }

    pub(super) fn one_barrier(&self, agent: usize, op: &Op, i: usize) -> Res<BarrierId> {
        match self.barriers_of(agent, self.cta(agent), op, i)? {
            (barrier, 1) => Ok(barrier),
            (_, n) => Err(Found::new(Kind::Barrier, format!("{n} barriers, where one is required"))),
        }
    }

    /// The display name of a barrier.
    pub(super) fn barrier_name(&self, barrier: BarrierId) -> String {
        if Some(barrier) == self.cluster {
            return "the barrier of the cluster".to_owned();
        }
        for cta in &self.ctas {
            if Some(barrier) == cta.block {
                return "the barrier of the program".to_owned();
            }
            for (i, (ready, free)) in cta.rings.iter().enumerate() {
                let name = self.kernel().pipe_name(ir::Pipe::new(i));
                for (side, what) in [(ready, "ready"), (free, "free")] {
                    if let Some(slot) = side.iter().position(|b| *b == barrier) {
                        return format!("{name}.{what}[{slot}]");
                    }
                }
            }
            if let Some((id, _)) = cta.named.iter().find(|(_, n)| n.barrier == barrier) {
                return format!("barrier {id}");
            }
            for alloc in &self.plan.allocs {
                let Some(base) = cta.made.get(&index(alloc.value.index())) else { continue };
                if let Some(i) = barrier.index().checked_sub(base.index()).filter(|i| *i < alloc.n as usize) {
                    let name = self.kernel().display_name(alloc.value);
                    return if alloc.n == 1 { name } else { format!("{name}[{i}]") };
                }
            }
        }
        barrier.to_string()
    }

    /// The address of the first word of the barriers that an operand refers to.
    fn word(&self, agent: usize, op: &Op) -> Res<u64> {
        let Val::Barriers { made, first, .. } = self.arg(agent, op, 0) else { return Err(unknown("a barrier")) };
        let alloc =
            self.plan.allocs.iter().find(|a| index(a.value.index()) == made).ok_or_else(|| unknown("a barrier"))?;
        let made = self.kernel().op(alloc.op);
        let (lo, hi) = self.bytes(agent, made, 0)?;
        let ir::OpKind::Nv(NvOp::MbarrierAlloc { at, n }) = made.kind else { return Err(unknown("a barrier")) };
        let start = lo + u64::from(at);
        if start % 8 != 0 || start + 8 * u64::from(n) > hi {
            return Err(Found::new(
                Kind::Barrier,
                format!("barriers at byte {at} of a region of {} bytes: each has an aligned word of 8", hi - lo),
            ));
        }
        Ok(start + 8 * u64::from(first))
    }

    pub(super) fn init(&mut self, agent: usize, id: OpId, op: &Op, count: u32, obs: Obs<'_, '_>) -> Res<()> {
        if !self.is_first(agent) {
            return Ok(());
        }
        let (first, n) = self.barriers_of(agent, self.cta(agent), op, 0)?;
        let (start, cta) = (self.word(agent, op)?, self.cta(agent));
        for i in 0..n {
            let (barrier, address) = (BarrierId::new(first.index() + i as usize), start + 8 * u64::from(i));
            let other = self.ctas.get(cta).and_then(|c| c.words.get(&address)).copied().filter(|b| *b != barrier);
            if let Some(other) = other {
                let message =
                    format!("`{}` and `{}` have one word", self.barrier_name(barrier), self.barrier_name(other));
                return Err(Found::new(Kind::Barrier, message));
            }
            let storage = self.store.shared.get(cta).map(|space| Storage { space: *space, address, len: 8 });
            let place = Place::new(id.index());
            self.engine
                .init(Agent::new(agent), barrier, count, storage, place, &mut &mut *obs)
                .map_err(|h| self.fault(agent, Some(id), h))?;
            if let Some(cta) = self.ctas.get_mut(cta) {
                cta.words.insert(address, barrier);
                cta.unfenced.insert(barrier, agent);
            }
        }
        Ok(())
    }

    pub(super) fn invalidate(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let (first, n) = self.barriers_of(agent, self.cta(agent), op, 0)?;
        let cta = self.cta(agent);
        for i in 0..n {
            let barrier = BarrierId::new(first.index() + i as usize);
            let brings = |s: &Signal| matches!(s, Signal::Bytes { barrier: b, .. } | Signal::Arrive { barrier: b } if *b == barrier);
            let used = self
                .engine
                .pending()
                .iter()
                .find(|(_, o)| o.signals.iter().any(brings))
                .map(|(_, o)| (o.agent, o.payload.op));
            let waits = self.engine.agents().iter().find(
                |(_, s)| matches!(s, engine::State::Blocked(engine::Wait::Phase { barrier: b, .. }) if *b == barrier),
            );
            if used.is_some() || waits.is_some() {
                let name = self.barrier_name(barrier);
                let mut found = Found::new(Kind::Barrier, format!("`{name}` is invalidated in use"))
                    .side(self.side(agent, id, None, None));
                if let Some((who, op)) = used {
                    found = found.side(self.side(who.index(), op, None, None));
                }
                return Err(found);
            }
            self.engine
                .invalidate(Agent::new(agent), barrier, Place::new(id.index()), &mut &mut *obs)
                .map_err(|h| self.fault(agent, Some(id), h))?;
            if let Some(cta) = self.ctas.get_mut(cta) {
                cta.words.retain(|_, b| *b != barrier);
            }
        }
        Ok(())
    }

    pub(super) fn arrive(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        (count, bytes): (u32, u32),
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let barrier = self.one_barrier(agent, op, 0)?;
        let of_one = matches!(op.kind, ir::OpKind::Nv(NvOp::ArriveExpectTx { .. } | NvOp::ExpectTx { .. }));
        if of_one && !self.is_first(agent) {
            // One thread of the role arrives, and no other thread has the state of that arrival.
            return Ok(());
        }
        if op.kind == ir::OpKind::Nv(NvOp::Arrive { arrivals: 0 }) {
            return Err(Found::new(Kind::Barrier, "an arrival with count 0"));
        }
        // The arrivals of a role are divided equally among its warps.
        let count = match self.warp_set(agent) {
            Some(_) if of_one => count,
            Some(warp_set) if count.is_multiple_of(warp_set.warps) => count / warp_set.warps,
            Some(warp_set) => {
                let message = format!("{count} arrivals cannot be divided equally among {} warps", warp_set.warps);
                return Err(Found::new(Kind::Participants, message));
            }
            None => count,
        };
        let phase = self.engine.barrier(barrier).map_or(0, engine::PhaseBarrier::phase);
        self.engine
            .arrive(Agent::new(agent), barrier, count, bytes, &mut &mut *obs)
            .map_err(|h| self.fault(agent, Some(id), h))?;
        self.set(agent, &op.results, [Val::Phase(phase & 1)])
    }

    /// A parity, which is 0 or 1 (PTX ISA, `mbarrier.test_wait`).
    pub(super) fn parity(&self, agent: usize, op: &Op) -> Res<bool> {
        match self.int(agent, op, 1)? {
            0 => Ok(false),
            1 => Ok(true),
            n => Err(Found::new(Kind::Barrier, format!("{n} is waited for as the parity of a phase, which is 0 or 1"))),
        }
    }

    pub(super) fn wait(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<Moved> {
        let barrier = self.one_barrier(agent, op, 0)?;
        let parity = match self.arg(agent, op, 1) {
            Val::Phase(parity) => parity == 1,
            _ => self.parity(agent, op)?,
        };
        let passed = self
            .engine
            .wait_phase(Agent::new(agent), barrier, parity, &mut &mut *obs)
            .map_err(|h| self.fault(agent, Some(id), h))?;
        Ok(if passed { Moved::On } else { Moved::Blocked })
    }

    pub(super) fn copies_arrive(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        (noinc, arrivals): (bool, u32),
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let barrier = self.one_barrier(agent, op, 0)?;
        let role = self.plan.role_of(self.look(agent)?.local).and_then(|r| self.kernel().roles.get(r));
        let warp_set = self.warp_set(agent);
        let fits = match role.filter(|_| warp_set.is_none_or(|c| c.role.is_some())) {
            Some(role) => arrivals == role.warps.saturating_mul(32),
            None => arrivals != 0 && arrivals.is_multiple_of(32) && arrivals <= 1024,
        };
        if !fits {
            let message =
                format!("{arrivals} arrivals for the copies of {}: each of its threads arrives once", self.role(agent));
            return Err(Found::new(Kind::Participants, message));
        }
        let arrivals = warp_set.map_or(arrivals, |c| c.lanes);
        if !noinc {
            self.engine.add_pending(barrier, arrivals, &mut &mut *obs).map_err(|h| self.fault(agent, Some(id), h))?;
        }
        // Each thread arrives when its own copies are complete: all but one may do so while the last one is still copying.
        let all = self.engine.pending().of(Agent::new(agent), CP_ASYNC);
        let work = || Work { op: id, time: None, touches: Vec::new(), effect: Effect::None };
        let arrive = |n: u32| vec![Signal::Arrive { barrier }; n as usize];
        if arrivals > 1 {
            let quiet = |o: &engine::OpId| {
                self.engine.pending().iter().any(|(id, op)| id == *o && op.payload.touches.is_empty())
            };
            let last = all.iter().rposition(quiet).map_or(0, |i| i + 1);
            self.start(agent, CP_ASYNC, (all[..last].to_vec(), arrive(arrivals - 1)), work(), obs)?;
        }
        self.start(agent, CP_ASYNC, (all, arrive(arrivals.min(1))), work(), obs)?;
        // The barrier signals their completion: no wait for their group is needed.
        let groups = &mut self.thread(agent)?.groups[usize::from(CP_ASYNC.0)];
        groups.open = 0;
        groups.sizes.iter_mut().for_each(|n| *n = 0);
        Ok(())
    }
}
