//! The client's configuration: partitions, the owners of memory, the properties of asynchronous operations.

use super::mask::{MAX_PARTITIONS, Partition, Unit};
use crate::engine::{Agent, Class, RendezvousId, SpaceId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The properties of a class of asynchronous operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Work {
    /// The name of the class in reports.
    pub name: &'static str,
    /// The unit that performs the operation. [`Unit::Base`]: no unit of its own; no thread sees its effects before it is waited for.
    pub unit: Unit,
    /// Whether operations of one partition have their effects in the order of issue: then a later one is ordered after
    /// an earlier one without a wait.
    pub ordered: bool,
    /// Whether the operation must be known to be complete before the block ends whose memory it uses.
    pub must_end: bool,
}

impl Work {
    /// `cp.async`: counted in commit groups, or by an arrival.
    pub const CP_ASYNC: Work = Work { name: "cp.async", unit: Unit::Base, ordered: false, must_end: true };
    /// `wgmma.mma_async`: its reads of shared memory, in commit groups.
    pub const WGMMA: Work = Work { name: "wgmma", unit: Unit::TensorCore, ordered: true, must_end: true };
    /// `tcgen05.mma`, `tcgen05.cp`, and `tcgen05.commit`, which arrives for all of them.
    pub const TCGEN05: Work = Work { name: "tcgen05", unit: Unit::TensorCore, ordered: true, must_end: true };
    /// Bulk copies to shared memory, which take bytes from a barrier.
    pub const TMA_LOAD: Work = Work { name: "TMA load", unit: Unit::Tma, ordered: false, must_end: true };
    /// Bulk copies from shared memory, in bulk groups.
    pub const TMA_STORE: Work = Work { name: "TMA store", unit: Unit::Tma, ordered: false, must_end: true };
    /// `clusterlaunchcontrol.try_cancel`: its answer is written to shared memory.
    pub const CLUSTER_LAUNCH: Work =
        Work { name: "cluster launch control", unit: Unit::ClusterLaunch, ordered: false, must_end: true };
    /// Copies from global memory to the local data share on AMD: they complete in order, counted by `vmcnt`.
    pub const AMD_COPY: Work = Work { name: "copy to LDS", unit: Unit::ClusterLaunch, ordered: true, must_end: true };
    /// AMD's tensor data mover: in order, with a counter of its own.
    pub const AMD_TDM: Work = Work { name: "tensor data mover", unit: Unit::Tma, ordered: true, must_end: true };
}

/// A class that was not declared: the strictest rules.
const UNDECLARED: Work = Work { name: "asynchronous operation", ..Work::CP_ASYNC };

/// The error for more partitions than [`MAX_PARTITIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPartitions;

impl fmt::Display for TooManyPartitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the sanitizer distinguishes at most {MAX_PARTITIONS} partitions")
    }
}

impl std::error::Error for TooManyPartitions {}

/// The agents and memories of a run, and which accesses need fences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The block of each partition.
    ctas: Vec<u32>,
    agents: Vec<Partition>,
    homes: BTreeMap<SpaceId, u32>,
    classes: BTreeMap<Class, Work>,
    relaxed: BTreeSet<RendezvousId>,
    strict: bool,
    keep_going: bool,
}

impl Config {
    /// A configuration without agents.
    #[must_use]
    pub fn new() -> Config {
        Config::default()
    }

    /// A configuration of this number of agents, each a partition of its own, all of block 0.
    ///
    /// # Errors
    /// [`TooManyPartitions`].
    pub fn one_each(agents: usize) -> Result<Config, TooManyPartitions> {
        let mut config = Config::new();
        for _ in 0..agents {
            let p = config.partition(0)?;
            config.agents(p, 1);
        }
        Ok(config)
    }

    /// Adds a partition to a block.
    ///
    /// # Errors
    /// [`TooManyPartitions`].
    pub fn partition(&mut self, cta: u32) -> Result<Partition, TooManyPartitions> {
        if self.ctas.len() >= MAX_PARTITIONS {
            return Err(TooManyPartitions);
        }
        self.ctas.push(cta);
        Ok(Partition::new(self.ctas.len() - 1))
    }

    /// Adds the next `n` agents, in the order of the engine's numbers, to a partition.
    pub fn agents(&mut self, partition: Partition, n: usize) -> &mut Config {
        self.agents.extend(std::iter::repeat_n(partition, n));
        self
    }

    /// Declares a space as the shared memory of a block. Other spaces are global memory.
    pub fn home(&mut self, space: SpaceId, cta: u32) -> &mut Config {
        self.homes.insert(space, cta);
        self
    }

    /// Declares the properties of a class of asynchronous operations.
    pub fn class(&mut self, class: Class, work: Work) -> &mut Config {
        self.classes.insert(class, work);
        self
    }

    /// Declares a rendezvous that orders nothing: `barrier.cluster.arrive.relaxed`.
    pub fn relaxed(&mut self, rendezvous: RendezvousId) -> &mut Config {
        self.relaxed.insert(rendezvous);
        self
    }

    /// Sets whether a read through the asynchronous proxy needs a fence after a read through the generic one.
    pub fn strict(&mut self, strict: bool) -> &mut Config {
        self.strict = strict;
        self
    }

    /// Sets whether findings are collected; otherwise the first one stops the run.
    pub fn keep_going(&mut self, keep_going: bool) -> &mut Config {
        self.keep_going = keep_going;
        self
    }

    pub(super) fn n_agents(&self) -> usize {
        self.agents.len()
    }

    pub(super) fn n_partitions(&self) -> usize {
        self.ctas.len()
    }

    pub(super) fn partition_of(&self, agent: Agent) -> Option<Partition> {
        self.agents.get(agent.index()).copied()
    }

    pub(super) fn cta_of(&self, p: Partition) -> u32 {
        self.ctas.get(p.index()).copied().unwrap_or(0)
    }

    pub(super) fn home_of(&self, space: SpaceId) -> Option<u32> {
        self.homes.get(&space).copied()
    }

    pub(super) fn work(&self, class: Class) -> Work {
        self.classes.get(&class).copied().unwrap_or(UNDECLARED)
    }

    pub(super) fn is_relaxed(&self, rendezvous: RendezvousId) -> bool {
        self.relaxed.contains(&rendezvous)
    }

    pub(super) const fn is_strict(&self) -> bool {
        self.strict
    }

    pub(super) const fn keeps_going(&self) -> bool {
        self.keep_going
    }
}
