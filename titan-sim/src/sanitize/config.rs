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
    /// Loads of tensor memory, which `tcgen05.wait::ld` waits for.
    pub const TENSOR_LOAD: Work =
        Work { name: "load of tensor memory", unit: Unit::Base, ordered: false, must_end: true };
    /// Stores to tensor memory, which `tcgen05.wait::st` waits for.
    pub const TENSOR_STORE: Work =
        Work { name: "store to tensor memory", unit: Unit::Base, ordered: false, must_end: true };
    /// MMAs, copies and shifts in tensor memory, in an order that [`Config::in_order`] states; a commit arrives for them.
    pub const TENSOR_WORK: Work =
        Work { name: "operation on tensor memory", unit: Unit::Base, ordered: false, must_end: true };
    /// A commit of such operations ([`Config::arrives_for`]): its arrival may come after the block has ended.
    pub const TENSOR_COMMIT: Work = Work { name: "commit", unit: Unit::Base, ordered: false, must_end: false };
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

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Classes([u64; 4]);

impl Classes {
    fn add(&mut self, class: Class) {
        self.0[usize::from(class.0 / 64)] |= 1 << (class.0 % 64);
    }

    pub(super) fn has(self, class: Class) -> bool {
        self.0[usize::from(class.0 / 64)] >> (class.0 % 64) & 1 == 1
    }
}

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
    out_of_order: BTreeSet<SpaceId>,
    /// For each class, those after whose earlier operations its own are executed.
    in_order: BTreeMap<Class, Classes>,
    arrives_for: BTreeMap<Class, Vec<Class>>,
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

    /// Declares a memory whose operations run out of order: tensor memory. Barriers order accesses to it only with fences
    /// ([`SyncFence`](crate::engine::Event::SyncFence)): what an agent has waited for is published by its arrivals after a fence *before* a
    /// synchronization, and what it has acquired by a wait is ordered before its accesses after a fence *after* one.
    pub fn out_of_order(&mut self, space: SpaceId) -> &mut Config {
        self.out_of_order.insert(space);
        self
    }

    /// Declares that an operation of the second class is executed after one of the first class that the same agent has issued before it.
    pub fn in_order(&mut self, before: Class, after: Class) -> &mut Config {
        self.in_order.entry(after).or_default().add(before);
        self
    }

    /// Declares the classes of earlier operations of the agent for which operations of a class arrive, and so publish: `tcgen05.commit`.
    /// They also publish the accesses of other agents that the agent has observed, because these operations came after them.
    pub fn arrives_for(&mut self, class: Class, operations: Vec<Class>) -> &mut Config {
        self.arrives_for.insert(class, operations);
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

    pub(super) const fn memories_out_of_order(&self) -> &BTreeSet<SpaceId> {
        &self.out_of_order
    }

    /// The classes after whose earlier operations those of a class are executed.
    pub(super) fn executed_before(&self, class: Class) -> Classes {
        self.in_order.get(&class).copied().unwrap_or_default()
    }

    pub(super) fn covered(&self, class: Class) -> Option<&[Class]> {
        self.arrives_for.get(&class).map(Vec::as_slice)
    }

    pub(super) const fn is_strict(&self) -> bool {
        self.strict
    }

    pub(super) const fn keeps_going(&self) -> bool {
        self.keep_going
    }
}
