//! The state of barriers, groups and accesses, with happens-before.
//!
//! Events are kept as *records*: accesses to memory, phases that completed, waits that passed. Each record has the set of roles that
//! it happens before (the roles that have *observed* it), and the phases that carry it: an arrival at a barrier releases all that its
//! role has observed into the phase, and a wait for the phase acquires it. An access is safe if its role has observed every earlier
//! access that conflicts with it; no role has observed work in flight. This is happens-before, restricted to what can still matter:
//! records that all roles have observed, or that a later one subsumes, are dropped, so that the state at the head of a loop repeats.
//!
//! The order in which roles are executed is immaterial if no arrival and no wait can fall into another phase than its own. That is
//! checked with the same relation: a role that arrives has observed the completion of the previous phase, and a phase completes only
//! after all waits for the previous one have passed.
//!
//! Times are those of `crate::verify::coexecution`: time `t` of an array of `n` barriers that are used in turn is phase
//! `t div n` of barrier `t mod n`, relative to an *origin*, a sum of symbols.
//!
//! # An example
//!
//! A ring of three slots between a filler `f` and a reader `r`, with barriers `full` and `empty` that count one arrival. These are the
//! records about slot 0 (executed by a test): `write 0 {r} → full 0` is the write of time 0, which `r` has observed, and which phase 0 of
//! `full` carries. Phase −3 is the one before the first.
//!
//! | step | records |
//! |---|---|
//! | `f` waits for the free slot | empty waited for −3 {f} |
//! | `f` arrives at `full`, and expects the bytes | empty waited for −3 {f} → full 0 |
//! | `f` starts the copy, which completes `full` 0 | empty waited for −3 {f} → full 0; write 0 {} → full 0; full completed 0 {} → full 0 |
//! | `r` waits for `full` 0 | write 0 {r} → full 0; full completed 0 {r} → full 0; full waited for 0 {r} |
//! | `r` reads | write 0 {r} → full 0; full completed 0 {r} → full 0; full waited for 0 {r}; read 0 {r} |
//! | `r` arrives at `empty`, which completes phase 0 | write 0 {r} → full 0 → empty 0; full completed 0 {r} → full 0 → empty 0; full waited for 0 {r} → empty 0; read 0 {r} → empty 0; empty completed 0 {} → empty 0 |
//! | `f` waits for `empty` 0, in step 3 | empty completed 0 {f} → empty 0; empty waited for 0 {f} |
//!
//! The wait of `r` makes its read safe: before it, `r` has not observed the write. Records that both roles have observed are dropped, so
//! that after the last row the filler may write again: no conflicting record is left.

use super::super::linear::Linear;
use super::super::state::Times;
use super::objects::{Objects, Place};
use super::tensor::Fences;
use super::written::Written;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Class, OpId};

/// The number of groups of bulk stores that are tracked separately.
const OLDEST: i64 = 2;

/// A set of roles, as bits.
pub(in crate::verify) type Roles = u64;

pub(in crate::verify) const fn bit(role: usize) -> Roles {
    1 << (role % 64)
}

/// The operation that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) enum By {
    /// A copy to shared memory.
    Copy,
    /// A bulk store to an output, at elements that are not stated.
    BulkStore,
    /// An operation on tensor memory, with its index in [`Objects::units`].
    Tensor(usize),
    /// Any other.
    Other,
}

/// The event at which an access is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) enum Pending {
    /// It is complete already.
    Done,
    /// It completes when a group of a class has been waited for; `None` is the open group.
    Group(Class, Option<i64>),
    /// It completes with a phase.
    Phase(usize, i64),
    /// It completes when its role has waited for its loads of tensor memory (`wait_ld`).
    Loads,
    /// The same for its stores (`wait_st`).
    Stores,
}

/// The event that a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) enum What {
    /// An access to one part of a memory, or to its first `bytes` bytes.
    Access { memory: usize, time: i64, bytes: u64, write: bool, by: By, pending: Pending },
    /// A phase completed.
    Completed { barrier: usize, time: i64 },
    /// A wait for a phase passed.
    Passed { barrier: usize, time: i64 },
    /// A barrier that will be invalidated was used.
    Touched { barrier: usize },
    /// Bytes were added to a phase's transaction count (`expect_tx`), or its arrival count was raised, and no arrival that has observed
    /// this has followed yet.
    Announced { barrier: usize, time: i64 },
}

