//! Vector clocks: what is ordered before what.
//!
//! Operations are numbered in the order in which they are enqueued, and those of one stream run in order: the latest number
//! of each stream says all.

use std::collections::BTreeMap;

/// The number of an operation, over all streams.
pub(crate) type OpId = u64;

/// What is known to be over, stream by stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(BTreeMap<u64, OpId>);

impl Clock {
    /// Nothing is known.
    pub(crate) const NONE: Clock = Clock(BTreeMap::new());

    /// Merges another clock into this one.
    pub(crate) fn join(&mut self, other: &Clock) {
        for (stream, op) in &other.0 {
            self.learn(*stream, *op);
        }
    }

    /// An operation of a stream is over, and all before it.
    pub(crate) fn learn(&mut self, stream: u64, op: OpId) {
        let known = self.0.entry(stream).or_insert(op);
        *known = op.max(*known);
    }

    /// Whether an operation of a stream is known to be over.
    pub(crate) fn knows(&self, stream: u64, op: OpId) -> bool {
        self.0.get(&stream).is_some_and(|known| *known >= op)
    }

    /// Forgets everything.
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
