//! Where barriers, groups and accesses are, and who knows of what.
//!
//! What happens is written down as *records*: accesses to memory, phases that completed, waits that were passed. Each record
//! says which roles know of it, and with which phases the knowledge travels: whoever arrives at a barrier sends all that it
//! knows with the phase, and whoever waits for the phase learns it. An access is safe if its role knows of every access that
//! it must come after; work in flight is known to nobody. That is happens-before, kept only for what can still matter:
//! records that everybody knows, or that a later one stands for, are gone, so that the state at the head of a loop comes back.
//!
//! The order in which roles are run is immaterial if no arrival and no wait can meet another phase than its own. That is
//! checked by the same knowledge: whoever arrives knows that the phase before is complete, and a phase completes only after
//! all who waited for the one before have gone on.
//!
//! Times are those of `crate::verify::pipes::coexecution`: the `t`-th phase of `n` barriers that turn together is phase `t div n` of
//! barrier `t mod n`, and counts from an *origin*, a sum of symbols.

use super::super::pipes::coexecution::linear::Linear;
use super::super::pipes::coexecution::state::Times;
use super::objects::Objects;
use crate::ir::{Class, OpId};
use std::collections::{BTreeMap, BTreeSet};

/// So many groups of raw bulk stores are told apart.
const OLDEST: i64 = 2;

/// Roles, as bits.
pub(in crate::verify) type Roles = u64;

pub(in crate::verify) const fn bit(role: usize) -> Roles {
    1 << (role % 64)
}

/// What is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) enum Pending {
    /// Nothing: it is done.
    Done,
    /// Until a group of a class is waited for; `None` is the open group.
    Group(Class, Option<i64>),
    /// Until a phase completes.
    Phase(usize, i64),
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) enum What {
    /// An access to one part of a memory, or to so many bytes at its beginning. `copy`: bytes are brought to shared memory;
    /// `bulk`: an output is written by a raw bulk store, of which it is not said where.
    Access { memory: usize, time: i64, bytes: u64, write: bool, copy: bool, bulk: bool, pending: Pending },
    /// A phase completed.
    Completed { barrier: usize, time: i64 },
    /// A wait for a phase was passed.
    Passed { barrier: usize, time: i64 },
    /// A barrier that will be invalidated was used.
    Touched { barrier: usize },
    /// Bytes were announced to a phase, or its count was raised, and nobody has arrived since who knows of it.
    Announced { barrier: usize, time: i64 },
}

#[derive(Clone, Debug)]
pub(in crate::verify) struct Record {
    pub(in crate::verify) what: What,
    pub(in crate::verify) role: usize,
    pub(in crate::verify) op: OpId,
    pub(in crate::verify) known: Roles,
    /// The phases that carry it.
    pub(super) sent: BTreeSet<(usize, i64)>,
}

impl Record {
    /// The barriers whose phases carry it.
    pub(in crate::verify) fn carriers(&self) -> impl Iterator<Item = usize> + '_ {
        self.sent.iter().map(|(barrier, _)| *barrier)
    }
}

/// A phase that is not complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::verify) struct Phase {
    pub(in crate::verify) arrived: u32,
    /// By how much copies have raised its count: their arrivals may all still come.
    pub(in crate::verify) raised: u32,
    pub(in crate::verify) expected: u64,
    pub(in crate::verify) copied: u64,
    /// Where somebody arrived last.
    pub(in crate::verify) last: Option<OpId>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Phases {
    pub(super) done: Times,
    pub(super) open: BTreeMap<i64, Phase>,
}

/// Everything that barrier-level operations change.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Machine {
    /// Where the times of each barrier, and then of each memory, count from.
    pub(in crate::verify) origins: Vec<Linear>,
    pub(super) phases: Vec<Phases>,
    /// The time after the last one at which each memory was filled.
    latest: Vec<i64>,
    pub(in crate::verify) records: Vec<Record>,
    issued: BTreeMap<(usize, Class), i64>,
    waited: BTreeMap<(usize, Class), i64>,
    /// Barriers that some operation invalidates.
    mortal: BTreeSet<usize>,
    /// Roles that have come to a barrier and wait there.
    pub(in crate::verify) met: BTreeMap<usize, (OpId, usize, i64)>,
    /// Barriers that are gone, and where they went.
    pub(in crate::verify) gone: BTreeMap<usize, OpId>,
    everybody: Roles,
}