#[derive(Clone, Debug)]
pub(in crate::verify) struct Record {
    pub(in crate::verify) what: What,
    pub(in crate::verify) role: usize,
    pub(in crate::verify) op: OpId,
    pub(in crate::verify) known: Roles,
    /// The phases that carry it.
    pub(super) sent: SortedSet<(usize, i64)>,
    /// What fences of tensor memory are missing.
    pub(in crate::verify) fences: Fences,
}

impl Record {
    pub(super) const fn new(what: What, role: usize, op: OpId, known: Roles) -> Record {
        Record {
            what,
            role,
            op,
            known,
            sent: SortedSet::new(),
            fences: Fences { held: false, skipped: false, missing: 0 },
        }
    }

    /// The phases that carry it.
    pub(in crate::verify) fn phases(&self) -> impl Iterator<Item = (usize, i64)> + '_ {
        self.sent.iter().copied()
    }

    /// The barriers whose phases carry it.
    pub(in crate::verify) fn carriers(&self) -> impl Iterator<Item = usize> + '_ {
        self.sent.iter().map(|(barrier, _)| *barrier)
    }
}

/// A phase that is not complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::verify) struct Phase {
    pub(in crate::verify) arrived: u32,
    /// The number of arrivals by which copies have raised its arrival count; all of them may be outstanding.
    pub(in crate::verify) raised: u32,
    pub(in crate::verify) expected: u64,
    pub(in crate::verify) copied: u64,
    /// The last arrival.
    pub(in crate::verify) last: Option<OpId>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Phases {
    pub(super) done: Times,
    pub(super) open: SortedMap<i64, Phase>,
}

/// The state that operations of the barrier dialect change.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Machine {
    /// The origin of the times of each barrier, and then of each memory.
    pub(in crate::verify) origins: Vec<Linear>,
    pub(super) phases: Vec<Phases>,
    /// For each memory, the time after the last one at which it was filled.
    latest: Vec<i64>,
    pub(in crate::verify) records: Vec<Record>,
    issued: SortedMap<(usize, Class), i64>,
    waited: SortedMap<(usize, Class), i64>,
    /// The barriers that some operation invalidates.
    mortal: SortedSet<usize>,
    /// The memories that are columns of tensor memory.
    tensor: SortedSet<usize>,
    /// The roles that have arrived at a barrier without an mbarrier word and wait there.
    pub(in crate::verify) joined: SortedMap<usize, (OpId, usize, i64)>,
    /// The barriers that were invalidated, and the memories that were freed (by the index of the object), each with the operation.
    pub(in crate::verify) gone: SortedMap<usize, OpId>,
    pub(super) everybody: Roles,
    /// What has been written of shared memory and tensor memory, at least.
    pub(in crate::verify) written: Written,
    /// The operations that read what may not have been written, with the memory. It is no part of the state: what these operations do
    /// does not depend on it.
    pub(in crate::verify) unwritten: SortedMap<OpId, usize>,
}

/// A fault of a phase.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Wrong {
    /// More arrivals than the count of the barrier.
    TooMany { arrived: u32 },
    /// Copies transfer more bytes than expected.
    MoreBytes { expected: u64, copied: u64 },
    /// A role may still wait for the previous phase.
    Lapped { waiting: Record },
    /// Bytes were expected, and no arrival of the phase is ordered after that.
    Bare { announced: Record },
}

impl Machine {
    pub(in crate::verify) fn new(objects: &Objects, roles: usize) -> Machine {
        Machine {
            origins: vec![Linear::default(); objects.barriers.len() + objects.memories.len()],
            phases: vec![Phases::default(); objects.barriers.len()],
            latest: vec![0; objects.memories.len()],
            mortal: objects.mortal.clone(),
            tensor: (0..objects.memories.len()).filter(|m| objects.memories[*m].place == Place::Tensor).collect(),
            everybody: (0..roles).fold(0, |all, r| all | bit(r)),
            ..Machine::default()
        }
    }

    /// The clock of an object, to which relative times refer: barriers first, then memories.
    pub(super) fn base(&self, object: usize) -> i64 {
        let barrier = self.phases.get(object).map(|p| p.done.low);
        barrier.or_else(|| self.latest.get(object - self.phases.len()).copied()).unwrap_or(0)
    }

