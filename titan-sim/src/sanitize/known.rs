//! What is known of effects: the threads that see them, the fences that cover them, the slots in which they are published.
//!
//! Arrivals, waits, fences and rendezvous concern all effects that an agent sees, wherever they are. There are tens of thousands of
//! effects, but few differences in what is known of them, so effects of which the same is known share one record:
//!
//! | event | effects | records |
//! |---|---|---|
//! | warp 0 writes 32 ranges, warp 1 reads 32 others | 64 | A: warp 0 sees it; B: warp 1 sees it |
//! | warp 0 arrives at a barrier | 64 | A: and it is published there; B |
//! | warp 1 waits | 64 | A: and warp 1 sees it; B |
//! | warp 0 writes another range | 65 | A, B; C: warp 0 sees it |
//!
//! This is exact: what such an event does to an effect depends only on what is known of the effect and on the few facts of [`Kind`], and
//! effects with the same record agree in both. An event that concerns only some bytes gives the effects there other records.
//!
//! Records that became equal, or that no effect has any more, stay until there are twice as many as were needed the last time. Then all
//! effects are visited once, so that this costs little for each record that was made.

use super::effect::Effect;
use super::mask::{Mask, Partition, Unit, bit};
use super::proxy::Fences;
use super::publish::Mark;
use super::report::{Deed, Side};
use crate::engine::{Proxy, SpaceId};
use std::collections::VecDeque;

/// The facts about an access on which it depends whether an event concerns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    pub(super) space: SpaceId,
    pub(super) deed: Deed,
    pub(super) proxy: Proxy,
    /// Whether its memory is one whose operations run out of order, so that barriers order it only with fences.
    pub(super) out_of_order: bool,
}

/// The partitions whose fences let barriers order an access to a memory whose operations run out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SyncFences {
    /// Those whose arrivals publish it: they have fenced it before the synchronization, or acquired it.
    pub(super) before: u64,
    /// Those whose accesses are ordered after it: they have fenced it after the synchronization, or waited for it themselves.
    pub(super) after: u64,
    /// Those that have arrived without having fenced it. Only messages depend on this.
    pub(super) skipped: u64,
}

/// What is known of some effects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Known {
    pub(super) kind: Kind,
    /// The logical threads whose next accesses are ordered after them.
    pub(super) seen: Mask,
    /// The partitions that have fenced them, for each proxy and scope.
    pub(super) fences: Fences,
    /// The slots in which they are published.
    pub(super) marks: Vec<Mark>,
    /// For memories whose operations run out of order.
    pub(super) sync: SyncFences,
}

impl Known {
    /// Whether the same is known of effects of this kind; slots count in the order of publication.
    fn is_like(&self, other: &Known) -> bool {
        self.seen == other.seen && self.fences == other.fences && self.marks == other.marks && self.sync == other.sync
    }

    /// Whether nothing has happened to effects of this kind since `seen` was all that was known.
    fn is_new(&self, kind: Kind, seen: Mask) -> bool {
        self.kind == kind
            && self.seen == seen
            && self.marks.is_empty()
            && self.fences == Fences::default()
            && self.sync == initially(kind, seen)
    }

    /// Whether a partition's arrivals publish it.
    pub(super) const fn is_published_by(&self, p: Partition) -> bool {
        self.seen.has(p, Unit::Base) && (!self.kind.out_of_order || self.sync.before & bit(p) != 0)
    }

    /// Whether the accesses of a logical thread are ordered after it.
    pub(super) const fn is_before(&self, p: Partition, eyes: Unit) -> bool {
        self.seen.has(p, eyes) && (!self.kind.out_of_order || self.sync.after & bit(p) != 0)
    }

    /// A partition acquires it from a barrier.
    pub(super) fn acquire(&mut self, p: Partition) {
        self.seen.add(Mask::peers(p));
        if self.kind.out_of_order {
            self.sync.before |= bit(p);
        }
    }

    /// A partition has waited for it.
    pub(super) fn wait(&mut self, p: Partition) {
        self.seen.add(Mask::peers(p));
        if self.kind.out_of_order {
            self.sync.after |= bit(p);
        }
    }

