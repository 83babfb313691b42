//! Vector clocks, which determine the operations that are ordered before a point.
//!
//! Operations are numbered in the order in which they are enqueued, and those of one stream run in order, so the latest number
//! of each stream describes all operations that are ordered before a point.

use std::collections::BTreeMap;

/// The number of an operation, over all streams.
pub(crate) type OpId = u64;

/// For each stream, the latest operation that is known to be over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(BTreeMap<u64, OpId>);

impl Clock {
    /// The clock that knows of no operation.
    pub(crate) const NONE: Clock = Clock(BTreeMap::new());

    /// Merges another clock into this one.
    pub(crate) fn join(&mut self, other: &Clock) {
        for (stream, op) in &other.0 {
            self.learn(*stream, *op);
        }
    }

    /// Records that an operation of a stream is over, and so are all before it.
    pub(crate) fn learn(&mut self, stream: u64, op: OpId) {
        let known = self.0.entry(stream).or_insert(op);
        *known = op.max(*known);
    }

    /// Whether an operation of a stream is known to be over.
    pub(crate) fn knows(&self, stream: u64, op: OpId) -> bool {
        self.0.get(&stream).is_some_and(|known| *known >= op)
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn order_is_transitive_and_partial() {
        let (mut a, mut b) = (Clock::default(), Clock::default());
        a.learn(1, 5);
        b.learn(2, 6);
        assert!(a.knows(1, 4) && !a.knows(1, 6) && !a.knows(2, 1));
        b.join(&a);
        assert!(b.knows(1, 5) && b.knows(2, 6) && !a.knows(2, 6));
        b.learn(1, 3);
        assert!(b.knows(1, 5));
    }
}
