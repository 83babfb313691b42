//! Which accesses conflict, and which records of accesses no longer matter.
//!
//! Deliberately absent: the errors (`messages`).

use super::machine::{By, Machine, Pending, Record, What, bit};
use super::objects::Objects;
use crate::ir::{Class, OpId};

impl Machine {
    /// An earlier access that conflicts with a new one, and that its role has not observed.
    pub(in crate::verify) fn conflict(
        &self,
        objects: &Objects,
        (role, op): (usize, OpId),
        access: &What,
    ) -> Option<Record> {
        let What::Access { memory, time, write, by, pending, .. } = access else { return None };
        let own = objects.memories.get(*memory)?;
        let meets = |r: &&Record| {
            let What::Access { memory: m, time: t, write: w, by: b, pending: p, .. } = r.what else { return false };
            // By their elements in all iterations, which `outputs` has compared.
            let apart = (b, *by) == (By::BulkStore, By::BulkStore) && objects.apart.contains(&(r.op, op));
            let own_order = local(p) && local(*pending) || objects.units.in_order(b, *by);
            let in_order = r.role == role && own_order || apart;
            // Time t and t + n are the same part. Different parts of one memory do not overlap; different memories may,
            // as regions share bytes.
            let same = m == *memory && (t - time).rem_euclid(own.n) == 0;
            let other = m != *memory && objects.memories.get(m).is_some_and(|o| o.overlaps(own));
            // Observed by the role, and for tensor memory with the fence that makes it visible.
            let seen = r.known & !r.fences.missing & bit(role) != 0;
            // This is the definition of a race: same bytes, one writes, and neither happens before the other. The
            // earlier one in this order of steps is not observed, so that another order of steps could exchange them.
            (w || *write) && (same || other) && !seen && !in_order
        };
        self.records.iter().find(meets).cloned()
    }

    /// Records an access, and drops the records that it subsumes: those ordered before it that access no other bytes.
    pub(in crate::verify) fn access(&mut self, objects: &Objects, role: usize, op: OpId, access: What) {
        let What::Access { memory, time, bytes, write, by, pending, .. } = access else { return };
        let n = objects.memories.get(memory).map_or(1, |m| m.n);
        self.records.retain(|r| {
            let What::Access { memory: m, time: t, bytes: b, write: w, by: o, pending: p, .. } = r.what else {
                return true;
            };
            let same = m == memory && (t - time).rem_euclid(n) == 0 && b <= bytes;
            // A write subsumes all accesses; a read the reads of its role; a bulk store the same store of earlier iterations; an operation on
            // tensor memory those of its role that are executed before it, because it completes after them.
            let again = o == By::BulkStore && r.role == role && r.op == op;
            let later = r.role == role && objects.units.in_order(o, by);
            let seen = p == Pending::Done && r.known & !r.fences.missing & bit(role) != 0;
            // One wait covers all loads of tensor memory.
            let together = p == pending && p == Pending::Loads;
            // A record may be dropped only if whatever conflicts with it later conflicts with the new one too, and is
            // ordered behind it only by what also orders it behind the old one.
            let after = match (by, write) {
                (By::BulkStore, _) => again,
                (By::Copy | By::Tensor(_) | By::Other, true) => p == Pending::Done || later,
                (By::Copy | By::Tensor(_) | By::Other, false) => !w && r.role == role && (seen || later || together),
            };
            !(same && after)
        });
        // Not even the role itself has observed work in flight: it must wait for it like all others.
        let known = if pending == Pending::Done { bit(role) } else { 0 };
        self.records.push(Record::new(access, role, op, known));
        self.latest_reads(objects);
        self.forget();
    }

    /// Of two complete reads of one part by one role, one subsumes the other if the other accesses no other bytes and is observed wherever
    /// the first is, or will be: a read that was in flight when its role arrived at a barrier is not published there.
    pub(super) fn latest_reads(&mut self, objects: &Objects) {
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
        let by = |r: &Record| if let What::Access { by, .. } = r.what { Some(by) } else { None };
        let mut kept: Vec<Record> = Vec::with_capacity(self.records.len());
        // From the newest on: of two that stand for each other, the newer one stays.
        for record in self.records.drain(..).rev() {
            let stands = |k: &Record| match (read(k), read(&record)) {
                (Some((part, bytes)), Some((other, least))) => {
                    // The kept one is observed by fewer roles and sent to fewer phases, so that each rule demands at
                    // least as much for it.
                    let stricter = k.fences.stricter_than(record.fences) && k.known & !record.known == 0;
                    // Its role may have observed neither: then their order with its next operation depends on what they are.
                    let alike = by(k) == by(&record) || record.known & bit(record.role) != 0;
                    part == other && bytes >= least && stricter && alike && k.sent.is_subset(&record.sent)
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

    /// Drops records that all roles have observed.
    pub(super) fn forget(&mut self) {
        let all = self.everybody;
        self.records.retain(|r| {
            let matters = match r.what {
                What::Access { pending, .. } => pending != Pending::Done,
                What::Announced { .. } => true,
                // Without such a record, the state has the same meaning.
                What::Passed { .. } | What::Completed { .. } | What::Touched { .. } => false,
            };
            // A complete access that all roles have observed conflicts with nothing any more: dropping it lets the
            // state at the head of a loop repeat.
            matters || r.known & all != all || r.fences.missing != 0 || r.fences.held
        });
    }
}

/// Whether it is an operation of a wave on its local memory: these complete in order.
fn local(pending: Pending) -> bool {
    matches!(pending, Pending::Group(Class::Lgkmcnt, _))
}