    /// The clock of an object, from the start of the kernel.
    pub(in crate::verify) fn clock(&self, object: usize) -> Linear {
        self.origins[object].plus_const(self.base(object))
    }

    /// The time after the last one at which a memory was filled, relative to its origin.
    pub(super) fn latest_of(&self, memory: usize) -> i64 {
        self.latest.get(memory).copied().unwrap_or(0)
    }

    pub(in crate::verify) fn memory_object(&self, memory: usize) -> usize {
        self.phases.len() + memory
    }

    /// The time of the last complete phase of barrier `slot` of `n`; negative if there is none.
    pub(in crate::verify) fn last(&self, barrier: usize, slot: i64, n: i64) -> i64 {
        let Some(phases) = self.phases.get(barrier) else { return -n };
        // The first time at or above `low` that belongs to this slot: all below are complete, some above may be. Each
        // round goes one turn of the array further, and finitely many times are complete.
        let mut t = phases.done.low + (slot - phases.done.low).rem_euclid(n);
        while phases.done.has(t) {
            t += n;
        }
        t - n
    }

    pub(in crate::verify) fn open(&mut self, barrier: usize, time: i64) -> &mut Phase {
        self.phases[barrier].open.entry(time).or_default()
    }

    pub(in crate::verify) fn phase(&self, barrier: usize, time: i64) -> Phase {
        self.phases.get(barrier).and_then(|p| p.open.get(&time)).cloned().unwrap_or_default()
    }

    /// A copy, or an MMA on tensor memory, that signals a barrier and whose completion a role has not observed.
    pub(in crate::verify) fn on_the_way(&self, role: usize, barrier: usize) -> Option<Record> {
        let brings = |r: &&Record| match r.what {
            What::Access { by: By::Copy | By::Tensor(_), pending: Pending::Phase(b, _), .. } => b == barrier,
            What::Access { by: By::Copy | By::Tensor(_), pending: Pending::Done, .. } => {
                r.known & bit(role) == 0 && r.carriers().any(|b| b == barrier)
            }
            What::Access { .. }
            | What::Completed { .. }
            | What::Passed { .. }
            | What::Touched { .. }
            | What::Announced { .. } => false,
        };
        self.records.iter().find(brings).cloned()
    }

    /// Whether a role has observed the completion of a phase. All roles have observed the phases before the first.
    pub(in crate::verify) fn knows(&self, role: usize, barrier: usize, time: i64) -> bool {
        // A record of a completed phase is dropped once all roles have observed it, so that no record means observed
        // (`forget`).
        let record = self
            .records
            .iter()
            .find(|r| matches!(r.what, What::Completed { barrier: b, time: t } if (b, t) == (barrier, time)));
        record.is_none_or(|r| r.known & bit(role) != 0)
    }

    /// Releases records into a phase: a wait for it observes them.
    pub(in crate::verify) fn send(&mut self, to: (usize, i64), which: impl Fn(&Record) -> bool) {
        // Whoever waits for the phase observes what its arrivals released: release and acquire, at the granularity of
        // records.
        for record in self.records.iter_mut().filter(|r| which(r)) {
            // An arrival publishes what its role has observed, but for accesses to tensor memory that no `fence_before`
            // has followed.
            if record.fences.held {
                record.fences.skipped = true;
            } else {
                record.sent.insert(to);
            }
        }
    }

    /// Records that a role uses a barrier. `told` is the phase that cannot complete before this use, if there is one.
    pub(in crate::verify) fn touched(&mut self, role: usize, op: OpId, barrier: usize, told: Option<i64>) {
        if self.mortal.contains(&barrier) {
            let what = What::Touched { barrier };
            // The last use of a role is behind its earlier ones, so that whoever has observed it has observed them.
            self.records.retain(|r| r.what != what || r.role != role);
            let sent = told.map(|time| (barrier, time)).into_iter().collect();
            self.records.push(Record { sent, ..Record::new(what, role, op, bit(role)) });
        }
    }

