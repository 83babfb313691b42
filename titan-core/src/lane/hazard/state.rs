//! What threads may have done where control stands.

use super::super::func::Func;
use super::super::op::Region;
use std::collections::BTreeSet;

/// A region, and whether it is written.
pub(super) type Touch = (Region, bool);

/// Whether two touches of different threads need an order.
pub(super) fn conflict(func: &Func, (a, writes): Touch, (b, wrote): Touch) -> bool {
    (writes || wrote) && overlap(func, a, b)
}

/// Whether regions have bytes in common, and not by a protocol.
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

/// What threads may have done where control stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// What was touched since the last barrier: in the code of a role by its threads, since their last barrier.
    pub(super) touched: BTreeSet<Touch>,
    /// The latest marks in a row, which say what an access touches; and whether one has followed, so that the next mark begins
    /// another row.
    open: BTreeSet<(Touch, bool)>,
    /// What copies in flight access: the buffers they write, the tensors they read.
    pub(super) in_flight: BTreeSet<Touch>,
}

impl State {
    pub(super) fn join(&mut self, other: State) {
        self.touched.extend(other.touched);
        self.open.extend(other.open);
        self.in_flight.extend(other.in_flight);
    }

    pub(super) fn mark(&mut self, touch: Touch) {
        self.open.retain(|(_, accessed)| !accessed);
        self.open.insert((touch, false));
    }

    /// No row goes on.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }

    /// Whether a mark says what is touched.
    pub(super) fn access(&mut self) -> bool {
        let row = self.row();
        self.touched.extend(&row);
        !row.is_empty()
    }

    /// A copy begins between the regions that are marked. Until it is waited for, no barrier settles it; but if a protocol
    /// orders where it goes, then also that it is over. Whether a mark says where it goes.
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

    /// What an access here touches.
    fn row(&mut self) -> Vec<Touch> {
        let row: Vec<Touch> = self.open.iter().map(|(touch, _)| *touch).collect();
        self.open = row.iter().map(|touch| (*touch, true)).collect();
        row
    }

    /// Copies have arrived, except perhaps the latest `n` groups.
    pub(super) fn wait(&mut self, n: u32) {
        self.touched.extend(&self.in_flight);
        if n == 0 {
            self.in_flight.clear();
        }
    }
}

/// Joins what comes in from one more side.
pub(super) fn join(into: &mut Option<State>, state: State) {
    match into {
        Some(into) => into.join(state),
        None => *into = Some(state),
    }
}
