//! Sets of logical threads: each partition has one for its agents, and one for each unit that works for them.
//!
//! | set | meaning |
//! |---|---|
//! | one member | the thread that an asynchronous operation acts as: a unit is not ordered with its partition |
//! | peers | a partition with all of its units: effects that the agents cause or observe are ordered before operations that they issue later |
//!
//! Source: Triton's concurrency sanitizer, thread model: 16 partitions × 4. Here there are up to 64 × 4, so that the
//! roles of all blocks of a cluster, or all warps of a block, can each have their own.

titan_core::entity! {
    /// Agents that count as one: a role, a warp. They are assumed to be ordered among themselves.
    Partition, "partition"
}

/// The largest number of partitions of a run.
pub const MAX_PARTITIONS: usize = 64;

/// The logical threads of a partition: its agents, or a unit that works for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// The agents themselves.
    #[default]
    Base,
    /// The engine of bulk copies (TMA).
    Tma,
    /// The tensor cores (TC).
    TensorCore,
    /// Cluster launch control (CLC).
    ClusterLaunch,
}

impl Unit {
    const ALL: usize = 4;
}

/// A set of logical threads, as one bit set of partitions for each unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Mask([u64; Unit::ALL]);

/// The bit of a partition in a bit set.
pub(super) const fn bit(p: Partition) -> u64 {
    1 << (p.index() % MAX_PARTITIONS)
}

impl Mask {
    /// The set with one unit of a partition.
    pub(super) fn one(p: Partition, unit: Unit) -> Mask {
        let mut mask = Mask::default();
        mask.0[unit as usize] = bit(p);
        mask
    }

    /// The set of all units of a partition.
    pub(super) const fn peers(p: Partition) -> Mask {
        Mask::all_of(bit(p))
    }

    /// The set of all units of these partitions.
    pub(super) const fn all_of(partitions: u64) -> Mask {
        Mask([partitions; Unit::ALL])
    }

    pub(super) const fn has(&self, p: Partition, unit: Unit) -> bool {
        self.0[unit as usize] & bit(p) != 0
    }

    /// The partitions whose agents are in the set.
    pub(super) const fn base(&self) -> u64 {
        self.0[0]
    }

    pub(super) fn add(&mut self, other: Mask) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
    }
}