    /// Records that a role adds to the counts of a phase without arriving.
    pub(in crate::verify) fn announced(&mut self, role: usize, op: OpId, (barrier, time): (usize, i64)) {
        let what = What::Announced { barrier, time };
        self.records.retain(|r| r.what != what || r.role != role);
        self.records.push(Record::new(what, role, op, bit(role)));
    }

    /// Records that a role arrives: the phase cannot complete before that, so the expected bytes that the role has observed are counted in
    /// it.
    pub(in crate::verify) fn covers(&mut self, role: usize, (barrier, time): (usize, i64)) {
        self.records.retain(|r| r.what != What::Announced { barrier, time } || r.known & bit(role) == 0);
    }

    /// A use of a barrier by another role that this one has not observed.
    pub(in crate::verify) fn using(&self, role: usize, barrier: usize) -> Option<Record> {
        let used = |r: &&Record| r.what == What::Touched { barrier } && r.known & bit(role) == 0;
        self.records.iter().find(used).cloned()
    }

    /// Records that a role has waited for a phase.
    pub(in crate::verify) fn learn(&mut self, role: usize, from: (usize, i64)) {
        for record in self.records.iter_mut().filter(|r| r.sent.contains(&from)) {
            if matches!(record.what, What::Access { memory, .. } if self.tensor.contains(&memory)) {
                // Observed by a wait only now: the role needs `fence_after`. What it had observed before needs no
                // further one.
                record.fences.missing |= bit(role) & !record.known;
            }
            record.known |= bit(role);
        }
    }

    /// Records that a wait of a role has returned.
    pub(in crate::verify) fn passed(&mut self, role: usize, op: OpId, (barrier, time): (usize, i64)) {
        let what = What::Passed { barrier, time };
        self.records.retain(|r| r.what != what || r.role != role);
        self.records.push(Record::new(what, role, op, bit(role)));
        self.forget();
    }

    /// Completes a phase if no arrivals or bytes are missing; returns whether it did.
    pub(in crate::verify) fn complete(&mut self, objects: &Objects, barrier: usize, time: i64) -> Result<bool, Wrong> {
        let (count, n) = objects.barriers.get(barrier).map_or((1, 1), |b| (b.count, b.n));
        let phase = self.phase(barrier, time);
        if phase.arrived > count {
            return Err(Wrong::TooMany { arrived: phase.arrived });
        }
        // Either arrivals or bytes are missing. While arrivals are missing, more bytes may have been copied than are
        // expected: parts of other programs, and copies that are started before the arrival which expects them.
        if phase.arrived < count || phase.expected > phase.copied {
            return Ok(false);
        }
        if phase.copied > phase.expected {
            return Err(Wrong::MoreBytes { expected: phase.expected, copied: phase.copied });
        }
        // Another order of steps could complete the phase before these bytes are expected. Then the copy would bring
        // the next one out of count.
        if let Some(announced) = self.records.iter().find(|r| r.what == What::Announced { barrier, time }) {
            return Err(Wrong::Bare { announced: announced.clone() });
        }
        // A role that still tests for phase t - n when phase t completes finds the other parity, and waits for a phase
        // of the next round (theorem 4). Its wait must happen before this phase completes, so the phase must carry it:
        // some arrival was made by a role that has observed that the wait passed.
        let behind =
            |r: &&Record| matches!(r.what, What::Passed { barrier: b, time: t } if b == barrier && t == time - n);
        if let Some(waiting) = self.records.iter().find(|r| behind(r) && !r.sent.contains(&(barrier, time))) {
            return Err(Wrong::Lapped { waiting: waiting.clone() });
        }
        self.done(barrier, time, n);
        Ok(true)
    }

