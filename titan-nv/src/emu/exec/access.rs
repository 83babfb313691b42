//! Loads, stores and atomics of all spaces.

use super::{Fail, Run, Step, Who, World, misplaced};
use crate::emu::cluster::{Cluster, split};
use crate::emu::error::ErrorCode;
use crate::emu::lane::int;
use crate::emu::memory::from_generic;
use crate::emu::mma::Lanes;
use crate::emu::op::{Addr, AtomFn, Dst, Element, Op, Order, Src};
use crate::emu::touched::Touch;
use crate::emu::ty::Space;
use crate::emu::warp::lanes_of;
use titan_sim::engine::race::Races;
use titan_sim::engine::{
    Access, AccessKind, Event, Helper, Observer as _, Place, Proxy, Space as Bytes, SpaceId, Stop, Strength,
};

/// The space of the events of global memory, in which nobody looks for races.
pub(super) const GLOBAL: usize = 1 << 16;

/// An address of one thread.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) lane: usize,
    pub(super) space: Space,
    pub(super) address: u64,
}

/// What an access to shared memory does, and by whom.
#[derive(Clone, Copy)]
pub(super) struct How {
    kind: AccessKind,
    strength: Strength,
    helper: Option<Helper>,
    /// Whether it is the barrier's own use of its bytes.
    of_barrier: bool,
}

impl How {
    /// By the thread itself.
    pub(super) const fn own(kind: AccessKind, strength: Strength) -> How {
        How { kind, strength, helper: None, of_barrier: false }
    }

    /// By an instruction on the barrier that these bytes are.
    pub(super) const fn barrier(kind: AccessKind, strength: Strength) -> How {
        How { kind, strength, helper: None, of_barrier: true }
    }

    /// By an asynchronous copy that counts as an ordinary store.
    pub(super) const fn copy(helper: Helper) -> How {
        How { kind: AccessKind::Write, strength: Strength::Weak, helper: Some(helper), of_barrier: false }
    }
}

