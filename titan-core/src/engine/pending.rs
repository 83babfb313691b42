//! Asynchronous operations under way, their commit groups, and when they complete.
//!
//! An operation is issued by an agent, in a [`Class`] (copies, matrix products, stores: the customer's division), with
//! the customer's payload that says what it will do. What it does happens when it *completes*: that may be at once, at
//! the last moment at which somebody could tell, or in between. Programs that are right are right for all of these.
//!
//! Commit groups count as on all vendors' hardware: operations since the last commit form a group, and a wait for *at
//! most n outstanding* says that all but the last n groups of that agent and class are complete. A class in which each
//! operation is a group of its own (AMD's counters) commits after each issue.

use super::agent::Agent;
use super::phase::BarrierId;
use super::rng::Rng;
use std::collections::BTreeMap;

crate::entity! {
    /// An asynchronous operation, numbered by issue.
    OpId, "op"
}

/// A kind of asynchronous operation that is waited for separately. The numbers are the customer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(pub u8);

/// When asynchronous operations have their effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Completion {
    /// At their issue.
    Early,
    /// When a wait asks for them, or when nothing else can go on.
    #[default]
    Late,
    /// At random in between, by this seed.
    Seeded(u64),
}

/// What the completion of an operation does to a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Takes bytes from its count.
    Bytes {
        /// Which.
        barrier: BarrierId,
        /// How many.
        bytes: u32,
    },
    /// Arrives once.
    Arrive {
        /// Which.
        barrier: BarrierId,
    },
}

/// An operation under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Op<X> {
    /// Whose.
    pub agent: Agent,
    /// Of what kind.
    pub class: Class,
    /// Operations of the same agent that must complete before.
    pub after: Vec<OpId>,
    /// What its completion signals.
    pub signals: Vec<Signal>,
    /// What it does.
    pub payload: X,
}

/// The groups of one agent and class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Groups {
    /// Since the last commit.
    open: Vec<OpId>,
    /// Committed groups: the first has number `first`.
    committed: Vec<Vec<OpId>>,
    first: u32,
}

/// The operations under way of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pending<X> {
    ops: BTreeMap<u32, Op<X>>,
    next: u32,
    groups: BTreeMap<(u32, Class), Groups>,
    policy: Completion,
    rng: Rng,
}

impl<X> Pending<X> {
    /// None under way.
    #[must_use]
    pub fn new(policy: Completion) -> Pending<X> {
        let seed = match policy {
            Completion::Seeded(seed) => seed,
            Completion::Early | Completion::Late => 0,
        };
        Pending { ops: BTreeMap::new(), next: 0, groups: BTreeMap::new(), policy, rng: Rng::new(seed) }
    }

    /// When operations complete.
    #[must_use]
    pub const fn policy(&self) -> Completion {
        self.policy
    }

    /// How many are under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether none is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Those under way, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (OpId, &Op<X>)> + '_ {
        self.ops.iter().map(|(id, op)| (OpId::new(*id as usize), op))
    }

    /// Begins an operation, in the open group of its agent and class.
    pub fn issue(&mut self, op: Op<X>) -> OpId {
        let id = OpId::new(self.next as usize);
        self.next += 1;
        self.groups.entry((key(op.agent), op.class)).or_default().open.push(id);
        self.ops.insert(self.next - 1, op);
        id
    }

    /// Begins an operation outside of all groups: only its signals tell of it.
    pub fn issue_ungrouped(&mut self, op: Op<X>) -> OpId {
        let id = OpId::new(self.next as usize);
        self.ops.insert(self.next, op);
        self.next += 1;
        id
    }

    /// The operations of an agent and class that are under way.
    #[must_use]
    pub fn of(&self, agent: Agent, class: Class) -> Vec<OpId> {
        self.iter().filter(|(_, op)| op.agent == agent && op.class == class).map(|(id, _)| id).collect()
    }

    /// Closes the open group, empty or not; how many the agent has committed.
    pub fn commit(&mut self, agent: Agent, class: Class) -> u32 {
        let groups = self.groups.entry((key(agent), class)).or_default();
        let group = std::mem::take(&mut groups.open);
        groups.committed.push(group);
        groups.first + u32::try_from(groups.committed.len()).unwrap_or(u32::MAX)
    }

    /// What a wait for at most `at_most` outstanding groups asks for: the operations that must complete, oldest first,
    /// and how many of the agent's groups are then complete.
    pub fn wait(&mut self, agent: Agent, class: Class, at_most: u32) -> (Vec<OpId>, u32) {
        let Some(groups) = self.groups.get_mut(&(key(agent), class)) else { return (Vec::new(), 0) };
        let done = groups.committed.len().saturating_sub(at_most as usize);
        groups.first += u32::try_from(done).unwrap_or(0);
        let first = groups.first;
        let asked = groups.committed.drain(..done).flatten();
        (asked.filter(|op| self.ops.contains_key(&key_of(*op))).collect(), first)
    }

    /// Whether a wait for at most `at_most` outstanding groups would pass without completing anything.
    #[must_use]
    pub fn passes(&self, agent: Agent, class: Class, at_most: u32) -> bool {
        self.groups.get(&(key(agent), class)).is_none_or(|g| {
            let done = g.committed.len().saturating_sub(at_most as usize);
            !g.committed[..done].iter().flatten().any(|op| self.ops.contains_key(&key_of(*op)))
        })
    }

    /// How many groups with something under way an agent has, and whether its open group has something.
    #[must_use]
    pub fn outstanding(&self, agent: Agent, class: Class) -> (usize, bool) {
        let live = |ops: &Vec<OpId>| ops.iter().any(|op| self.ops.contains_key(&key_of(*op)));
        self.groups
            .get(&(key(agent), class))
            .map_or((0, false), |g| (g.committed.iter().filter(|ops| live(ops)).count(), live(&g.open)))
    }

    /// Whether an operation may complete now.
    #[must_use]
    pub fn can_complete(&self, op: OpId) -> bool {
        self.ops.get(&key_of(op)).is_some_and(|o| !o.after.iter().any(|a| self.ops.contains_key(&key_of(*a))))
    }

    /// Takes an operation out, with those that must complete before it: in the order in which to apply them.
    pub fn take(&mut self, op: OpId) -> Vec<(OpId, Op<X>)> {
        let mut taken = Vec::new();
        let mut stack = vec![op];
        while let Some(top) = stack.last().copied() {
            let before = self.ops.get(&key_of(top)).map(|o| &o.after);
            let waits_for = before.into_iter().flatten().find(|a| self.ops.contains_key(&key_of(**a)));
            if let Some(earlier) = waits_for {
                stack.push(*earlier);
                continue;
            }
            stack.pop();
            taken.extend(self.ops.remove(&key_of(top)).map(|o| (top, o)));
        }
        taken
    }

    /// An operation that happens to complete now though nobody asked: only with a seed, and only sometimes.
    pub fn happens(&mut self) -> Option<OpId> {
        match self.policy {
            Completion::Early | Completion::Late => None,
            Completion::Seeded(_) if self.ops.is_empty() || self.rng.below(4) != 0 => None,
            Completion::Seeded(_) => {
                let n = self.rng.below(self.ops.len());
                self.ops.keys().nth(n).map(|id| OpId::new(*id as usize))
            }
        }
    }

    /// What completes when nothing else can go on: the oldest.
    #[must_use]
    pub fn oldest(&self) -> Option<OpId> {
        self.ops.keys().next().map(|id| OpId::new(*id as usize))
    }
}

