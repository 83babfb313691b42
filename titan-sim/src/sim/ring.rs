//! Operations on rings: the protocol of `docs/protocol.md` on the engine's barriers.
//!
//! Ring time t uses slot `t mod D`, in epoch `t div D`. The filler waits for phase `e − 1` of *Free*, sets the expected bytes (or has
//! its copies arrive, if they go through the generic proxy) and arrives once at *Ready*; a reader waits for phase e of
//! *Ready*, and arrives at *Free* when it releases. Operations on rings order proxies themselves, where a target needs it:
//! the fences of their lowering are reported to observers here.
//!
//! Independently of the barriers, a ledger is kept: the ring time that each slot holds, and the times that each reader has begun to read
//! and has released. So the use of a stage after its release, or after its slot was filled again, is found even if no barrier shows it.
#![expect(clippy::wildcard_enum_match_arm, reason = "operands that are not what an operation takes are refused alike")]

use super::access::{shared, tensor};
use super::finding::{Found, Kind};
use super::machine::{Machine, Obs, index};
use super::plan::{BULK_LOAD, RING_COPY, Ring};
use super::state::{Holds, Moved};
use super::value::{Num, Source, Val};
use super::work::{Effect, Res, Work};
use crate::engine::{self, Agent, BarrierId, Event, Place, Signal};
use std::rc::Rc;
use titan_core::ir::{FenceSpace, Fill, Op, OpId, Pipe, Proxy, Scope, TtgOp};

/// A slot of a ring at a ring time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) ring: usize,
    pub(super) time: u64,
    slot: usize,
    pub(super) cta: usize,
    /// The address of its first byte in shared memory.
    pub(super) base: u64,
}

/// The fence of a lowered ring between accesses of a role to a stage and those of a copy or an MMA: from, to, scope, space.
pub(super) const TO_ASYNC: (Proxy, Proxy, Scope, FenceSpace) =
    (Proxy::Generic, Proxy::Async, Scope::Cta, FenceSpace::Shared);

