//! The accesses that threads may have made at a point of the program.

use super::super::func::Func;
use super::super::op::Region;
use std::collections::BTreeSet;

/// A region, and whether the access writes it.
pub(super) type Touch = (Region, bool);

/// Whether two accesses by different threads conflict.
pub(super) fn conflict(func: &Func, (a, writes): Touch, (b, wrote): Touch) -> bool {
    (writes || wrote) && overlap(func, a, b)
}

/// Whether two regions overlap and no protocol orders accesses to them.
fn overlap(func: &Func, a: Region, b: Region) -> bool {
    match (a, b) {
        (Region::Ring(a), Region::Ring(b)) if a == b => false,
        (Region::Buffer(a) | Region::Ring(a), Region::Buffer(b) | Region::Ring(b)) => {
            let (a, b) = (&func.buffers[a as usize], &func.buffers[b as usize]);
            a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
        }
        (Region::Tensor(a), Region::Tensor(b)) => a == b,
        (Region::Buffer(_) | Region::Ring(_), Region::Tensor(_))
        | (Region::Tensor(_), Region::Buffer(_) | Region::Ring(_)) => false,
    }
}

/// The accesses that threads may have made at a point of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The accesses since the last barrier; in the code of a role, those of its threads.
    pub(super) touched: BTreeSet<Touch>,
    /// The current row of marks, which states the regions of an access. The flag is whether an access has followed, so that the next mark
    /// begins a new row.
    open: BTreeSet<(Touch, bool)>,
    /// The accesses of copies in flight: the buffers that they write, the tensors that they read.
    pub(super) in_flight: BTreeSet<Touch>,
    /// The reads of warpgroup MMAs in flight, and of bulk stores in flight.
    read_later: [BTreeSet<Touch>; 2],
}

/// Operations whose reads of shared memory are complete only after a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Later {
    /// MMAs of warpgroups, which read their operands.
    Mma,
    /// Bulk stores, which read their source.
    Store,
}

impl State {
    pub(super) fn join(&mut self, other: State) {
        self.touched.extend(other.touched);
        self.open.extend(other.open);
        self.in_flight.extend(other.in_flight);
        for (own, other) in self.read_later.iter_mut().zip(other.read_later) {
            own.extend(other);
        }
    }

    /// The reads in flight, of MMAs and of bulk stores.
    pub(super) fn reads_in_flight(&self) -> impl Iterator<Item = &BTreeSet<Touch>> {
        self.read_later.iter()
    }

    /// Adds what roles leave in flight, given the join of their states.
    pub(super) fn leave_in_flight(&mut self, roles: State) {
        self.in_flight.extend(roles.in_flight);
        for (own, reads) in self.read_later.iter_mut().zip(roles.read_later) {
            own.extend(reads);
        }
    }

    pub(super) fn mark(&mut self, touch: Touch) {
        self.open.retain(|(_, accessed)| !accessed);
        self.open.insert((touch, false));
    }

    /// Ends the current row.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }

    /// Records an access. Returns whether a mark covers it.
    pub(super) fn access(&mut self) -> bool {
        let row = self.row();
        self.touched.extend(&row);
        !row.is_empty()
    }

    /// Records the start of a copy between the marked regions. No barrier orders it before a wait; if a protocol orders accesses to its
    /// target, it also orders the completion. Returns whether a mark covers the target.
    pub(super) fn copy(&mut self) -> bool {
        let row = self.row();
        let marked = !row.is_empty();
        let ordered = row.iter().any(|(region, _)| matches!(region, Region::Ring(_)));
        if ordered {
            self.touched.extend(row)
        } else {
            self.in_flight.extend(row)
        }
        marked
    }

    /// Records the start of an operation that reads until a wait. Returns whether a mark covers its reads.
    pub(super) fn read_later(&mut self, what: Later) -> bool {
        let row = self.row();
        self.touched.extend(&row);
        self.of(what).extend(&row);
        !row.is_empty()
    }

    /// Records a wait after which such operations are complete, except perhaps those of the latest `n` groups.
    pub(super) fn await_readers(&mut self, what: Later, n: u32) {
        let reads = self.of(what).clone();
        self.touched.extend(reads);
        if n == 0 {
            self.of(what).clear();
        }
    }

    const fn of(&mut self, what: Later) -> &mut BTreeSet<Touch> {
        let [mmas, stores] = &mut self.read_later;
        match what {
            Later::Mma => mmas,
            Later::Store => stores,
        }
    }

    /// The regions of an access at this point.
    fn row(&mut self) -> Vec<Touch> {
        let row: Vec<Touch> = self.open.iter().map(|(touch, _)| *touch).collect();
        self.open = row.iter().map(|touch| (*touch, true)).collect();
        row
    }

    /// Records a wait after which copies are complete, except perhaps those of the latest `n` groups.
    pub(super) fn wait(&mut self, n: u32) {
        self.touched.extend(&self.in_flight);
        if n == 0 {
            self.in_flight.clear();
        }
    }
}

/// Joins the state at the end of another path.
pub(super) fn join(into: &mut Option<State>, state: State) {
    match into {
        Some(into) => into.join(state),
        None => *into = Some(state),
    }
}
