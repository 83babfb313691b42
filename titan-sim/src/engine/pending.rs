//! Asynchronous operations in flight, their commit groups, and when they complete.
//!
//! An operation is issued by an agent, in a [`Class`] (copies, MMAs, stores: defined by the client), with a payload of the
//! client that describes its effect. The effect happens when the operation *completes*: at its issue, at the last moment at
//! which a difference could be observed, or in between. A correct program is correct for all of these.
//!
//! Commit groups are counted as on hardware: operations since the last commit form a group, and after a wait for *at
//! most n outstanding* all but the last n groups of that agent and class are complete. A class in which each
//! operation is a group of its own (AMD's counters) commits after each issue.

use super::agent::Agent;
use super::phase::BarrierId;
use super::rng::Rng;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

titan_core::entity! {
    /// An asynchronous operation, numbered by issue.
    OpId, "op"
}

/// A kind of asynchronous operation that is waited for separately. The client assigns the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u8);

/// The policy that decides when asynchronous operations complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Completion {
    /// Operations complete at their issue.
    Early,
    /// Operations complete when a wait requires them, or when no agent can make progress otherwise.
    #[default]
    Late,
    /// Operations complete at random times in between, determined by this seed.
    Seeded(u64),
}

/// A signal to a barrier that an operation gives when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Completes bytes of the barrier's transaction count.
    Bytes {
        /// The barrier.
        barrier: BarrierId,
        /// The number of bytes.
        bytes: u32,
    },
    /// Arrives once at the barrier.
    Arrive {
        /// The barrier.
        barrier: BarrierId,
    },
}

/// An operation in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Op<X> {
    /// The agent that issued it.
    pub agent: Agent,
    /// The class of the operation.
    pub class: Class,
    /// Operations of the same agent that must complete before this one.
    pub after: Vec<OpId>,
    /// The signals of its completion.
    pub signals: Vec<Signal>,
    /// The effect of the operation, defined by the client.
    pub payload: X,
}

/// The groups of one agent and class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Groups {
    /// The operations since the last commit.
    open: Vec<OpId>,
    /// Committed groups that no wait has required yet; `first` groups came before them.
    committed: VecDeque<Vec<OpId>>,
    first: u32,
}

/// The operations in flight of a machine.
///
/// The hash leaves out the order in which different agents issued, and completed operations: two interleavings that lead to the
/// same operations in flight hash equally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending<X> {
    /// The operations from number `first` on; `None` for a complete one. The front is never `None`.
    ops: VecDeque<Option<Op<X>>>,
    first: usize,
    live: usize,
    groups: BTreeMap<(u32, Class), Groups>,
    policy: Completion,
    rng: Rng,
}

impl<X> Pending<X> {
    /// Creates a machine's operations with none in flight.
    #[must_use]
    pub fn new(policy: Completion) -> Pending<X> {
        let seed = match policy {
            Completion::Seeded(seed) => seed,
            Completion::Early | Completion::Late => 0,
        };
        let (ops, groups) = (VecDeque::new(), BTreeMap::new());
        Pending { ops, first: 0, live: 0, groups, policy, rng: Rng::new(seed) }
    }

    /// The operation with this number, if it is in flight.
    #[must_use]
    pub fn get(&self, op: OpId) -> Option<&Op<X>> {
        op.index().checked_sub(self.first).and_then(|i| self.ops.get(i)).and_then(Option::as_ref)
    }

    fn remove(&mut self, op: OpId) -> Option<Op<X>> {
        let removed = op.index().checked_sub(self.first).and_then(|i| self.ops.get_mut(i)).and_then(Option::take);
        self.live -= usize::from(removed.is_some());
        while self.ops.front().is_some_and(Option::is_none) {
            self.ops.pop_front();
            self.first += 1;
        }
        removed
    }

    /// The policy that decides when operations complete.
    #[must_use]
    pub const fn policy(&self) -> Completion {
        self.policy
    }