impl Cluster<'_> {
    pub(super) fn access(&mut self, who: Who, op: &Op, world: &mut World<'_>) -> Run<Step> {
        match op {
            Op::Load { dsts, addr, element, order } => {
                self.load(who, dsts, addr, (*element, *order), world)?;
                let polls = self.order_read(who, addr, *order, world)?;
                return Ok(if polls { Step::Poll } else { Step::Next });
            }
            Op::Store { srcs, addr, element, order } => {
                self.order_write(who, addr, *order, true, world)?;
                self.store(who, srcs, addr, (*element, *order), world)?;
            }
            Op::Atomic { f, dsts, addr, srcs, second, bytes, order } => {
                self.order_write(who, addr, *order, false, world)?;
                let changed = self.atomic(who, *f, dsts, addr, (srcs, *second, *bytes), world)?;
                self.order_read(who, addr, *order, world)?;
                return Ok(if changed { Step::Next } else { Step::Poll });
            }
            _ => return Err(misplaced()),
        }
        Ok(Step::Next)
    }

    /// The address of each active thread.
    pub(super) fn addresses(&self, who: Who, addr: &Addr) -> Run<Lanes> {
        let base = self.need(who, addr.base)?;
        Ok(base.map(|b| {
            let sum = b.wrapping_add_signed(addr.offset);
            if addr.narrow { sum & 0xFFFF_FFFF } else { sum }
        }))
    }

    pub(super) fn at(&self, who: Who, lane: usize, addr: &Addr, address: u64, bytes: u32) -> Run<At> {
        let (space, address) = match addr.space {
            Space::Generic => match from_generic(address) {
                // A generic address may be of any block of the cluster.
                (Space::Shared, address) => (Space::Cluster, address),
                other => other,
            },
            Space::Const => (Space::Global, address),
            space => (space, address),
        };
        if address % u64::from(bytes) != 0 {
            let message =
                format!("{bytes} bytes at {address:#x} of {} memory: not a multiple of {bytes}", space.name());
            return Err(Fail::new(ErrorCode::Misaligned, message).lane(lane));
        }
        match space {
            Space::Shared | Space::Cluster => {
                let address = self.ranked(who, address, space == Space::Cluster).map_err(|f| f.lane(lane))?;
                Ok(At { lane, space: Space::Shared, address })
            }
            _ => Ok(At { lane, space, address }),
        }
    }

    /// Tells the observer of an access to shared memory, which may be a race.
    pub(super) fn tell(&mut self, who: Who, at: At, len: u32, how: How, world: &mut World<'_>) -> Run<()> {
        let How { kind, strength, helper, of_barrier } = how;
        let access = Access {
            agent: self.agent(who.warp, at.lane),
            place: Place::new(who.pc as usize),
            space: split(at.address).0,
            address: split(at.address).1,
            len,
            kind,
            proxy: Proxy::Generic,
            strength,
            unchanged: false,
            helper,
            tag: 0,
        };
        if of_barrier {
            world.watch.at(&[access.agent], who.pc)?;
            let told = world.watch.races.event(&Event::Access(access));
            return told.map_err(|_| self.stopped(world).lane(at.lane));
        }
        self.tell_access(&access, at.lane, world)
    }

    /// Tells of a thread's own write, which may leave the bytes as they are.
    pub(super) fn tell_write(
        &mut self,
        who: Who,
        at: At,
        bytes: &[u8],
        strength: Strength,
        world: &mut World<'_>,
    ) -> Run<()> {
        if world.watch.is_off() {
            return Ok(());
        }
        let mut old = [0; 32];
        let old = &mut old[..bytes.len()];
        let there = self.shared(at.address).is_some_and(|(s, at)| s.read_any(at, old) == Ok(true));
        let access = Access {
            agent: self.agent(who.warp, at.lane),
            place: Place::new(who.pc as usize),
            space: split(at.address).0,
            address: split(at.address).1,
            len: u32::try_from(bytes.len()).unwrap_or(0),
            kind: AccessKind::Write,
            proxy: Proxy::Generic,
            strength,
            unchanged: there && old == bytes,
            helper: None,
            tag: 0,
        };
        self.tell_access(&access, at.lane, world)
    }

    fn tell_access(&self, access: &Access, lane: usize, world: &mut World<'_>) -> Run<()> {
        world.watch.event(&Event::Access(*access)).map_err(|_| self.stopped(world).lane(lane))
    }

    /// That a range of shared memory belongs to one variable.
    pub(super) fn inside(&self, address: u64, bytes: u32) -> Run<()> {
        let Some((space, at)) = self.shared(address) else { return Ok(()) };
        space.check(at, bytes as usize).map(drop).map_err(|f| Fail::of(space, &f))
    }

    /// Tells that an operation of a thread accesses a range of shared memory by the asynchronous proxy. It must leave barriers
    /// alone too.
    pub(super) fn tell_async(
        &self,
        who: Who,
        (lane, helper): (usize, Helper),
        (address, len): (u64, u32),
        kind: AccessKind,
        world: &mut World<'_>,
    ) -> Run<()> {
        self.spare_barriers(At { lane, space: Space::Shared, address }, len.into())?;
        let (space, address) = split(address);
        let access = Access {
            agent: self.agent(who.warp, lane),
            place: Place::new(who.pc as usize),
            space,
            address,
            len,
            kind,
            proxy: Proxy::Async,
            strength: Strength::Weak,
            unchanged: false,
            helper: Some(helper),
            tag: 0,
        };
        self.tell_access(&access, lane, world)
    }

    /// Why an access has stopped the run.
    fn stopped(&self, world: &World<'_>) -> Fail {
        match &world.watch.races {
            Some(races) if races.found().is_some() => self.race(races),
            Some(_) | None => Fail::from(Stop),
        }
    }

    fn race(&self, races: &Races) -> Fail {
        let Some(race) = races.found() else { return Fail::new(ErrorCode::Race, "a race") };
        let name = self.engine.space(race.space).and_then(|s| {
            let (name, base, _) = s.check(race.address, 1).ok().and_then(|id| s.describe(id))?;
            Some(format!("byte {} of `{name}`", race.address - base))
        });
        let name = name.unwrap_or_else(|| format!("byte {:#x}", race.address));
        let what = |kind, helper: bool| match (kind, helper) {
            (AccessKind::Read, false) => "a read",
            (AccessKind::Read, true) => "an asynchronous read",
            (_, false) => "a write",
            (_, true) => "an asynchronous copy",
        };
        let (first, second) = (race.first, race.second);
        let message = format!(
            "{} of {name} in shared memory, not ordered after {} of it",
            what(second.kind, second.helper.is_some()),
            what(first.kind, first.helper.is_some()),
        );
        let mut fail = Fail::new(ErrorCode::Race, message);
        let pc = u32::try_from(first.place.index()).unwrap_or(0);
        fail.other = Some((pc, first.agent, what(first.kind, first.helper.is_some())));
        let copies = first.helper.is_some() || second.helper.is_some();
        fail.help(if copies {
            "a copy is over for its thread after `cp.async.wait_group`, and for others after a barrier that follows it"
        } else {
            "order them by `bar.sync`, within a warp by `bar.warp.sync`, or by an mbarrier"
        })
    }

    /// An ordinary access must leave live barriers alone.
    fn spare_barriers(&self, at: At, len: u64) -> Run<()> {
        if self.barriers.is_empty() || at.space != Space::Shared {
            return Ok(());
        }
        let near = self.barriers.range(at.address.saturating_sub(7)..at.address + len);
        let live = near.filter(|(_, b)| self.engine.barrier(**b).is_some_and(titan_sim::engine::PhaseBarrier::is_live));
        match live.max_by_key(|(a, _)| **a) {
            None => Ok(()),
            Some((address, _)) => {
                let message = format!(
                    "an ordinary access to {}, which is in use",
                    self.barrier_name(*self.barriers.get(address).unwrap_or(&self.barrier))
                );
                Err(Fail::new(ErrorCode::Barrier, message).lane(at.lane))
            }
        }
    }

    fn local(&mut self, thread: usize) -> &mut Bytes {
        let program = self.env.program;
        self.local.entry(thread).or_insert_with(|| {
            let mut space = Bytes::new("local");
            for (name, at, size) in &program.local {
                space.allocate(name.as_str(), u64::from(*at), *size as usize);
            }
            space
        })
    }

    /// Reads bytes; whether all are defined.
    pub(super) fn read(&mut self, who: Who, at: At, out: &mut [u8], world: &mut World<'_>) -> Run<bool> {
        let strict = self.env.options.strict();
        let from = |(space, address): (&Bytes, u64), out: &mut [u8]| {
            let done = if strict { space.read(address, out).map(|()| true) } else { space.read_any(address, out) };
            done.map_err(|f| Fail::of(space, &f).lane(at.lane))
        };
        match at.space {
            Space::Shared => {
                self.spare_barriers(at, out.len() as u64)?;
                let done = self.shared(at.address).map_or(Ok(false), |s| from(s, out));
                done.map_err(|f| match f.code {
                    ErrorCode::Uninitialised => {
                        f.help("if another thread writes it, nothing makes this one wait for that")
                    }
                    _ => f,
                })
            }
            Space::Local => {
                let thread = self.agent(who.warp, at.lane).index();
                from((self.local(thread), at.address), out)
            }
            Space::Param => {
                let start = usize::try_from(at.address).unwrap_or(usize::MAX);
                let bytes = start.checked_add(out.len()).and_then(|end| self.env.params.get(start..end));
                let Some(bytes) = bytes else {
                    let message = format!(
                        "{} bytes at {start} of the parameters, which are {}",
                        out.len(),
                        self.env.params.len()
                    );
                    return Err(Fail::new(ErrorCode::OutOfBounds, message).lane(at.lane));
                };
                out.copy_from_slice(bytes);
                Ok(true)
            }
            Space::Global | Space::Const | Space::Generic | Space::Cluster => {
                from((&world.memory.space, at.address), out)
            }
        }
    }

    /// Writes bytes; undefined ones become undefined in memory.
    pub(super) fn write(&mut self, who: Who, at: At, bytes: &[u8], defined: bool, world: &mut World<'_>) -> Run<()> {
        self.progress += 1;
        let thread = self.agent(who.warp, at.lane).index();
        self.spare_barriers(at, bytes.len() as u64)?;
        if self.env.program.has_async_proxy {
            self.note_store(thread, at, bytes.len(), world);
        }
        let (number, address) = split(at.address);
        let space = match at.space {
            Space::Shared => self.engine.space_mut(number).map(|s| (s, address)),
            Space::Local => Some((self.local(thread), at.address)),
            Space::Param => None,
            Space::Global | Space::Const | Space::Generic | Space::Cluster => {
                Some((&mut world.memory.space, at.address))
            }
        };
        let Some((space, address)) = space else {
            return Err(Fail::new(ErrorCode::Permission, "parameters cannot be written").lane(at.lane));
        };
        let done = if defined { space.write(address, bytes) } else { space.poison_range(address, bytes.len()) };
        done.map_err(|f| Fail::of(space, &f).lane(at.lane))
    }

    fn load(
        &mut self,
        who: Who,
        dsts: &[Dst],
        addr: &Addr,
        (element, order): (Element, Order),
        world: &mut World<'_>,
    ) -> Run<()> {
        let addresses = self.addresses(who, addr)?;
        let size = element.bytes as usize;
        let total = element.bytes * u32::try_from(dsts.len()).unwrap_or(1);
        let strength = if order.strong { Strength::Strong } else { Strength::Weak };
        let mut out = [[0_u64; 32]; 8];
        let mut ok = 0;
        for lane in lanes_of(who.active) {
            let at = self.at(who, lane, addr, addresses[lane], total)?;
            let mut bytes = [0; 32];
            let bytes = &mut bytes[..total as usize];
            if at.space == Space::Shared {
                self.tell(who, at, total, How::own(AccessKind::Read, strength), world)?;
            }
            touch(at, if order.strong { Touch::Strong } else { Touch::Read }, total, world);
            let defined = self.read(who, at, bytes, world)?;
            ok |= u32::from(defined) << lane;
            for (values, part) in out.iter_mut().zip(bytes.chunks_exact(size)) {
                let mut word = [0; 8];
                word[..size].copy_from_slice(part);
                let value = u64::from_le_bytes(word);
                values[lane] = match element.sign_to {
                    None => value,
                    Some(bits) => int::signed(value, element.bytes * 8).cast_unsigned() & int::mask(bits),
                };
            }
        }
        for (dst, values) in dsts.iter().zip(&out) {
            self.warps[who.warp].set_reg(*dst, who.active, values, ok);
        }
        Ok(())
    }

    fn store(
        &mut self,
        who: Who,
        srcs: &[Src],
        addr: &Addr,
        (element, order): (Element, Order),
        world: &mut World<'_>,
    ) -> Run<()> {
        let addresses = self.addresses(who, addr)?;
        let size = element.bytes as usize;
        let total = element.bytes * u32::try_from(srcs.len()).unwrap_or(1);
        let values: Vec<(Lanes, u32)> = srcs.iter().map(|s| self.lanes(who.warp, *s)).collect();
        let ok = values.iter().fold(u32::MAX, |m, v| m & v.1);
        self.strict(who, ok, srcs)?;
        let strength = if order.strong { Strength::Strong } else { Strength::Weak };
        for lane in lanes_of(who.active) {
            let at = self.at(who, lane, addr, addresses[lane], total)?;
            let mut bytes = [0; 32];
            for (part, (value, _)) in bytes.chunks_exact_mut(size).zip(&values) {
                part.copy_from_slice(&value[lane].to_le_bytes()[..size]);
            }
            if at.space == Space::Shared {
                self.tell_write(who, at, &bytes[..total as usize], strength, world)?;
            }
            touch(at, if order.strong { Touch::Strong } else { Touch::Write }, total, world);
            self.write(who, at, &bytes[..total as usize], ok >> lane & 1 == 1, world)?;
        }
        Ok(())
    }

    /// Whether anything changed.
    #[expect(clippy::too_many_arguments, reason = "what an atomic operation is")]
    fn atomic(
        &mut self,
        who: Who,
        f: AtomFn,
        dsts: &[Dst],
        addr: &Addr,
        (srcs, second, size): (&[Src], Option<Src>, u32),
        world: &mut World<'_>,
    ) -> Run<bool> {
        let addresses = self.addresses(who, addr)?;
        let values = srcs.iter().map(|s| self.need(who, *s)).collect::<Run<Vec<_>>>()?;
        let second = second.map_or(Ok([0; 32]), |s| self.need(who, s))?;
        let mut old = vec![[0_u64; 32]; srcs.len()];
        let mut changed = false;
        let n = size as usize;
        for lane in lanes_of(who.active) {
            let total = size * u32::try_from(srcs.len()).unwrap_or(1);
            let at = self.at(who, lane, addr, addresses[lane], total)?;
            if at.space == Space::Shared {
                self.tell(who, at, total, How::own(AccessKind::Atomic, Strength::Strong), world)?;
            }
            touch(at, Touch::Strong, total, world);
            let mut bytes = [0; 16];
            let bytes = &mut bytes[..total as usize];
            if !self.read(who, at, bytes, world)? {
                let message = "an atomic operation on bytes that were never written";
                return Err(Fail::new(ErrorCode::Uninitialised, message).lane(lane));
            }
            let before = bytes.to_vec();
            for (i, part) in bytes.chunks_exact_mut(n).enumerate() {
                let mut word = [0; 8];
                word[..n].copy_from_slice(part);
                old[i][lane] = u64::from_le_bytes(word);
                let new = f(old[i][lane], values[i][lane], second[lane]);
                part.copy_from_slice(&new.to_le_bytes()[..n]);
            }
            if before == bytes {
                continue;
            }
            changed = true;
            self.write(who, at, bytes, true, world)?;
        }
        for (dst, values) in dsts.iter().zip(&old) {
            self.warps[who.warp].set_reg(*dst, who.active, values, u32::MAX);
        }
        Ok(changed)
    }

    /// What a read acquires, now or by a later fence; whether the read may be one of a loop that polls.
    fn order_read(&mut self, who: Who, addr: &Addr, order: Order, world: &mut World<'_>) -> Run<bool> {
        if !order.strong {
            return Ok(false);
        }
        let addresses = self.addresses(who, addr)?;
        for lane in lanes_of(who.active) {
            let agent = self.agent(who.warp, lane);
            if order.acquire {
                let event = Event::Acquire { agent, space: SpaceId::new(GLOBAL), address: addresses[lane] };
                world.watch.event(&event)?;
            } else if let Some(f) = self.fenced.get_mut(agent.index())
                && f.read.len() < 64
            {
                f.read.push(addresses[lane]);
            }
        }
        Ok(true)
    }

    /// What a write releases, by itself or by an earlier fence. A store ends what was released through the word before.
    fn order_write(&mut self, who: Who, addr: &Addr, order: Order, stores: bool, world: &mut World<'_>) -> Run<()> {
        if !order.strong {
            return Ok(());
        }
        let addresses = self.addresses(who, addr)?;
        for lane in lanes_of(who.active) {
            let agent = self.agent(who.warp, lane);
            if stores {
                world.watch.event(&Event::Overwrite { space: SpaceId::new(GLOBAL), address: addresses[lane] })?;
            }
            if order.release || self.fenced.get(agent.index()).is_some_and(|f| f.releases) {
                let event = Event::Release { agent, space: SpaceId::new(GLOBAL), address: addresses[lane] };
                world.watch.event(&event)?;
            }
        }
        Ok(())
    }
}

/// Notes a touch of global memory.
fn touch(at: At, how: Touch, bytes: u32, world: &mut World<'_>) {
    if matches!(at.space, Space::Global | Space::Const | Space::Generic) {
        world.memory.touch(how, at.address, bytes);
    }
}
