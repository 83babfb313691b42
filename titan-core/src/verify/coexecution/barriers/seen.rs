//! Equality of two states of the machine up to a shift of times.

use super::super::state::Times;
use super::machine::{By, Machine, Pending, Phase, Phases, Record, Roles, What};
use super::tensor::Fences;
use crate::collections::SortedSet;
use crate::ir::OpId;

impl Machine {
    /// Whether both are equal up to a shift of times; of memory, this state may have more written, which no operation objects to.
    pub(in crate::verify) fn same(&self, other: &Machine) -> bool {
        let joined = |m: &Machine| -> Vec<(usize, usize, i64)> {
            m.joined.iter().map(|(r, (_, b, t))| (*r, *b, t - m.base(*b))).collect()
        };
        self.gone == other.gone
            && joined(self) == joined(other)
            && self.shifted() == other.shifted()
            && self.written.covers(&other.written)
    }

    /// The state with times relative to the clock of each object.
    fn shifted(&self) -> (Vec<SeenPhases>, Vec<Seen>) {
        let phase = |(i, p): (usize, &Phases)| {
            // Relative to the first phase that is not complete: each round completes equally many, so that equal states
            // have equal relative times.
            let base = self.base(i);
            let open = p.open.iter().map(|(t, phase)| (t - base, Phase { last: None, ..phase.clone() })).collect();
            (p.done.shifted(base), open)
        };
        let mut seen: Vec<Seen> = self.records.iter().map(|r| self.seen(r)).collect();
        // The order of records has no meaning.
        seen.sort();
        (self.phases.iter().enumerate().map(phase).collect(), seen)
    }

    fn seen(&self, record: &Record) -> Seen {
        let at = |object: usize, t: i64| t - self.base(object);
        let what = match record.what {
            What::Access { memory, time, bytes, write, by, pending } => {
                let pending = match pending {
                    Pending::Group(class, Some(n)) => Pending::Group(class, Some(n - self.issued(record.role, class))),
                    Pending::Phase(barrier, t) => Pending::Phase(barrier, at(barrier, t)),
                    Pending::Group(_, None) | Pending::Loads | Pending::Stores | Pending::Done => pending,
                };
                What::Access { memory, time: at(self.memory_object(memory), time), bytes, write, by, pending }
            }
            What::Completed { barrier, time } => What::Completed { barrier, time: at(barrier, time) },
            What::Passed { barrier, time } => What::Passed { barrier, time: at(barrier, time) },
            What::Announced { barrier, time } => What::Announced { barrier, time: at(barrier, time) },
            What::Touched { .. } => record.what,
        };
        // The phases that carry a record decide who will observe it, so they are part of what must repeat.
        let sent = record.sent.iter().map(|(b, t)| (*b, at(*b, *t))).collect();
        // The identity of a bulk store determines from which other stores it is disjoint.
        let store = Some(record.op).filter(|_| matches!(record.what, What::Access { by: By::BulkStore, .. }));
        (what, record.role, (record.known, record.fences), sent, store)
    }
}

/// The phases of a barrier.
type SeenPhases = (Times, Vec<(i64, Phase)>);

/// A record, without its operation if that does not matter.
type Seen = (What, usize, (Roles, Fences), SortedSet<(usize, i64)>, Option<OpId>);
