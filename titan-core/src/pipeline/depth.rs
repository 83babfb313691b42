//! The depth of a pipelined loop, by a rule.
//!
//! As many slots as fit, at least two and at most a given number; the prefetch distance is one less than the number of slots, so that a
//! slot is free when it is needed. More slots hide more latency, but take shared memory from other programs on the same multiprocessor; the
//! caller chooses the maximum.

/// The depth of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// The number of slots, D.
    pub slots: u32,
}

impl Depth {
    /// The prefetch distance, P.
    #[must_use]
    pub const fn distance(self) -> u32 {
        self.slots.saturating_sub(1)
    }
}

/// The depths to try for a loop, by the size of a stage and the available memory in bytes, the deepest first. Empty if two slots do not
/// fit, or if the loop has fewer than two iterations.
#[must_use]
pub fn depths(stage_bytes: u64, shared_bytes: u64, trips: Option<i64>, most: u32) -> Vec<Depth> {
    let fit = shared_bytes.checked_div(stage_bytes.max(1)).unwrap_or(0);
    let useful = trips.map_or(u64::from(most), |n| u64::try_from(n).unwrap_or(0));
    let most = fit.min(u64::from(most)).min(useful);
    (2..=u32::try_from(most).unwrap_or(0)).rev().map(|slots| Depth { slots }).collect()
}