    /// Whether the fence of a partition is all that keeps it from being ordered before the accesses of `p`.
    pub(super) const fn misses_fence(&self, p: Partition) -> bool {
        let observed = self.seen.has(p, Unit::Base);
        self.kind.out_of_order && (observed && self.sync.after & bit(p) == 0 || !observed && self.sync.skipped != 0)
    }
}

/// The fences of a new access that these threads see: what an agent does itself is complete, and needs none.
fn initially(kind: Kind, seen: Mask) -> SyncFences {
    let own = if kind.out_of_order { seen.base() } else { 0 };
    SyncFences { before: own, after: own, skipped: 0 }
}

/// The number of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownId(u32);

impl KnownId {
    fn new(index: usize) -> KnownId {
        KnownId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The least number of records at which those that are not needed are removed.
const LEAST: usize = 64;
/// The number of records that were made last, among which an equal one is looked for before another is made.
const RECENT: usize = 16;

/// All records.
#[derive(Clone, Debug)]
pub(super) struct Records {
    all: Vec<Known>,
    /// The records that were made last, oldest first; they may have changed since.
    recent: VecDeque<KnownId>,
    /// The number of records at which those that are not needed are removed.
    limit: usize,
}

impl Default for Records {
    fn default() -> Records {
        Records { all: Vec::new(), recent: VecDeque::new(), limit: LEAST }
    }
}

impl Records {
    pub(super) fn all(&self) -> &[Known] {
        &self.all
    }

    pub(super) fn all_mut(&mut self) -> &mut [Known] {
        &mut self.all
    }

    pub(super) fn of(&self, e: &Effect) -> &Known {
        &self.all[e.known.index()]
    }

    pub(super) fn are_alike(&self, a: KnownId, b: KnownId) -> bool {
        a == b || self.all[a.index()].is_like(&self.all[b.index()])
    }

    /// The record of a new access, which these threads see.
    pub(super) fn made(&mut self, (space, out_of_order): (SpaceId, bool), side: &Side, seen: Mask) -> KnownId {
        let kind = Kind { space, deed: side.deed, proxy: side.proxy, out_of_order };
        let new = |id: &&KnownId| self.all[id.index()].is_new(kind, seen);
        match self.recent.iter().rev().find(new) {
            Some(id) => *id,
            None => {
                let sync = initially(kind, seen);
                self.make(Known { kind, seen, fences: Fences::default(), marks: Vec::new(), sync })
            }
        }
    }

    /// A record with these contents.
    pub(super) fn with(&mut self, known: Known) -> KnownId {
        match self.recent.iter().rev().find(|id| self.all[id.index()] == known) {
            Some(id) => *id,
            None => self.make(known),
        }
    }

    fn make(&mut self, known: Known) -> KnownId {
        let id = KnownId::new(self.all.len());
        self.all.push(known);
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(id);
        id
    }

    /// Whether there are so many records that those that are not needed should be removed.
    pub(super) const fn are_many(&self) -> bool {
        self.all.len() >= self.limit
    }

    /// Keeps one of equal records, and none that no effect has. The argument is the record of every effect.
    pub(super) fn compact<'e>(&mut self, effects: impl Iterator<Item = &'e mut KnownId>) {
        let before = std::mem::take(&mut self.all);
        let mut moved: Vec<Option<KnownId>> = vec![None; before.len()];
        #[expect(clippy::disallowed_types, reason = "it is asked for keys only: its order does not show")]
        let mut kept: std::collections::HashMap<&Known, KnownId> = std::collections::HashMap::new();
        let all = &mut self.all;
        for id in effects {
            let known = &before[id.index()];
            *id = *moved[id.index()].get_or_insert_with(|| {
                *kept.entry(known).or_insert_with(|| {
                    all.push(known.clone());
                    KnownId::new(all.len() - 1)
                })
            });
        }
        self.recent.clear();
        self.limit = LEAST.max(2 * self.all.len());
    }
}