fn key(agent: Agent) -> u32 {
    u32::try_from(agent.index()).unwrap_or(u32::MAX)
}

fn key_of(op: OpId) -> u32 {
    u32::try_from(op.index()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: Class = Class(0);

    fn op(agent: Agent, payload: u32) -> Op<u32> {
        Op { agent, class: COPY, after: vec![], signals: vec![], payload }
    }

    #[test]
    fn a_wait_asks_for_all_but_the_last_groups() {
        let (mut p, me, other) = (Pending::new(Completion::Late), Agent::new(0), Agent::new(1));
        let ids: Vec<_> = (0..3)
            .map(|i| {
                let id = p.issue(op(me, i));
                p.commit(me, COPY);
                id
            })
            .collect();
        p.issue(op(other, 9));
        p.issue(op(me, 3));
        assert_eq!(p.outstanding(me, COPY), (3, true));
        assert!(p.passes(me, COPY, 3) && !p.passes(me, COPY, 2) && p.passes(other, COPY, 0));
        assert_eq!(p.wait(me, COPY, 1), (vec![ids[0], ids[1]], 2));
        assert_eq!(p.take(ids[0])[0].1.payload, 0);
        assert_eq!(p.wait(me, COPY, 1), (vec![], 2), "what a wait has asked for, it does not ask for again");
        assert_eq!(p.wait(me, COPY, 0), (vec![ids[2]], 3));
        assert_eq!(p.wait(me, COPY, 0), (vec![], 3), "what is not committed is not waited for");
        assert_eq!(p.wait(other, COPY, 0), (vec![], 0));
    }

    #[test]
    fn empty_groups_count() {
        let (mut p, me) = (Pending::new(Completion::Late), Agent::new(0));
        let id = p.issue(op(me, 0));
        assert_eq!((p.commit(me, COPY), p.commit(me, COPY)), (1, 2));
        assert_eq!(p.wait(me, COPY, 1), (vec![id], 1));
    }

    #[test]
    fn what_comes_before_completes_before() {
        let (mut p, me) = (Pending::new(Completion::Late), Agent::new(0));
        let first = p.issue(op(me, 1));
        let second = p.issue(Op { after: vec![first], ..op(me, 2) });
        assert!(p.can_complete(first) && !p.can_complete(second));
        assert_eq!(p.take(second).iter().map(|(_, o)| o.payload).collect::<Vec<_>>(), [1, 2]);
        assert!(p.is_empty() && p.oldest().is_none());
    }

    #[test]
    fn only_a_seed_completes_unasked() {
        for (policy, expected) in [(Completion::Early, 0), (Completion::Late, 0), (Completion::Seeded(5), 4)] {
            let (mut p, me) = (Pending::new(policy), Agent::new(0));
            (0..4).for_each(|i| drop(p.issue(op(me, i))));
            let happened: Vec<_> = (0..100).filter_map(|_| p.happens().map(|id| p.take(id))).collect();
            assert_eq!(happened.len(), expected, "{policy:?}");
        }
    }
}
