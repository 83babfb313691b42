//! Tensor maps that threads make: `tensormap.replace`, `tensormap.cp_fenceproxy`, and the fences of the tensor-map proxy.

use super::access::At;
use super::events::How;
use super::{Fail, Run, Step, Who, World, misplaced};
use crate::emu::cluster::Cluster;
use crate::emu::error::ErrorCode;
use crate::emu::maps::{MAP, MapScope, Party};
use crate::emu::op::{Addr, Op};
use crate::emu::touched::Touch;
use crate::emu::ty::Space;
use crate::emu::warp::lanes_of;
use crate::tma::Field;
use titan_sim::engine::{AccessKind, Strength};

/// The alignment of a tensor map, in bytes.
const ALIGNMENT: u32 = 64;
/// The size of a tensor map as accesses count it.
const BYTES: u32 = 128;

impl Cluster<'_> {
    pub(super) fn tensormap(&mut self, who: Who, op: &Op, world: &mut World<'_>) -> Run<Step> {
        match op {
            Op::MapReplace { addr, field, value } => {
                let (addresses, values) = (self.addresses(who, addr)?, self.need(who, *value)?);
                for lane in lanes_of(who.active) {
                    let at = self.at(who, lane, addr, addresses[lane], ALIGNMENT)?;
                    self.replace(who, at, (*field, values[lane]), world)?;
                }
            }
            Op::MapCopy { to, from, scope } => self.map_copy(who, (to, from), *scope, world)?,
            Op::MapRelease { scope } => {
                for lane in lanes_of(who.active) {
                    world.maps.release(self.party(who, lane).thread, *scope);
                }
            }
            Op::MapAcquire { addr, scope } => {
                let addresses = self.addresses(who, addr)?;
                for lane in lanes_of(who.active) {
                    let at = self.at(who, lane, addr, addresses[lane], ALIGNMENT)?;
                    self.acquire_map(who, at, *scope, world)?;
                }
            }
            _ => return Err(misplaced()),
        }
        Ok(Step::Next)
    }

    /// A thread of a warp as the parties of fences are named.
    pub(super) fn party(&self, who: Who, lane: usize) -> Party {
        self.party_of(self.agent(who.warp, lane).index())
    }

    /// The same for a thread by its index in the cluster.
    pub(super) fn party_of(&self, thread: usize) -> Party {
        let rank = thread as u64 / u64::from(self.env.threads.max(1));
        let block = self.number * self.ctas.len() as u64 + rank;
        Party { thread: self.writer(thread), block, cluster: self.number }
    }

    /// Replaces a field: one weak access that reads and writes the whole map.
    fn replace(&mut self, who: Who, at: At, (field, value): (Field, u64), world: &mut World<'_>) -> Run<()> {
        match at.space {
            Space::Shared => self.tell(who, at, BYTES, How::own(AccessKind::Write, Strength::Weak), world)?,
            Space::Global => {
                world.memory.touch(Touch::Write, at.address, BYTES);
                world.maps.change(self.party(who, at.lane).thread, at.address);
            }
            Space::Const | Space::Generic | Space::Cluster | Space::Local | Space::Param => {
                let message = "a tensor map is changed in global memory or in the block's shared memory";
                return Err(Fail::new(ErrorCode::Operand, message).lane(at.lane));
            }
        }
        let mut bytes = [0; MAP];
        if !self.read(who, at, &mut bytes, world)? {
            let message = "a field of a tensor map is replaced, and bytes of the map were never written";
            return Err(Fail::new(ErrorCode::Uninitialised, message).lane(at.lane));
        }
        field.replace(&mut bytes, value).map_err(|e| Fail::new(ErrorCode::Operand, e.to_string()).lane(at.lane))?;
        self.write(who, at, &bytes, true, world)
    }

    /// Copies a map from shared to global memory, once for the warp, and releases it. Every thread must be ordered after the writes
    /// to the source, as if each copied.
    fn map_copy(&mut self, who: Who, (to, from): (&Addr, &Addr), scope: MapScope, world: &mut World<'_>) -> Run<()> {
        self.together(who, "a copy of a tensor map")?;
        let first = who.active.trailing_zeros() as usize & 31;
        let (targets, sources) = (self.addresses(who, to)?, self.addresses(who, from)?);
        for addresses in [&targets, &sources] {
            if let Some(lane) = lanes_of(who.active).find(|l| addresses[*l] != addresses[first]) {
                let message = "the threads of a warp copy a tensor map together, and their addresses differ";
                return Err(Fail::new(ErrorCode::Divergence, message).lane(lane));
            }
        }
        let mut bytes = [0; MAP];
        let mut defined = true;
        for lane in lanes_of(who.active) {
            let source = self.at(who, lane, from, sources[lane], ALIGNMENT)?;
            self.tell(who, source, BYTES, How::own(AccessKind::Read, Strength::Weak), world)?;
            defined = self.read(who, source, &mut bytes, world)?;
        }
        let target = self.at(who, first, to, targets[first], ALIGNMENT)?;
        world.memory.touch(Touch::Write, target.address, BYTES);
        self.write(who, target, &bytes, defined, world)?;
        world.maps.release_map(self.party(who, first).thread, target.address, scope);
        Ok(())
    }

    fn acquire_map(&mut self, who: Who, at: At, scope: MapScope, world: &mut World<'_>) -> Run<()> {
        if at.space != Space::Global {
            let message = "a tensor map is acquired in global memory";
            return Err(Fail::new(ErrorCode::Operand, message).lane(at.lane));
        }
        let space = &world.memory.space;
        let (value, written) = space.extract(at.address, MAP).map_err(|f| Fail::of(space, &f).lane(at.lane))?;
        let agent = self.agent(who.warp, at.lane);
        let by = (self.party(who, at.lane), agent, world.watch.races.as_ref());
        world.maps.acquire(by, scope, at.address, (&value, &written));
        Ok(())
    }

    /// Checks that a write to global memory changes no tensor map of a copy of this cluster that is in flight: nothing says when a copy
    /// reads its map.
    pub(super) fn spare_maps(&self, at: At, len: u64) -> Run<()> {
        let uses = |map: u64| map < at.address.saturating_add(len) && at.address < map + MAP as u64;
        let user = self.engine.pending().iter().find(|(_, op)| op.payload.map.is_some_and(uses));
        let Some((_, op)) = user else { return Ok(()) };
        let map = op.payload.map.unwrap_or(at.address);
        let mut fail =
            Fail::new(ErrorCode::Race, format!("the tensor map at {map:#x} is changed, and a copy in flight uses it"));
        fail.other = Some((op.payload.place, op.agent, "a copy"));
        Err(fail
            .lane(at.lane)
            .help("the copy has ended after a wait at its mbarrier, or after `cp.async.bulk.wait_group`"))
    }

    /// The bytes of a map in global memory as a thread has acquired them.
    pub(super) fn acquired(&self, who: Who, at: At, world: &World<'_>) -> Run<[u8; MAP]> {
        let (block, agent) = (self.party(who, at.lane).block, self.agent(who.warp, at.lane));
        let Some(seen) = world.maps.seen(block, agent, world.watch.races.as_ref(), at.address) else {
            let message = format!(
                "the tensor map at {:#x} is in global memory, and this thread has not acquired it, nor has another before it",
                at.address
            );
            let fail = Fail::new(ErrorCode::Race, message).lane(at.lane);
            return Err(fail.help("`fence.proxy.tensormap::generic.acquire` on the map must come before"));
        };
        let mut bytes = [0; MAP];
        for (byte, seen) in bytes.iter_mut().zip(seen) {
            *byte = seen.ok_or_else(|| {
                let message = format!("of the tensor map at {:#x}, this thread has acquired no contents", at.address);
                let fail = Fail::new(ErrorCode::Uninitialised, message).lane(at.lane);
                fail.help("the thread that writes it must release it before the acquire, both in a scope that has both threads")
            })?;
        }
        Ok(bytes)
    }
}
