//! The accesses that threads may have made at a point of the program.

use super::super::func::Func;
use super::super::op::Region;
use crate::collections::SortedSet;

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
    pub(super) touched: SortedSet<Touch>,
    /// The current row of marks, which states the regions of an access. The flag is whether an access has followed, so that the next mark
    /// begins a new row.
    open: SortedSet<(Touch, bool)>,
    /// The accesses of copies in flight: the buffers that they write, the tensors that they read.
    pub(super) in_flight: SortedSet<Touch>,
    /// The reads of MMAs of warpgroups in flight, and those of bulk stores.
    pub(super) mmas: Reads,
    pub(super) stores: Reads,
}

/// Reads in flight, by the number of groups committed since: those at 0 are in no group yet, those at the maximum, [`OLDEST`], may be older.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reads(SortedSet<(usize, Touch)>);

/// The maximum age of a group.
const OLDEST: usize = 8;

impl Reads {
    /// Makes a group of the operations since the last one.
    pub(super) fn commit(&mut self) {
        self.0 = self.0.iter().map(|(age, touch)| ((age + 1).min(OLDEST), *touch)).collect();
    }

    /// Takes the reads that are complete when all groups but the latest `n` are.
    fn complete(&mut self, n: u32) -> SortedSet<Touch> {
        // Groups of the maximum age may be older than it says, and then are complete.
        let (complete, left): (SortedSet<_>, _) =
            self.0.iter().partition(|(age, _)| *age > n as usize || *age == OLDEST);
        let perhaps = complete.iter().filter(|(age, _)| *age <= n as usize).copied();
        self.0 = perhaps.chain(left).collect();
        complete.into_iter().map(|(_, touch)| touch).collect()
    }

    fn all(&self) -> impl Iterator<Item = Touch> {
        self.0.iter().map(|(_, touch)| *touch)
    }
}

impl State {
    pub(super) fn join(&mut self, other: State) {
        self.touched.extend(other.touched);
        self.open.extend(other.open);
        self.in_flight.extend(other.in_flight);
        self.mmas.0.extend(other.mmas.0);
        self.stores.0.extend(other.stores.0);
    }

    /// The reads in flight, of MMAs and of bulk stores.
    pub(super) fn reads_in_flight(&self) -> SortedSet<Touch> {
        self.mmas.all().chain(self.stores.all()).collect()
    }

    /// Adds what roles leave in flight, given the join of their states.
    pub(super) fn leave_in_flight(&mut self, roles: State) {
        self.in_flight.extend(roles.in_flight);
        self.mmas.0.extend(roles.mmas.0);
        self.stores.0.extend(roles.stores.0);
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

    /// Records the start of an MMA of a warpgroup. Returns whether a mark covers its reads.
    pub(super) fn multiply(&mut self) -> bool {
        let row = self.row();
        self.mmas.0.extend(row.iter().map(|touch| (0, *touch)));
        self.touched.extend(&row);
        !row.is_empty()
    }

    /// Records the start of a bulk store. Returns whether a mark covers its source.
    pub(super) fn store(&mut self) -> bool {
        let row = self.row();
        self.stores.0.extend(row.iter().map(|touch| (0, *touch)));
        self.touched.extend(&row);
        !row.is_empty()
    }

    /// Records a wait after which MMAs are complete, except perhaps those of the latest `n` groups.
    pub(super) fn await_mmas(&mut self, n: u32) {
        let complete = self.mmas.complete(n);
        self.touched.extend(complete);
    }

    /// Records a wait after which bulk stores have read their sources, except perhaps those of the latest `n` groups.
    pub(super) fn await_stores(&mut self, n: u32) {
        let complete = self.stores.complete(n);
        self.touched.extend(complete);
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
