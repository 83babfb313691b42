//! The lifetime of barriers: counts, bytes, storage.
//!
//! | event | rule |
//! |---|---|
//! | init | the barrier is not live, 1 to 2²⁰ − 1 arrivals, its bytes belong to no other live barrier; writes its bytes |
//! | arrival, expected bytes | it is live; the count does not go below zero, the bytes stay in ±(2²⁰ − 1); touches its bytes |
//! | end of a phase | count and bytes are both zero; the slot of the phase before the last is forgotten |
//! | wait | it is live; touches its bytes |
//! | operation that will signal | is a read of its bytes, until the phase is waited for |
//! | invalidation | it is live, no agent waits at it, no operation will signal it; writes its bytes |
//! | ordinary access to the bytes of a live barrier | is an error |
//!
//! Counts are those of [`PhaseBarrier`], which the engine uses too: events are reported before they take effect, so that the
//! sanitizer names both sides of a misuse before the engine halts. Touching and writing are accesses like others, so a use
//! that is not ordered after the initialisation, or an invalidation that is not ordered after every use, is found by the
//! rules of visibility.
//!
//! Sources: PTX ISA, mbarrier; Triton's sanitizer: packed state with signed bytes, storage as memory (#11244).

use super::lanes::Span;
use super::publish::Slot;
use super::report::{Rule, Side};
use crate::engine::{BarrierFault, BarrierId, PhaseBarrier, SpaceId, Storage};
use std::collections::BTreeMap;

/// The state of one barrier, over its lifetime.
#[derive(Clone, Debug, Default)]
pub(super) struct Life {
    pub(super) state: PhaseBarrier,
    pub(super) storage: Option<Storage>,
    /// The slots of the current and the previous phase, by the parity of the phase.
    slots: [Option<Slot>; 2],
    /// The last initialisation or invalidation, and the last arrival: the other side of a misuse.
    pub(super) turned: Option<Side>,
    pub(super) arrived: Option<Side>,
}

/// A change of a barrier's counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) count: u32,
    pub(super) bytes: i64,
    pub(super) drops: bool,
    pub(super) relaxed: Option<(SpaceId, u64)>,
}

impl Life {
    pub(super) fn span(&self) -> Option<Span> {
        self.storage.map(|s| (s.space, s.address, s.address + u64::from(s.len)))
    }

    /// The slot of the current phase, to publish in.
    pub(super) fn slot(&mut self, open: impl FnOnce() -> Slot) -> Slot {
        *self.slots[(self.state.phase() & 1) as usize].get_or_insert_with(open)
    }

    /// The slot of the last phase when `phases` phases are complete, from which waits acquire.
    pub(super) fn complete(&self, phases: u64) -> Option<Slot> {
        phases.checked_sub(1).and_then(|last| self.slots[(last & 1) as usize])
    }

    /// The slots that are in use, with the parity of their phases.
    pub(super) fn slots(&self) -> impl Iterator<Item = (u8, Slot)> {
        [0, 1].into_iter().zip(self.slots).filter_map(|(parity, slot)| Some((parity, slot?)))
    }

    /// Applies a change. Returns the misuse, or the slot that is no longer used if a phase ended.
    pub(super) fn apply(&mut self, change: Change) -> Result<Option<Slot>, BarrierFault> {
        let b = &mut self.state;
        let before = b.phase();
        // Expected bytes are added first, so that the arrival cannot end the phase without them.
        let bytes = u32::try_from(change.bytes.unsigned_abs()).map_err(|_| BarrierFault::Bytes(change.bytes))?;
        if bytes > 0 {
            let _ended = if change.bytes > 0 { b.expect(bytes) } else { b.complete(bytes) }?;
        }
        if change.count > 0 {
            let _ended = if change.drops { b.arrive_and_drop(change.count) } else { b.arrive(change.count) }?;
        }
        let ended = b.phase() != before;
        Ok(if ended { self.slots[(self.state.phase() & 1) as usize].take() } else { None })
    }

    /// Ends the lifetime of the barrier; returns its slots, which are no longer used.
    pub(super) fn end(&mut self) -> [Option<Slot>; 2] {
        self.state = PhaseBarrier::default();
        std::mem::take(&mut self.slots)
    }
}

pub(super) const fn rule_of(fault: BarrierFault) -> Rule {
    match fault {
        BarrierFault::Count(_) => Rule::BarrierCount,
        BarrierFault::Reinitialised => Rule::BarrierReinit,
        BarrierFault::NotLive => Rule::BarrierNotLive,
        BarrierFault::ArriveUnderflow { .. } => Rule::ArriveUnderflow,
        BarrierFault::Bytes(_) => Rule::BytesOverflow,
    }
}

/// The states of all barriers.
#[derive(Clone, Debug, Default)]
pub(super) struct Lives {
    lives: BTreeMap<BarrierId, Life>,
    /// Live barriers, by the first byte of their storage.
    stored: BTreeMap<(SpaceId, u64), (u64, BarrierId)>,
}

impl Lives {
    pub(super) fn get(&mut self, barrier: BarrierId) -> &mut Life {
        self.lives.entry(barrier).or_default()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (BarrierId, &Life)> {
        self.lives.iter().map(|(b, life)| (*b, life))
    }

    pub(super) fn find(&self, barrier: BarrierId) -> Option<&Life> {
        self.lives.get(&barrier)
    }

    /// A live barrier on some of these bytes.
    pub(super) fn on(&self, (space, start, end): Span) -> Option<(BarrierId, Span)> {
        let below = self.stored.range((space, 0)..(space, end)).next_back();
        below.filter(|(_, (last, _))| *last > start).map(|((s, first), (last, b))| (*b, (*s, *first, *last)))
    }

    pub(super) fn store(&mut self, barrier: BarrierId) {
        if let Some((space, start, end)) = self.find(barrier).and_then(Life::span) {
            self.stored.insert((space, start), (end, barrier));
        }
    }

    pub(super) fn unstore(&mut self, barrier: BarrierId) {
        self.stored.retain(|_, (_, b)| *b != barrier);
    }
}
