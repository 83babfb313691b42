//! The state of agents and programs.
//!
//! Everything hashes without what is over: of phases only parities are kept, of groups only those that were not waited for.

use super::plan::CLASSES;
use super::value::Val;
use crate::engine::BarrierId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use titan_core::ir::{Block, OpId};

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// It is done.
    On,
    /// It is done, and found that there is nothing to do yet: others should run.
    Polled,
    /// It waits; the agent will try again.
    Blocked,
    /// The agent has ended.
    Ended,
}

/// A place in nested control flow.
#[derive(Clone, Debug, Hash)]
pub(super) struct Frame {
    pub(super) block: Block,
    pub(super) at: usize,
    /// The operation whose block this is; `None` is the agent's outermost.
    pub(super) op: Option<OpId>,
    /// Of a counted loop: the index, the end, the step.
    pub(super) count: Option<(i64, i64, i64)>,
}

/// What a reader of a ring has done.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Reader {
    pub(super) claimed: u64,
    /// All times below are given back, and these.
    pub(super) below: u64,
    pub(super) beyond: BTreeSet<u64>,
}

impl Reader {
    /// Gives a time back; whether it was not before.
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

/// The groups of one class of an agent that were not waited for.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Groups {
    pub(super) open: u32,
    pub(super) committed: u32,
    /// Operations of each group that was not waited for, the oldest first.
    pub(super) sizes: VecDeque<u32>,
}

/// An accumulator: how many products may be unread, and the stages that they hold.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Acc {
    pub(super) keep: usize,
    /// Group, ring, time.
    pub(super) held: VecDeque<(u32, usize, u64)>,
}

/// An agent's own state.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Thread {
    pub(super) cta: usize,
    /// Its number in its program: 0 is the program's own thread.
    pub(super) local: usize,
    /// Whether a warp of a kernel that is laid out is in the code of its role.
    pub(super) in_role: bool,
    pub(super) frames: Vec<Frame>,
    pub(super) env: Vec<Val>,
    /// For each ring, the next time to fill.
    pub(super) fill: Vec<u64>,
    pub(super) read: Vec<Reader>,
    pub(super) groups: [Groups; CLASSES],
    pub(super) accs: BTreeMap<u32, Acc>,
    /// Products that were not waited for.
    pub(super) products: BTreeSet<u32>,
    /// Rights to read that are in parts: ring, time, how many.
    pub(super) parts: BTreeMap<(usize, u64), u8>,
    /// Staging slots that are written and not stored: ring, time.
    pub(super) written: BTreeSet<(usize, u64)>,
    /// Staging slots that are taken and not written: ring, time.
    pub(super) taken: BTreeSet<(usize, u64)>,
    /// The number of the next product or accumulator.
    pub(super) next: u32,
    /// The barrier at which it has arrived and waits, and the parity.
    pub(super) met: Option<(u32, bool)>,
    /// The parity of the cluster's barrier at which it has arrived.
    pub(super) cluster: Option<bool>,
    pub(super) registers: Option<u32>,
    /// Whether it has said that nothing of it is under way any more.
    pub(super) finalized: bool,
}

/// What a slot of a ring holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Holds {
    #[default]
    Nothing,
    /// The stage of this time, or what is on its way.
    Stage(u64),
    Poison(u64),
}

/// A named barrier that gathers.
#[derive(Clone, Debug, Hash)]
pub(super) struct Named {
    pub(super) threads: u32,
    pub(super) barrier: BarrierId,
}

/// A program of the cluster.
#[derive(Clone, Debug)]
pub(super) struct Cta {
    pub(super) program: [u32; 3],
    /// For each ring: barriers Ready and Free of each slot.
    pub(super) rings: Vec<(Vec<BarrierId>, Vec<BarrierId>)>,
    pub(super) holds: Vec<Vec<Holds>>,
    /// The first barrier of each allocation of the kernel.
    pub(super) made: BTreeMap<u32, BarrierId>,
    /// Where the words of live barriers are.
    pub(super) words: BTreeMap<u64, BarrierId>,
    /// Barriers that were initialised and not made known, and by whom.
    pub(super) unfenced: BTreeMap<BarrierId, usize>,
    pub(super) named: BTreeMap<u8, Named>,
    /// Counters in shared memory, by their addresses.
    pub(super) counters: BTreeMap<u64, i64>,
    /// Where all agents of the program meet.
    pub(super) block: Option<BarrierId>,
}
