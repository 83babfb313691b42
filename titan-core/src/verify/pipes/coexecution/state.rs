//! Where everybody is: rings, roles and what they hold.
//!
//! Times are counted from the start of what is looked at. Two states are the same if they differ only by a shift of the times
//! of each ring: that is how one iteration of a loop stands for all.

use super::claims::Pairs;
use super::linear::{Facts, Linear};
use super::values::Env;
use crate::ir::{Block, Class, ForKind, OpId, Pipe, Value};
use crate::verify::barriers::machine::Machine;
use std::collections::{BTreeMap, BTreeSet};

/// Times at which something has happened: all below `low`, and some above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::verify) struct Times {
    pub(in crate::verify) low: i64,
    above: BTreeSet<i64>,
}

impl Times {
    pub(in crate::verify) fn has(&self, t: i64) -> bool {
        t < self.low || self.above.contains(&t)
    }

    pub(in crate::verify) fn add(&mut self, t: i64) {
        self.above.insert(t);
        while self.above.remove(&self.low) {
            self.low += 1;
        }
    }

    pub(in crate::verify) fn shifted(&self, by: i64) -> Times {
        Times { low: self.low - by, above: self.above.iter().map(|t| t - by).collect() }
    }
}

/// One reader of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::verify) struct Reader {
    /// Which role.
    pub(in crate::verify) role: usize,
    /// Its clock.
    pub(in crate::verify) claimed: i64,
    pub(in crate::verify) released: Times,
}

/// A ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::verify) struct Ring {
    /// Its role that fills.
    pub(in crate::verify) filler: Option<usize>,
    /// The filling side's clock.
    pub(in crate::verify) acquired: i64,
    pub(in crate::verify) filled: Times,
    /// Several readers, or the stores of a staging ring.
    pub(in crate::verify) readers: Vec<Reader>,
}

impl Ring {
    /// Whether all slots are free: what was acquired was filled, and every reader has read and released it.
    pub(in crate::verify) fn is_empty(&self) -> bool {
        let all = self.acquired;
        self.filled.low == all && self.readers.iter().all(|r| r.claimed == all && r.released.low == all)
    }

    fn base(&self) -> i64 {
        self.readers.iter().map(|r| r.released.low).min().unwrap_or(self.filled.low)
    }

    fn shifted(&self) -> Ring {
        let by = self.base();
        let readers = self.readers.iter().map(|r| Reader {
            role: r.role,
            claimed: r.claimed - by,
            released: r.released.shifted(by),
        });
        Ring {
            filler: self.filler,
            acquired: self.acquired - by,
            filled: self.filled.shifted(by),
            readers: readers.collect(),
        }
    }
}

/// What a token names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::verify) enum TokenState {
    /// One time of a ring.
    Time(Pipe, i64),
    /// The stages that an accumulator has not given back, oldest first.
    Acc(Vec<(Pipe, i64)>),
    /// A product: no time of its own.
    Mma,
}

/// A place in a role.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Frame {
    /// The next operation of a block.
    Block(Block, usize),
    /// The head of a loop.
    Loop(Loop),
}

/// What the index of a loop is.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Index {
    /// So much from so much on.
    Steps { lo: Linear, step: i64 },
    /// Iterations that are dealt to programs, or a step that is not known: equal ranges have equal indices.
    Dealt(ForKind, [Linear; 3]),
}

/// A loop that is being run.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Loop {
    pub(in crate::verify) op: OpId,
    pub(in crate::verify) index: Index,
    /// Iterations so far, and in all.
    pub(in crate::verify) done: Linear,
    pub(in crate::verify) total: Linear,
    /// Iterations that are run before its role is looked at again.
    pub(in crate::verify) quota: i64,
    /// Iterations that were taken off the front, one by one, since others were taken together.
    pub(in crate::verify) peeled: usize,
}

impl Loop {
    pub(in crate::verify) fn left(&self) -> Linear {
        self.total.minus(&self.done)
    }
}

/// What a value names that is good for one iteration.
#[derive(Clone, Copy, Debug)]
pub(in crate::verify) enum Mark {
    /// A phase of a barrier.
    Phase(usize, i64),
    /// A group.
    Group(Class, i64),
}

/// A role on its way.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Role {
    /// Innermost last; none when it has ended.
    pub(in crate::verify) frames: Vec<Frame>,
    pub(in crate::verify) env: Env,
    pub(in crate::verify) tokens: BTreeMap<Value, TokenState>,
    /// States of barriers and tokens of groups, with the iteration in which they were made.
    pub(in crate::verify) marks: BTreeMap<Value, (Mark, u32)>,
    /// What slots and rounds stand for, in barrier programs.
    pub(super) pairs: Pairs,
}

/// Everything.
#[derive(Clone, Debug)]
pub(in crate::verify) struct State {
    pub(in crate::verify) rings: Vec<Ring>,
    /// What is added to the times of readers and of the filler, by ring, to get those of the whole kernel.
    pub(in crate::verify) clocks: Vec<[Linear; 2]>,
    pub(in crate::verify) roles: Vec<Role>,
    pub(in crate::verify) facts: Facts,
    pub(in crate::verify) machine: Machine,
}

impl State {
    /// Whether both are at the same place, but for the times that have passed.
    pub(in crate::verify) fn same(&self, other: &State, roles: &[usize]) -> bool {
        let rings = self.rings.iter().zip(&other.rings).all(|(a, b)| a.shifted() == b.shifted());
        let held = |state: &State, held: &TokenState| {
            let shift = |(p, t): &(Pipe, i64)| (*p, t - state.rings.get(p.index()).map_or(0, Ring::base));
            match held {
                TokenState::Time(p, t) => TokenState::Time(*p, shift(&(*p, *t)).1),
                TokenState::Acc(list) => TokenState::Acc(list.iter().map(shift).collect()),
                TokenState::Mma => TokenState::Mma,
            }
        };
        let tokens = |state: &State, role: usize| -> Vec<(Value, TokenState)> {
            state.roles[role].tokens.iter().map(|(v, h)| (*v, held(state, h))).collect()
        };
        let pairs = |state: &State, role: usize| {
            state.roles[role].pairs.shifted(|pipe| state.rings.get(pipe.index()).map_or(0, Ring::base))
        };
        let tokens = |state: &State, role: usize| (tokens(state, role), pairs(state, role));
        rings && self.machine.same(&other.machine) && roles.iter().all(|r| tokens(self, *r) == tokens(other, *r))
    }
}