impl Machine<'_> {
    /// Executes an operation of the pipeline dialect, `ttg`.
    pub(super) fn ttg(&mut self, agent: usize, id: OpId, op: &Op, ttg: &TtgOp, obs: Obs<'_, '_>) -> Res<Moved> {
        match ttg {
            TtgOp::Source(..) | TtgOp::SourceRows { .. } => {
                let named = self.source_of(agent, op, ttg)?;
                self.set(agent, &op.results, [named])?;
            }
            TtgOp::Acquire(pipe) => return self.acquire(agent, id, op, *pipe, obs),
            TtgOp::Ready(pipe) => self.claim(agent, op, *pipe)?,
            TtgOp::WaitReady => return self.wait_ready(agent, id, op, obs),
            TtgOp::AsyncProduce { bytes, proxy, skipped } => {
                self.produce(agent, id, op, (*bytes, *proxy, *skipped), obs)?
            }
            TtgOp::Fill(Fill::Zero) => {
                let slot = self.slot(agent, op, 0)?;
                let n = self.ring(slot.ring)?.fields.len();
                let bytes = self.ring(slot.ring)?.fields.iter().map(|f| f.1).sum();
                let proxy = if self.ring(slot.ring)?.bulk { Proxy::Async } else { Proxy::Generic };
                self.copies(agent, id, slot, (proxy, bytes, vec![None; n]), obs)?;
            }
            TtgOp::Fill(Fill::Poison) => self.poisoned(agent, id, op, obs)?,
            TtgOp::Poisoned => {
                let slot = self.slot(agent, op, 0)?;
                let poison = self.holds(slot) == Holds::Poison(slot.time);
                self.set(agent, &op.results, [Val::Num(Num::Int(poison.into()))])?;
            }
            TtgOp::ReadPerm | TtgOp::Consumed => {
                let slot = self.slot(agent, op, 0)?;
                self.check_held(agent, slot)?;
                if *ttg == TtgOp::ReadPerm && self.holds(slot) == Holds::Poison(slot.time) {
                    self.check_stage(agent, slot)?;
                }
                self.set(agent, &op.results, [token(slot)])?;
            }
            TtgOp::Split(parts) => {
                let slot = self.slot(agent, op, 0)?;
                self.thread(agent)?.parts.insert((slot.ring, slot.time), *parts);
                self.set(agent, &op.results, vec![token(slot); usize::from(*parts)])?;
            }
            TtgOp::Join => self.join(agent, op)?,
            TtgOp::View { field, elem, shape } => self.view_stage(agent, op, (*field, *elem, *shape))?,
            TtgOp::Read => self.read_stage(agent, id, op, obs)?,
            TtgOp::Release => {
                let slot = self.slot(agent, op, 0)?;
                self.release(agent, id, slot, obs)?;
            }
            TtgOp::ComputeIssue | TtgOp::ComputeWait | TtgOp::AccStart(_) | TtgOp::AccMma | TtgOp::AccFinish => {
                self.product(agent, id, op, ttg, obs)?;
            }
            TtgOp::Write => self.write_stage(agent, id, op, obs)?,
            TtgOp::StoreIssue(unit) => self.store_issue(agent, id, op, *unit, obs)?,
            TtgOp::StoreWait => {
                let Val::Group(class, group) = self.arg(agent, op, 0) else { return Err(misused("a store")) };
                self.wait_for(agent, class, group, obs)?;
            }
            TtgOp::Finalize => {
                self.check_in_flight(agent, Some(id))?;
                self.thread(agent)?.finalized = true;
            }
            TtgOp::Fence { from, to, scope, space } => self.fence(agent, id, (*from, *to, *scope, *space), obs)?,
            TtgOp::Claim(claim, pipe) => self.claimed(agent, op, *claim, *pipe)?,
            TtgOp::Roles | TtgOp::Rematerialize => {}
        }
        Ok(Moved::On)
    }

    pub(super) fn ring(&self, ring: usize) -> Res<&Ring> {
        self.plan.rings.get(ring).ok_or_else(|| Found::new(Kind::Declaration, format!("there is no ring {ring}")))
    }

    pub(super) fn slot_of(&self, agent: usize, ring: usize, time: u64) -> Res<Slot> {
        let r = self.ring(ring)?;
        let slot = time % r.slots.max(1);
        Ok(Slot {
            ring,
            time,
            slot: usize::try_from(slot).unwrap_or(0),
            cta: self.cta(agent),
            base: r.base + slot * r.stride,
        })
    }

    /// The slot that a token refers to.
    pub(super) fn slot(&self, agent: usize, op: &Op, i: usize) -> Res<Slot> {
        match self.arg(agent, op, i) {
            Val::Token { pipe, time } => self.slot_of(agent, pipe as usize, time),
            _ => Err(misused("a token")),
        }
    }

    pub(super) fn holds(&self, s: Slot) -> Holds {
        self.ctas.get(s.cta).and_then(|c| c.holds.get(s.ring)).and_then(|h| h.get(s.slot)).copied().unwrap_or_default()
    }

    pub(super) fn hold(&mut self, s: Slot, what: Holds) {
        if let Some(h) = self.ctas.get_mut(s.cta).and_then(|c| c.holds.get_mut(s.ring)).and_then(|h| h.get_mut(s.slot))
        {
            *h = what;
        }
    }

    /// The barriers Ready and Free of a slot.
    fn barriers(&self, s: Slot) -> Res<(BarrierId, BarrierId)> {
        let sides = self.ctas.get(s.cta).and_then(|c| c.rings.get(s.ring));
        sides.and_then(|(r, f)| Some((*r.get(s.slot)?, *f.get(s.slot)?))).ok_or_else(|| {
            Found::new(
                Kind::Declaration,
                format!(
                    "`{}` is a staging ring: its stages are stored, not read",
                    self.kernel().pipe_name(Pipe::new(s.ring))
                ),
            )
        })
    }

    /// Checks that a ring time stated by the program equals the clock.
    fn check_time(&self, agent: usize, op: &Op, (ring, clock): (usize, u64)) -> Res<()> {
        if op.args.is_empty() {
            return Ok(());
        }
        let written = self.int(agent, op, 0)?;
        if u64::try_from(written) == Ok(clock) {
            return Ok(());
        }
        let name = self.kernel().pipe_name(Pipe::new(ring));
        Err(Found::new(Kind::Time, format!("time {written} of `{name}` is written, but the clock is at {clock}")))
    }

    fn acquire(&mut self, agent: usize, id: OpId, op: &Op, pipe: Pipe, obs: Obs<'_, '_>) -> Res<Moved> {
        let ring = pipe.index();
        let time = self.look(agent)?.fill.get(ring).copied().unwrap_or(0);
        self.check_time(agent, op, (ring, time))?;
        let s = self.slot_of(agent, ring, time)?;
        let (slots, staging) = (self.ring(ring)?.slots, self.ring(ring)?.staging);
        if !staging {
            let (_, free) = self.barriers(s)?;
            let parity = (time / slots) & 1 == 0;
            if !self
                .engine
                .wait_phase(Agent::new(agent), free, parity, &mut &mut *obs)
                .map_err(|h| self.fault(agent, Some(id), h))?
            {
                return Ok(Moved::Blocked);
            }
        }
        let thread = self.thread(agent)?;
        if let Some(clock) = thread.fill.get_mut(ring) {
            *clock += 1;
        }
        if staging {
            thread.taken.insert((ring, time));
        }
        self.set(agent, &op.results, [token(s)])?;
        Ok(Moved::On)
    }

    fn claim(&mut self, agent: usize, op: &Op, pipe: Pipe) -> Res<()> {
        let ring = pipe.index();
        let time = self.look(agent)?.read.get(ring).map_or(0, |r| r.claimed);
        self.check_time(agent, op, (ring, time))?;
        let s = self.slot_of(agent, ring, time)?;
        if let Some(reader) = self.thread(agent)?.read.get_mut(ring) {
            reader.claimed += 1;
        }
        self.set(agent, &op.results, [token(s)])
    }

    fn wait_ready(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<Moved> {
        let s = self.slot(agent, op, 0)?;
        let (ready, _) = self.barriers(s)?;
        let parity = (s.time / self.ring(s.ring)?.slots) & 1 == 1;
        if !self
            .engine
            .wait_phase(Agent::new(agent), ready, parity, &mut &mut *obs)
            .map_err(|h| self.fault(agent, Some(id), h))?
        {
            return Ok(Moved::Blocked);
        }
        self.set(agent, &op.results, [token(s)])?;
        Ok(Moved::On)
    }

    /// Starts the copies of a fill: those of the operation, or of one of its alternatives.
    fn produce(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        (bytes, proxy, skipped): (u32, Proxy, Option<Fill>),
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let s = self.slot(agent, op, 0)?;
        let mut sources = &op.args[1.min(op.args.len())..];
        let mut copied = true;
        if skipped.is_some() {
            let condition = self.int(agent, op, op.args.len() - 1)?;
            (copied, sources) = (condition != 0, &sources[..sources.len() - 1]);
        }
        if !copied && skipped == Some(Fill::Poison) {
            return self.poisoned(agent, id, op, obs);
        }
        let named = |v| match self.val(agent, v) {
            Val::Source(source) if copied => Some(source),
            _ => None,
        };
        let sources: Vec<Option<Rc<Source>>> = sources.iter().map(|v| named(*v)).collect();
        self.copies(agent, id, s, (proxy, bytes.into(), sources), obs)
    }

    /// Starts the copies of a stage; without a source, zeros.
    fn copies(
        &mut self,
        agent: usize,
        id: OpId,
        s: Slot,
        (proxy, bytes, sources): (Proxy, u64, Vec<Option<Rc<Source>>>),
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let (ready, _) = self.barriers(s)?;
        let fields = self.ring(s.ring)?.fields.clone();
        self.fits(s, &fields, &sources, bytes)?;
        self.hold(s, Holds::Stage(s.time));
        let bulk = proxy != Proxy::Generic;
        if bulk {
            self.fence(agent, id, TO_ASYNC, obs)?;
            let announced = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.engine
                .arrive(Agent::new(agent), ready, 1, announced, &mut &mut *obs)
                .map_err(|h| self.fault(agent, Some(id), h))?;
        }
        let class = if bulk { BULK_LOAD } else { RING_COPY };
        let mut started = Vec::new();
        for (source, (offset, len)) in sources.into_iter().zip(fields) {
            let (address, cta) = (s.base + offset, s.cta);
            let signals = if bulk {
                vec![Signal::Bytes { barrier: ready, bytes: u32::try_from(len).unwrap_or(u32::MAX) }]
            } else {
                Vec::new()
            };
            let mut touches = vec![shared(cta, address, address + len, true)];
            let written = |src: &Rc<Source>| {
                self.store.setup.tensors.get(src.view.param).and_then(Option::as_ref).is_some_and(|t| t.bytes.is_none())
            };
            touches.extend(
                source.iter().filter(|src| written(src)).map(|src| tensor(&src.view, None, None, false, false)),
            );
            let work = Work { op: id, time: Some(s.time), touches, effect: Effect::Copy { cta, address, len, source } };
            started.push(self.start(agent, class, (Vec::new(), signals), work, obs)?);
        }
        if !bulk {
            let work = Work { op: id, time: Some(s.time), touches: Vec::new(), effect: Effect::None };
            self.start(agent, class, (started, vec![Signal::Arrive { barrier: ready }]), work, obs)?;
        }
        Ok(())
    }

    /// Checks that sources, fields and expected bytes agree.
    fn fits(&self, s: Slot, fields: &[(u64, u64)], sources: &[Option<Rc<Source>>], bytes: u64) -> Res<()> {
        let name = self.kernel().pipe_name(Pipe::new(s.ring));
        if sources.len() != fields.len() {
            return Err(Found::new(
                Kind::Bounds,
                format!("a stage of `{name}` has {} tiles, and {} are copied", fields.len(), sources.len()),
            ));
        }
        for (source, (_, len)) in sources.iter().zip(fields) {
            let n = source.as_ref().map_or(*len, |src| src.view.elem.bytes_for(src.shape.len()) as u64);
            if n != *len {
                return Err(Found::new(
                    Kind::Bounds,
                    format!("a tile of {n} bytes is copied into a field of {len} bytes of `{name}`"),
                ));
            }
        }
        let all: u64 = fields.iter().map(|f| f.1).sum();
        if all == bytes {
            Ok(())
        } else {
            Err(Found::new(
                Kind::Bytes,
                format!("{bytes} bytes are expected for a stage of `{name}`, but {all} are copied"),
            ))
        }
    }

    fn poisoned(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let s = self.slot(agent, op, 0)?;
        let (ready, _) = self.barriers(s)?;
        self.hold(s, Holds::Poison(s.time));
        for (offset, len) in self.ring(s.ring)?.fields.clone() {
            let Machine { engine, store, .. } = self;
            store.poison(engine, s.cta, s.base + offset, s.base + offset + len)?;
        }
        self.engine.arrive(Agent::new(agent), ready, 1, 0, &mut &mut *obs).map_err(|h| self.fault(agent, Some(id), h))
    }

    fn join(&mut self, agent: usize, op: &Op) -> Res<()> {
        let first = self.slot(agent, op, 0)?;
        for i in 1..op.args.len() {
            let other = self.slot(agent, op, i)?;
            if (other.ring, other.time) != (first.ring, first.time) {
                return Err(Found::new(
                    Kind::Token,
                    format!("parts of times {} and {} are joined", first.time, other.time),
                ));
            }
        }
        if op.args.iter().enumerate().any(|(i, v)| op.args[..i].contains(v)) {
            return Err(Found::new(Kind::Token, "a part of a read permission is joined twice"));
        }
        let parts = self.thread(agent)?.parts.remove(&(first.ring, first.time)).map_or(0, usize::from);
        if parts != op.args.len() {
            return Err(Found::new(
                Kind::Token,
                format!("{} of {parts} parts of a read permission are joined", op.args.len()),
            ));
        }
        self.set(agent, &op.results, [token(first)])
    }

    /// Releases the stage of a slot.
    pub(super) fn release(&mut self, agent: usize, id: OpId, s: Slot, obs: Obs<'_, '_>) -> Res<()> {
        let name = self.kernel().pipe_name(Pipe::new(s.ring));
        let stride = self.ring(s.ring)?.stride;
        let whole = shared(s.cta, s.base, s.base + stride, true);
        let mine = self.engine.pending().iter().find(|(_, o)| {
            o.agent.index() == agent && o.payload.touches.iter().any(|t| !t.write && t.span.overlaps(&whole.span))
        });
        if let Some((_, reading)) = mine {
            let mut side = self.side(agent, reading.payload.op, reading.payload.touches.first(), reading.payload.time);
            side.helper = true;
            let found = Found::new(
                Kind::Race,
                format!("time {} of `{name}` is released while an asynchronous operation still reads it", s.time),
            );
            return Err(found.side(self.side(agent, id, Some(&whole), Some(s.time))).side(side));
        }
        let new = self.thread(agent)?.read.get_mut(s.ring).is_some_and(|r| r.release(s.time));
        if !new {
            return Err(Found::new(Kind::Token, format!("time {} of `{name}` is released twice", s.time)));
        }
        let (_, free) = self.barriers(s)?;
        self.engine.arrive(Agent::new(agent), free, 1, 0, &mut &mut *obs).map_err(|h| self.fault(agent, Some(id), h))
    }

    /// Reports a fence between proxies.
    pub(super) fn fence(
        &self,
        agent: usize,
        id: OpId,
        (from, to, scope, space): (Proxy, Proxy, Scope, FenceSpace),
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let proxy = |p| match p {
            Proxy::Generic => engine::Proxy::Generic,
            Proxy::Async => engine::Proxy::Async,
            Proxy::Tensormap => engine::Proxy::TensorMap,
        };
        let scope = match scope {
            Scope::Cta => engine::Scope::Cta,
            Scope::Cluster => engine::Scope::Cluster,
            Scope::Gpu => engine::Scope::Device,
        };
        let space = match space {
            FenceSpace::All => engine::FenceSpace::All,
            FenceSpace::Shared => engine::FenceSpace::Shared,
            FenceSpace::Global => engine::FenceSpace::Global,
        };
        let place = Place::new(id.index());
        self.tell(
            obs,
            &Event::Fence { agent: Agent::new(agent), from: proxy(from), to: proxy(to), scope, space, place },
        )
    }
}

pub(super) fn token(s: Slot) -> Val {
    Val::Token { pipe: index(s.ring), time: s.time }
}

pub(super) fn misused(what: &str) -> Box<Found> {
    Found::new(Kind::Token, format!("{what} is used that does not exist: it was consumed before, or never created"))
}