/// Why a phase does not complete as it should.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Wrong {
    /// More arrivals than the barrier counts.
    TooMany { arrived: u32 },
    /// Copies bring more than was announced.
    MoreBytes { expected: u64, copied: u64 },
    /// Somebody may still wait for the phase before.
    Lapped { waiting: Record },
    /// Bytes were announced, and no arrival of the phase is known to come after.
    Bare { announced: Record },
}

impl Machine {
    pub(in crate::verify) fn new(objects: &Objects, roles: usize) -> Machine {
        Machine {
            origins: vec![Linear::default(); objects.barriers.len() + objects.memories.len()],
            phases: vec![Phases::default(); objects.barriers.len()],
            latest: vec![0; objects.memories.len()],
            mortal: objects.mortal.clone(),
            everybody: (0..roles).fold(0, |all, r| all | bit(r)),
            ..Machine::default()
        }
    }

    /// The time that stands still when everything moves on: barriers first, then memories.
    pub(super) fn base(&self, object: usize) -> i64 {
        let barrier = self.phases.get(object).map(|p| p.done.low);
        barrier.or_else(|| self.latest.get(object - self.phases.len()).copied()).unwrap_or(0)
    }

    /// How far an object has come, from the start of the kernel.
    pub(in crate::verify) fn clock(&self, object: usize) -> Linear {
        self.origins[object].plus_const(self.base(object))
    }

    pub(in crate::verify) fn memory_object(&self, memory: usize) -> usize {
        self.phases.len() + memory
    }