    fn done(&mut self, barrier: usize, time: i64, n: i64) {
        self.phases[barrier].open.remove(&time);
        self.phases[barrier].done.add(time);
        self.records.retain(|r| match r.what {
            What::Passed { barrier: b, time: t } => b != barrier || t != time - n,
            What::Completed { barrier: b, time: t } => b != barrier || t != time - 2 * n,
            What::Access { .. } | What::Touched { .. } | What::Announced { .. } => true,
        });
        let mut op = OpId::new(0);
        for record in &mut self.records {
            // A wait for the earlier phase is refused from now on, so that nothing is observed by it any more. This
            // keeps the records finite.
            record.sent.remove(&(barrier, time - n));
            // What is in flight is carried only by phases that do not complete before it.
            // Example: a copy announces its completion to phase 3 of `full`. When that phase completes, the copy is
            // done, and a wait for the phase observes the write. The role that started it has not: it has not waited.
            let carried = record.sent.contains(&(barrier, time));
            if let What::Access { pending, .. } = &mut record.what
                && (*pending == Pending::Phase(barrier, time) || carried && *pending != Pending::Done)
            {
                *pending = Pending::Done;
                record.sent.insert((barrier, time));
                op = record.op;
            }
        }
        // No role has observed it yet; a wait for the phase does, as the phase carries it.
        let what = What::Completed { barrier, time };
        self.records.push(Record { sent: SortedSet::from([(barrier, time)]), ..Record::new(what, usize::MAX, op, 0) });
        self.forget();
    }

    /// Records that work in flight will complete with a phase.
    pub(in crate::verify) fn attach(&mut self, to: (usize, i64), which: impl Fn(&Record) -> bool) {
        for record in self.records.iter_mut().filter(|r| which(r)) {
            if let What::Access { pending, .. } = &mut record.what {
                *pending = Pending::Phase(to.0, to.1);
            }
        }
    }

    /// Commits the open group of a class; returns its number.
    pub(in crate::verify) fn commit(&mut self, role: usize, class: Class) -> i64 {
        let slot = self.issued.entry((role, class)).or_insert(0);
        *slot += 1;
        let n = *slot;
        // Without this, a loop with a store in each iteration that is never waited for would have an older group in
        // each.
        let oldest = n.saturating_sub(OLDEST);
        for record in self.records.iter_mut().filter(|r| r.role == role) {
            let What::Access { pending, by, .. } = &mut record.what else { continue };
            match *pending {
                Pending::Group(c, None) if c == class => *pending = Pending::Group(class, Some(n)),
                // The age of stores that are never waited for is dropped, so that loops return to the same state. It is sound to treat them
                // as later stores.
                Pending::Group(c, Some(old)) if c == class && *by == By::BulkStore && old < oldest => {
                    *pending = Pending::Group(class, Some(oldest));
                }
                Pending::Group(..) | Pending::Phase(..) | Pending::Loads | Pending::Stores | Pending::Done => {}
            }
        }
        n
    }

    /// The number of groups of a class that a role has committed.
    pub(in crate::verify) fn issued(&self, role: usize, class: Class) -> i64 {
        self.issued.get(&(role, class)).copied().unwrap_or(0)
    }

    /// Records that all groups up to this one are complete, and the role has observed it; if `read`, bulk stores have only read shared
    /// memory.
    pub(in crate::verify) fn wait_group(
        &mut self,
        objects: &Objects,
        role: usize,
        (class, upto, read): (Class, i64, bool),
    ) {
        for record in self.records.iter_mut().filter(|r| r.role == role) {
            if let What::Access { pending, by, .. } = &mut record.what
                // A wait for reads leaves the writes of bulk stores to their outputs in flight. Their reads of shared
                // memory are other records.
                && !(read && *by == By::BulkStore)
                && matches!(pending, Pending::Group(c, Some(n)) if *c == class && *n <= upto)
            {
                *pending = Pending::Done;
                record.known |= bit(role);
            }
        }
        self.latest_reads(objects);
        self.forget();
    }

    /// The youngest group of a class whose token was waited for.
    pub(in crate::verify) fn waited(&self, role: usize, class: Class) -> i64 {
        self.waited.get(&(role, class)).copied().unwrap_or(0)
    }

    pub(in crate::verify) fn note_waited(&mut self, role: usize, class: Class, n: i64) {
        self.waited.insert((role, class), n);
    }

    /// The time of an access to a part: the parts of a memory are used in the order in which they are filled.
    pub(in crate::verify) fn time_of(&mut self, memory: usize, slot: i64, n: i64, write: bool) -> i64 {
        let latest = self.latest[memory];
        // The latest time at which this slot was filled. A write of a slot that is not the last one filled begins the
        // next round of it; further writes to the last one, and all reads, belong to that time.
        let last = latest - 1 - (latest - 1 - slot).rem_euclid(n);
        if !write || last == latest - 1 || n == 1 {
            return last;
        }
        let time = last + n;
        self.latest[memory] = time + 1;
        time
    }
}
