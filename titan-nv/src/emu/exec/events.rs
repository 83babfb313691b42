//! Reports accesses to shared memory to the observers, and describes the races that they find. Deliberately
//! absent: the bytes themselves, which `access` moves.

use super::access::At;
use super::{Fail, Run, Who, World};
use crate::emu::cluster::{Cluster, in_block, split};
use crate::emu::error::ErrorCode;
use crate::emu::mma::Lanes;
use crate::emu::ty::Space;
use crate::emu::warp::lanes_of;
use titan_sim::engine::race::Races;
use titan_sim::engine::{Access, AccessKind, Event, Helper, Observer as _, Place, Proxy, Stop, Strength};

/// The kind of an access to shared memory, and its origin.
#[derive(Clone, Copy)]
pub(super) struct How {
    kind: AccessKind,
    strength: Strength,
    helper: Option<Helper>,
    /// Whether it is an operation on the barrier that occupies these bytes.
    of_barrier: bool,
}

impl How {
    /// An access of the thread itself.
    pub(super) const fn own(kind: AccessKind, strength: Strength) -> How {
        How { kind, strength, helper: None, of_barrier: false }
    }

    /// An access by an operation on the barrier that occupies these bytes.
    pub(super) const fn barrier(kind: AccessKind, strength: Strength) -> How {
        How { kind, strength, helper: None, of_barrier: true }
    }

    /// An access of an asynchronous copy that counts as an ordinary store.
    pub(super) const fn copy(helper: Helper) -> How {
        How { kind: AccessKind::Write, strength: Strength::Weak, helper: Some(helper), of_barrier: false }
    }
}

impl Cluster<'_> {
    /// Reports an access to shared memory to the observers, which may find a race.
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

    /// Reports plain reads of the block's shared memory by the threads of a warp. Those of the same bytes are reported as one where the race
    /// detector can tell that none of them is a race.
    pub(super) fn tell_together(&mut self, who: Who, addresses: &Lanes, len: u32, world: &mut World<'_>) -> Run<()> {
        let rank = u64::from(self.warps[who.warp].rank);
        let mut left = who.active;
        // This ends: each round takes at least one thread out.
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let alike = lanes_of(left)
                .filter(|other| addresses[*other] == addresses[lane])
                .fold(0, |all, lane| all | 1 << lane);
            left &= !alike;
            let at = |lane| At { lane, space: Space::Shared, address: in_block(rank, addresses[lane]) };
            let (space, address) = split(at(lane).address);
            let access = Access {
                agent: self.agent(who.warp, lane),
                place: Place::new(who.pc as usize),
                space,
                address,
                len,
                kind: AccessKind::Read,
                proxy: Proxy::Generic,
                strength: Strength::Weak,
                unchanged: false,
                helper: None,
                tag: 0,
            };
            let first = self.agent(who.warp, 0);
            if world.watch.races.as_mut().is_none_or(|races| races.read_together((first, alike), &access)) {
                continue;
            }
            for lane in lanes_of(alike) {
                self.tell(who, at(lane), len, How::own(AccessKind::Read, Strength::Weak), world)?;
            }
        }
        Ok(())
    }

    /// Reports a thread's own write, and whether it leaves the bytes as they are.
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

    /// Checks that a range of shared memory lies within one variable.
    pub(super) fn inside(&self, address: u64, bytes: u32) -> Run<()> {
        let Some((space, at)) = self.shared(address) else { return Ok(()) };
        space.check(at, bytes as usize).map(drop).map_err(|f| Fail::of(space, &f))
    }

    /// Reports an access of a thread's operation to shared memory through the asynchronous proxy. It, too, must not touch
    /// the bytes of barriers.
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

    /// The error because of which an observer stopped the run at an access.
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

    /// Checks that an ordinary access does not touch live barriers.
    pub(super) fn spare_barriers(&self, at: At, len: u64) -> Run<()> {
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
}