    /// The number of operations in flight.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.live
    }

    /// Whether no operation is in flight.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The operations in flight, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (OpId, &Op<X>)> + '_ {
        let id = |i: usize| OpId::new(self.first + i);
        self.ops.iter().enumerate().filter_map(move |(i, op)| op.as_ref().map(|op| (id(i), op)))
    }

    /// Issues an operation, in the open group of its agent and class.
    pub fn issue(&mut self, op: Op<X>) -> OpId {
        let key = (key(op.agent), op.class);
        let id = self.issue_ungrouped(op);
        self.groups.entry(key).or_default().open.push(id);
        id
    }

    /// Issues an operation outside of all groups: only its signals report its completion.
    pub fn issue_ungrouped(&mut self, op: Op<X>) -> OpId {
        self.ops.push_back(Some(op));
        self.live += 1;
        OpId::new(self.first + self.ops.len() - 1)
    }

    /// The operations in flight of an agent and class.
    #[must_use]
    pub fn of(&self, agent: Agent, class: Class) -> Vec<OpId> {
        self.iter().filter(|(_, op)| op.agent == agent && op.class == class).map(|(id, _)| id).collect()
    }

    /// Commits the open group, empty or not; returns the number of groups that the agent has committed.
    pub fn commit(&mut self, agent: Agent, class: Class) -> u32 {
        let groups = self.groups.entry((key(agent), class)).or_default();
        let group = std::mem::take(&mut groups.open);
        groups.committed.push_back(group);
        groups.first + u32::try_from(groups.committed.len()).unwrap_or(u32::MAX)
    }

    /// The requirement of a wait for at most `at_most` outstanding groups: the operations that must complete, oldest first,
    /// and how many of the agent's groups are then complete.
    pub fn wait(&mut self, agent: Agent, class: Class, at_most: u32) -> (Vec<OpId>, u32) {
        let Some(groups) = self.groups.get_mut(&(key(agent), class)) else { return (Vec::new(), 0) };
        let done = groups.committed.len().saturating_sub(at_most as usize);
        groups.first += u32::try_from(done).unwrap_or(0);
        let first = groups.first;
        let asked: Vec<OpId> = groups.committed.drain(..done).flatten().collect();
        (asked.into_iter().filter(|op| self.get(*op).is_some()).collect(), first)
    }

    /// Whether a wait for at most `at_most` outstanding groups would pass without completing anything.
    #[must_use]
    pub fn passes(&self, agent: Agent, class: Class, at_most: u32) -> bool {
        self.groups.get(&(key(agent), class)).is_none_or(|g| {
            let done = g.committed.len().saturating_sub(at_most as usize);
            !g.committed.iter().take(done).flatten().any(|op| self.get(*op).is_some())
        })
    }

    /// The number of an agent's groups with operations in flight, and whether its open group has any.
    #[must_use]
    pub fn outstanding(&self, agent: Agent, class: Class) -> (usize, bool) {
        let live = |ops: &Vec<OpId>| ops.iter().any(|op| self.get(*op).is_some());
        self.groups
            .get(&(key(agent), class))
            .map_or((0, false), |g| (g.committed.iter().filter(|ops| live(ops)).count(), live(&g.open)))
    }

    /// The operations in flight that must complete before one that waits for these: they, and those that they wait for.
    #[must_use]
    pub fn before(&self, these: &[OpId]) -> Vec<OpId> {
        let (mut all, mut open) = (Vec::new(), these.to_vec());
        while let Some(op) = open.pop() {
            if let Some(found) = self.get(op).filter(|_| !all.contains(&op)) {
                all.push(op);
                open.extend(&found.after);
            }
        }
        all
    }

    /// Whether an operation may complete now.
    #[must_use]
    pub fn can_complete(&self, op: OpId) -> bool {
        self.get(op).is_some_and(|o| !o.after.iter().any(|a| self.get(*a).is_some()))
    }

    /// Removes an operation, with those that must complete before it, in the order in which to apply them.
    pub fn take(&mut self, op: OpId) -> Vec<(OpId, Op<X>)> {
        let mut taken = Vec::new();
        let mut stack = vec![op];
        while let Some(top) = stack.last().copied() {
            let before = self.get(top).map(|o| &o.after);
            let waits_for = before.into_iter().flatten().find(|a| self.get(**a).is_some());
            if let Some(earlier) = waits_for {
                stack.push(*earlier);
                continue;
            }
            stack.pop();
            taken.extend(self.remove(top).map(|o| (top, o)));
        }
        taken
    }

    /// Chooses an operation that completes now without a wait; only with [`Completion::Seeded`], and only sometimes.
    pub fn happens(&mut self) -> Option<OpId> {
        match self.policy {
            Completion::Early | Completion::Late => None,
            Completion::Seeded(_) if self.is_empty() || self.rng.below(4) != 0 => None,
            Completion::Seeded(_) => {
                let n = self.rng.below(self.live);
                self.iter().nth(n).map(|(id, _)| id)
            }
        }
    }

    /// The operation to complete when no agent can make progress: the oldest.
    #[must_use]
    pub fn oldest(&self) -> Option<OpId> {
        self.iter().next().map(|(id, _)| id)
    }
}

fn key(agent: Agent) -> u32 {
    u32::try_from(agent.index()).unwrap_or(u32::MAX)
}

impl<X: Hash> Hash for Pending<X> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Operations are numbered by agent and class, and within those by issue, so that the interleaving of agents does not matter.
        let mut order: Vec<(OpId, &Op<X>)> = self.iter().collect();
        order.sort_by_key(|(id, op)| (op.agent, op.class, *id));
        let number = |id: &OpId| order.iter().position(|(o, _)| o == id);
        for (_, op) in &order {
            let after: Vec<usize> = op.after.iter().filter_map(number).collect();
            (op.agent, op.class, after, &op.signals, &op.payload).hash(state);
        }
        for (key, groups) in &self.groups {
            let numbers = |ops: &Vec<OpId>| ops.iter().filter_map(number).collect::<Vec<_>>();
            let committed: Vec<Vec<usize>> = groups.committed.iter().map(numbers).collect();
            let live = committed.iter().position(|g| !g.is_empty()).unwrap_or(committed.len());
            (key, numbers(&groups.open), &committed[live..]).hash(state);
        }
        (self.policy, &self.rng).hash(state);
    }
}
