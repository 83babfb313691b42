//! The state of agents and programs.
//!
//! Hashes leave out what has no further effect: phases are kept as parities, and only commit groups that were not waited for count.

use super::plan::CLASSES;
use super::tcgen05::Allocations;
use super::value::Val;
use crate::engine::BarrierId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use titan_core::ir::{Block, OpId};

/// The outcome of attempting an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// The operation is complete.
    On,
    /// The operation is a poll that failed: other agents should run.
    Polled,
    /// The operation must wait; the agent will attempt it again.
    Blocked,
    /// The agent has ended.
    Ended,
}

/// A position in nested control flow.
#[derive(Clone, Debug, Hash)]
pub(super) struct Frame {
    pub(super) block: Block,
    pub(super) at: usize,
    /// The operation that owns the block; `None` for the agent's outermost block.
    pub(super) op: Option<OpId>,
    /// For a counted loop: index, end, step.
    pub(super) count: Option<(i64, i64, i64)>,
}

/// The progress of a reader of a ring.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Reader {
    /// The number of times for which it has begun to read (`ttg.stage.ready`), and so the next ring time that it reads.
    pub(super) claimed: u64,
    /// All times below this one are released, and those in `beyond`.
    pub(super) below: u64,
    pub(super) beyond: BTreeSet<u64>,
}

impl Reader {
    /// Releases a time; returns whether it had not been released before.
    pub(super) fn release(&mut self, time: u64) -> bool {
        if time < self.below || !self.beyond.insert(time) {
            return false;
        }
        while self.beyond.remove(&self.below) {
            self.below += 1;
        }
        true
    }

    pub(super) fn released(&self, time: u64) -> bool {
        time < self.below || self.beyond.contains(&time)
    }
}

/// The commit groups of one class of an agent that were not waited for.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Groups {
    pub(super) open: u32,
    pub(super) committed: u32,
    /// The number of operations of each group that was not waited for, oldest first.
    pub(super) sizes: VecDeque<u32>,
}

/// An accumulator: how many of its MMAs may be in flight, and the stages that they read.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Acc {
    pub(super) keep: usize,
    /// The stages that its MMAs read: commit group, ring, ring time.
    pub(super) held: VecDeque<(u32, usize, u64)>,
}

/// The state of an agent.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Thread {
    pub(super) cta: usize,
    /// Its number in its program: agent 0 is the program's own thread.
    pub(super) local: usize,
    /// For a laid-out kernel: whether the warp is in the code of its role.
    pub(super) in_role: bool,
    pub(super) frames: Vec<Frame>,
    pub(super) env: Vec<Val>,
    /// For each ring, the next ring time to fill.
    pub(super) fill: Vec<u64>,
    pub(super) read: Vec<Reader>,
    pub(super) groups: [Groups; CLASSES],
    pub(super) accs: BTreeMap<u32, Acc>,
    /// The MMAs that were not waited for.
    pub(super) products: BTreeSet<u32>,
    /// Read permissions that were split: ring, ring time, number of parts.
    pub(super) parts: BTreeMap<(usize, u64), u8>,
    /// Staging slots that are written and not yet stored: ring, ring time.
    pub(super) written: BTreeSet<(usize, u64)>,
    /// Staging slots that are acquired and not yet written: ring, ring time.
    pub(super) taken: BTreeSet<(usize, u64)>,
    /// The number of the latest MMA or accumulator.
    pub(super) next: u32,
    /// The barrier (of all warps, or named) at which it has arrived and waits, and the parity of the phase.
    pub(super) joined: Option<(u32, bool)>,
    /// The parity of the phase of the cluster barrier at which it has arrived.
    pub(super) cluster: Option<bool>,
    pub(super) registers: Option<u32>,
    /// Tiles whose registers were written since the last fence before MMAs of warpgroups, by the numbers of their values; kept where
    /// there are such MMAs.
    pub(super) written_to: BTreeSet<usize>,
    /// Whether the agent has executed `ttg.pipeline.finalize`.
    pub(super) finalized: bool,
}

/// The contents of a slot of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Holds {
    #[default]
    Nothing,
    /// The stage of this ring time, complete or being copied.
    Stage(u64),
    Poison(u64),
}

/// A named barrier with some arrivals.
#[derive(Clone, Debug, Hash)]
pub(super) struct Named {
    pub(super) threads: u32,
    pub(super) barrier: BarrierId,
}

/// The state of a program of the cluster.
#[derive(Clone, Debug)]
pub(super) struct Cta {
    pub(super) program: [u32; 3],
    /// For each ring: the barriers Ready and Free of each slot.
    pub(super) rings: Vec<(Vec<BarrierId>, Vec<BarrierId>)>,
    pub(super) holds: Vec<Vec<Holds>>,
    /// The first barrier of each allocation of the kernel.
    pub(super) made: BTreeMap<u32, BarrierId>,
    /// Live barriers by the addresses of their words.
    pub(super) words: BTreeMap<u64, BarrierId>,
    /// Barriers that were initialised and not yet fenced, and the agent that initialised them.
    pub(super) unfenced: BTreeMap<BarrierId, usize>,
    pub(super) named: BTreeMap<u8, Named>,
    /// Counters in shared memory, by their addresses.
    pub(super) counters: BTreeMap<u64, i64>,
    /// The columns of tensor memory.
    pub(super) tensor: Allocations,
    /// The barrier of all agents of the program.
    pub(super) block: Option<BarrierId>,
}
