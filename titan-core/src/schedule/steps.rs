//! The number of steps that a search may still take.
//!
//! Deliberately absent: time. A search that measured it would find other schedules on another machine.

/// Placements in a try, for each operation.
pub(super) const PLACEMENTS: usize = 32;

/// The limit of steps is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// The number of steps that are left.
#[derive(Debug)]
pub(super) struct Steps {
    left: u64,
}

impl Steps {
    pub(super) const fn new(left: u64) -> Steps {
        Steps { left }
    }

    pub(super) const fn left(&self) -> u64 {
        self.left
    }

    /// Takes this many steps, if they are left.
    pub(super) fn take(&mut self, count: usize) -> Result<(), Exhausted> {
        // A comparison with nothing is a step, too: every loop takes some.
        let count = u64::try_from(count).unwrap_or(u64::MAX).max(1);
        // What is left only falls, and every loop of the search takes at least one step in each round: this bounds the
        // whole search.
        self.left = self.left.checked_sub(count).ok_or(Exhausted)?;
        Ok(())
    }
}