    /// The last complete phase of the barrier that is `slot` of the `n` that turn together; negative if there is none.
    pub(in crate::verify) fn last(&self, barrier: usize, slot: i64, n: i64) -> i64 {
        let Some(phases) = self.phases.get(barrier) else { return -n };
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

    /// A copy whose bytes go to a barrier, of which a role does not know that it is done.
    pub(in crate::verify) fn on_the_way(&self, role: usize, barrier: usize) -> Option<Record> {
        let brings = |r: &&Record| match r.what {
            What::Access { copy: true, pending: Pending::Phase(b, _), .. } => b == barrier,
            What::Access { copy: true, pending: Pending::Done, .. } => {
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

    /// Whether a role knows that a phase is complete. Of the phases before the first everybody knows.
    pub(in crate::verify) fn knows(&self, role: usize, barrier: usize, time: i64) -> bool {
        let record = self
            .records
            .iter()
            .find(|r| matches!(r.what, What::Completed { barrier: b, time: t } if (b, t) == (barrier, time)));
        record.is_none_or(|r| r.known & bit(role) != 0)
    }

    /// Whoever waits for this phase will know these.
    pub(in crate::verify) fn send(&mut self, to: (usize, i64), which: impl Fn(&Record) -> bool) {
        for record in self.records.iter_mut().filter(|r| which(r)) {
            record.sent.insert(to);
        }
    }

    /// A role uses a barrier. `told`: the phase that cannot complete before this use is over, if there is one.
    pub(in crate::verify) fn touched(&mut self, role: usize, op: OpId, barrier: usize, told: Option<i64>) {
        if self.mortal.contains(&barrier) {
            let what = What::Touched { barrier };
            self.records.retain(|r| r.what != what || r.role != role);
            let sent = told.map(|time| (barrier, time)).into_iter().collect();
            self.records.push(Record { what, role, op, known: bit(role), sent });
        }
    }

    /// A role adds to what a phase waits for, and goes on without having arrived.
    pub(in crate::verify) fn announced(&mut self, role: usize, op: OpId, (barrier, time): (usize, i64)) {
        let what = What::Announced { barrier, time };
        self.records.retain(|r| r.what != what || r.role != role);
        self.records.push(Record { what, role, op, known: bit(role), sent: BTreeSet::new() });
    }

    /// A role arrives: the phase is not complete before that, so what it knows to be announced counts in it.
    pub(in crate::verify) fn covers(&mut self, role: usize, (barrier, time): (usize, i64)) {
        self.records.retain(|r| r.what != What::Announced { barrier, time } || r.known & bit(role) == 0);
    }

    /// Another role's use of a barrier of which this one does not know that it is over.
    pub(in crate::verify) fn using(&self, role: usize, barrier: usize) -> Option<Record> {
        let used = |r: &&Record| r.what == What::Touched { barrier } && r.known & bit(role) == 0;
        self.records.iter().find(used).cloned()
    }

    /// A role has waited for a phase.
    pub(in crate::verify) fn learn(&mut self, role: usize, from: (usize, i64)) {
        for record in self.records.iter_mut().filter(|r| r.sent.contains(&from)) {
            record.known |= bit(role);
        }
    }

    /// A role has passed a wait.
    pub(in crate::verify) fn passed(&mut self, role: usize, op: OpId, (barrier, time): (usize, i64)) {
        let what = What::Passed { barrier, time };
        self.records.retain(|r| r.what != what || r.role != role);
        self.records.push(Record { what, role, op, known: bit(role), sent: BTreeSet::new() });
        self.forget();
    }

    /// Completes a phase if nothing is missing; gives whether it did.
    pub(in crate::verify) fn complete(&mut self, objects: &Objects, barrier: usize, time: i64) -> Result<bool, Wrong> {
        let (count, n) = objects.barriers.get(barrier).map_or((1, 1), |b| (b.count, b.n));
        let phase = self.phase(barrier, time);
        if phase.arrived > count {
            return Err(Wrong::TooMany { arrived: phase.arrived });
        }
        if phase.arrived < count || phase.expected > phase.copied {
            return Ok(false);
        }
        if phase.copied > phase.expected {
            return Err(Wrong::MoreBytes { expected: phase.expected, copied: phase.copied });
        }
        if let Some(announced) = self.records.iter().find(|r| r.what == What::Announced { barrier, time }) {
            return Err(Wrong::Bare { announced: announced.clone() });
        }
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
            record.sent.remove(&(barrier, time - n));
            if let What::Access { pending, .. } = &mut record.what
                && *pending == Pending::Phase(barrier, time)
            {
                *pending = Pending::Done;
                record.sent.insert((barrier, time));
                op = record.op;
            }
        }
        let what = What::Completed { barrier, time };
        self.records.push(Record { what, role: usize::MAX, op, known: 0, sent: BTreeSet::from([(barrier, time)]) });
        self.forget();
    }

    /// Work in flight will be done when a phase is.
    pub(in crate::verify) fn attach(&mut self, to: (usize, i64), which: impl Fn(&Record) -> bool) {
        for record in self.records.iter_mut().filter(|r| which(r)) {
            if let What::Access { pending, .. } = &mut record.what {
                *pending = Pending::Phase(to.0, to.1);
            }
        }
    }

    /// Closes the open group of a class; gives its number.
    pub(in crate::verify) fn commit(&mut self, role: usize, class: Class) -> i64 {
        let slot = self.issued.entry((role, class)).or_insert(0);
        *slot += 1;
        let n = *slot;
        let oldest = n.saturating_sub(OLDEST);
        for record in self.records.iter_mut().filter(|r| r.role == role) {
            let What::Access { pending, bulk, .. } = &mut record.what else { continue };
            match *pending {
                Pending::Group(c, None) if c == class => *pending = Pending::Group(class, Some(n)),
                // Of what is never waited for it is forgotten how long ago it was, so that loops come back to the same state:
                // it may as well have been later.
                Pending::Group(c, Some(old)) if c == class && *bulk && old < oldest => {
                    *pending = Pending::Group(class, Some(oldest));
                }
                Pending::Group(..) | Pending::Phase(..) | Pending::Done => {}
            }
        }
        n
    }

    /// How many groups of a class a role has closed.
    pub(in crate::verify) fn issued(&self, role: usize, class: Class) -> i64 {
        self.issued.get(&(role, class)).copied().unwrap_or(0)
    }

    /// All groups up to this one are done, and the role knows; if `read`, bulk stores have only read shared memory.
    pub(in crate::verify) fn wait_group(
        &mut self,
        objects: &Objects,
        role: usize,
        (class, upto, read): (Class, i64, bool),
    ) {
        for record in self.records.iter_mut().filter(|r| r.role == role) {
            if let What::Access { pending, bulk, .. } = &mut record.what
                && !(read && *bulk)
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

    /// The time of an access to a part: the parts of a memory turn with what fills them.
    pub(in crate::verify) fn time_of(&mut self, memory: usize, slot: i64, n: i64, write: bool) -> i64 {
        let latest = self.latest[memory];
        let last = latest - 1 - (latest - 1 - slot).rem_euclid(n);
        if !write || last == latest - 1 || n == 1 {
            return last;
        }
        let time = last + n;
        self.latest[memory] = time + 1;
        time
    }

    /// An access of a memory that must come after and is not known to have.
    pub(in crate::verify) fn conflict(
        &self,
        objects: &Objects,
        (role, op): (usize, OpId),
        access: &What,
    ) -> Option<Record> {
        let What::Access { memory, time, write, bulk, pending, .. } = access else { return None };
        let own = objects.memories.get(*memory)?;
        let meets = |r: &&Record| {
            let What::Access { memory: m, time: t, write: w, bulk: b, pending: p, .. } = r.what else { return false };
            let apart = b && *bulk && objects.apart.contains(&(r.op, op));
            let in_order = r.role == role && local(p) && local(*pending) || apart;
            let same = m == *memory && (t - time).rem_euclid(own.n) == 0;
            let other = m != *memory && objects.memories.get(m).is_some_and(|o| o.overlaps(own));
            (w || *write) && (same || other) && r.known & bit(role) == 0 && !in_order
        };
        self.records.iter().find(meets).cloned()
    }

    /// Writes an access down. What it stands for from now on is gone: what comes before it and touches no other bytes.
    pub(in crate::verify) fn access(&mut self, objects: &Objects, role: usize, op: OpId, access: What) {
        let What::Access { memory, time, bytes, write, bulk, pending, .. } = access else { return };
        let n = objects.memories.get(memory).map_or(1, |m| m.n);
        self.records.retain(|r| {
            let What::Access { memory: m, time: t, bytes: b, write: w, bulk: o, pending: p, .. } = r.what else {
                return true;
            };
            let same = m == memory && (t - time).rem_euclid(n) == 0 && b <= bytes;
            // A write comes after everything; a read after the reads of its role; a bulk store completes after the same one of
            // iterations before.
            let again = o && r.role == role && r.op == op;
            let after = if bulk { again } else { p == Pending::Done && (write || !w && r.role == role) };
            !(same && after)
        });
        let known = if pending == Pending::Done { bit(role) } else { 0 };
        self.records.push(Record { what: access, role, op, known, sent: BTreeSet::new() });
        self.latest_reads(objects);
        self.forget();
    }

    /// Of the finished reads of one part by one role one stands for another that touches no other bytes, if whoever knows of
    /// it, or will, knows of the other: one that was in flight when its role arrived somewhere is not told of there.
    fn latest_reads(&mut self, objects: &Objects) {
        let read = |r: &Record| match r.what {
            What::Access { memory, time, bytes, write: false, pending: Pending::Done, .. } => {
                let n = objects.memories.get(memory).map_or(1, |o| o.n);
                Some(((memory, time.rem_euclid(n), r.role), bytes))
            }
            What::Access { .. }
            | What::Completed { .. }
            | What::Passed { .. }
            | What::Touched { .. }
            | What::Announced { .. } => None,
        };
        let mut kept: Vec<Record> = Vec::with_capacity(self.records.len());
        for record in self.records.drain(..).rev() {
            let stands = |k: &Record| match (read(k), read(&record)) {
                (Some((part, bytes)), Some((other, least))) => {
                    part == other && bytes >= least && k.known & !record.known == 0 && k.sent.is_subset(&record.sent)
                }
                (_, _) => false,
            };
            if !kept.iter().any(stands) {
                kept.push(record);
            }
        }
        kept.reverse();
        self.records = kept;
    }

    /// What everybody knows does not matter any more.
    fn forget(&mut self) {
        let all = self.everybody;
        self.records.retain(|r| {
            let matters = match r.what {
                What::Access { pending, .. } => pending != Pending::Done,
                What::Announced { .. } => true,
                // The absence of the others says the same.
                What::Passed { .. } | What::Completed { .. } | What::Touched { .. } => false,
            };
            matters || r.known & all != all
        });
    }
}

/// The local memory of a wave works in order.
fn local(pending: Pending) -> bool {
    matches!(pending, Pending::Group(Class::Lgkmcnt, _))
}
