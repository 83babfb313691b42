//! Loads, stores and atomics of all spaces.

use super::events::How;
use super::{Fail, Run, Step, Who, World, misplaced};
use crate::emu::cluster::{Cluster, in_block, rank_of, split};
use crate::emu::error::ErrorCode;
use crate::emu::lane::int;
use crate::emu::memory::from_generic;
use crate::emu::mma::Lanes;
use crate::emu::op::{Addr, AtomFn, Dst, Element, Op, Order, Src};
use crate::emu::touched::Touch;
use crate::emu::ty::Space;
use crate::emu::warp::lanes_of;
use titan_sim::engine::{AccessKind, Agent, Event, Observer as _, Space as Bytes, SpaceId, Strength};

/// The space in which accesses to global memory are reported; the observers do not check it for races.
pub(super) const GLOBAL: usize = 1 << 16;

/// The address of an access of one thread.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) lane: usize,
    pub(super) space: Space,
    pub(super) address: u64,
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
                // A generic address may refer to any block of the cluster.
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

    /// Reads bytes; returns whether all of them are defined.
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
            self.note_store(thread, at, bytes.len(), world)?;
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
        if !order.strong
            && addr.space == Space::Shared
            && self.load_together(who, &addresses, element, &mut out[..dsts.len()], world)?
        {
            for (dst, values) in dsts.iter().zip(&out) {
                self.warps[who.warp].set_reg(*dst, who.active, values, u32::MAX);
            }
            return Ok(());
        }
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
                values[lane] = value_of(part, element);
            }
        }
        for (dst, values) in dsts.iter().zip(&out) {
            self.warps[who.warp].set_reg(*dst, who.active, values, ok);
        }
        Ok(())
    }

    /// Loads from the shared memory of the block, for all threads of a warp at once. Returns false if nothing was loaded: where a thread's access is
    /// no plain read of defined bytes of one variable, each is executed by itself, and says what is wrong with it.
    fn load_together(
        &mut self,
        who: Who,
        addresses: &Lanes,
        element: Element,
        out: &mut [Lanes],
        world: &mut World<'_>,
    ) -> Run<bool> {
        let size = element.bytes as usize;
        let total = size * out.len();
        let active = || lanes_of(who.active).map(|lane| addresses[lane]);
        let (Some(first), Some(last)) = (active().min(), active().max()) else { return Ok(true) };
        let end = last.saturating_add(total as u64);
        let aligned = active().all(|address| address.is_multiple_of(total as u64));
        let own = u64::from(self.warps[who.warp].rank);
        let space = SpaceId::new(self.warps[who.warp].rank as usize);
        if !aligned || world.watch.sanitizer.is_some() || rank_of(end) != 0 {
            return Ok(false);
        }
        let near = in_block(own, first.saturating_sub(7))..in_block(own, end);
        let len = usize::try_from(end - first).unwrap_or(usize::MAX);
        let bytes = self.engine.space(space).and_then(|space| space.defined(first, len));
        let (Some(bytes), None) = (bytes, self.barriers.range(near).next()) else { return Ok(false) };
        for lane in lanes_of(who.active) {
            let at = usize::try_from(addresses[lane] - first).unwrap_or(usize::MAX);
            for (values, part) in out.iter_mut().zip(bytes[at..at + total].chunks_exact(size)) {
                values[lane] = value_of(part, element);
            }
        }
        self.tell_together(who, addresses, u32::try_from(total).unwrap_or(0), world)?;
        Ok(true)
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

    /// The error of a call of a function that the module does not define.
    pub(super) fn external(&mut self, who: Who, name: &str, args: &[Addr], world: &mut World<'_>) -> Fail {
        let ("__assertfail", [message, file, line, function, _]) = (name, args) else {
            let message = format!("`{name}` is defined elsewhere, and modules are not linked");
            return Fail::new(ErrorCode::Unknown, message);
        };
        let lane = who.active.trailing_zeros() as usize & 31;
        let mut text = |addr| self.text(who, lane, addr, world).unwrap_or_else(|| "?".to_owned());
        let (message, file, function) = (text(message), text(file), text(function));
        let line = self.argument::<4>(who, lane, line, world).map_or(0, u32::from_le_bytes);
        Fail::new(ErrorCode::Trap, format!("the assertion `{message}` in `{function}` failed at {file}:{line}"))
            .lane(lane)
    }

    /// The bytes of an argument of a call.
    fn argument<const N: usize>(
        &mut self,
        who: Who,
        lane: usize,
        addr: &Addr,
        world: &mut World<'_>,
    ) -> Option<[u8; N]> {
        let address = self.addresses(who, addr).ok()?[lane];
        let at = self.at(who, lane, addr, address, 1).ok()?;
        let mut bytes = [0; N];
        self.read(who, at, &mut bytes, world).ok().filter(|defined| *defined).map(|_| bytes)
    }

    /// The text to which an argument of a call points, if there is one.
    fn text(&mut self, who: Who, lane: usize, addr: &Addr, world: &mut World<'_>) -> Option<String> {
        /// As much of a text is shown.
        const MOST: u64 = 200;
        let start = u64::from_le_bytes(self.argument(who, lane, addr, world)?);
        let generic = Addr { base: Src::Imm(0), offset: 0, space: Space::Generic, narrow: false };
        let mut text = Vec::new();
        for address in (0..MOST).map(|i| start.wrapping_add(i)) {
            let at = self.at(who, lane, &generic, address, 1).ok()?;
            let mut byte = [0];
            self.read(who, at, &mut byte, world).ok().filter(|defined| *defined)?;
            if byte == [0] {
                break;
            }
            text.extend(byte);
        }
        Some(String::from_utf8_lossy(&text).into_owned())
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

    /// Handles what a read acquires, now or by a later fence; returns whether the read may be the poll of a loop.
    fn order_read(&mut self, who: Who, addr: &Addr, order: Order, world: &mut World<'_>) -> Run<bool> {
        if !order.strong {
            return Ok(false);
        }
        let addresses = self.addresses(who, addr)?;
        for lane in lanes_of(who.active) {
            let agent = self.agent(who.warp, lane);
            let (space, address) = self.word(who, lane, addr, addresses[lane])?;
            world.watch.event(&if order.acquire {
                Event::Acquire { agent, space, address }
            } else {
                Event::Forward { from: (space, address), to: observed(agent) }
            })?;
        }
        Ok(true)
    }

    /// Handles what a write releases, by itself or by an earlier fence. A store ends what was released through the word before.
    fn order_write(&mut self, who: Who, addr: &Addr, order: Order, stores: bool, world: &mut World<'_>) -> Run<()> {
        if !order.strong {
            return Ok(());
        }
        let addresses = self.addresses(who, addr)?;
        for lane in lanes_of(who.active) {
            let agent = self.agent(who.warp, lane);
            let (space, address) = self.word(who, lane, addr, addresses[lane])?;
            if stores {
                world.watch.event(&Event::Overwrite { space, address })?;
            }
            world.watch.event(&if order.release {
                Event::Release { agent, space, address }
            } else {
                Event::Forward { from: fence_of(agent), to: (space, address) }
            })?;
        }
        Ok(())
    }

    /// The word that an access orders: one of the shared memory of a block, or of global memory.
    fn word(&self, who: Who, lane: usize, addr: &Addr, address: u64) -> Run<(SpaceId, u64)> {
        let at = self.at(who, lane, addr, address, 1)?;
        Ok(match at.space {
            Space::Shared => split(at.address),
            Space::Global | Space::Const | Space::Generic | Space::Cluster | Space::Local | Space::Param => {
                (SpaceId::new(GLOBAL), at.address)
            }
        })
    }
}

/// The bits of a register with an element that was loaded.
fn value_of(part: &[u8], element: Element) -> u64 {
    let mut word = [0; 8];
    word[..part.len()].copy_from_slice(part);
    let value = u64::from_le_bytes(word);
    match element.sign_to {
        None => value,
        Some(bits) => int::signed(value, element.bytes * 8).cast_unsigned() & int::mask(bits),
    }
}

/// The words that stand for the fences of threads.
const FENCES: usize = GLOBAL + 1;

/// The word through which a thread's last fence releases what came before it; its later relaxed writes release no more than that.
pub(super) fn fence_of(agent: Agent) -> (SpaceId, u64) {
    (SpaceId::new(FENCES), 2 * agent.index() as u64)
}

/// The word that carries what the relaxed reads of a thread have observed; its next fence acquires it.
pub(super) fn observed(agent: Agent) -> (SpaceId, u64) {
    (SpaceId::new(FENCES), 2 * agent.index() as u64 + 1)
}

/// Records an access to global memory.
fn touch(at: At, how: Touch, bytes: u32, world: &mut World<'_>) {
    if matches!(at.space, Space::Global | Space::Const | Space::Generic) {
        world.memory.touch(how, at.address, bytes);
    }
}
