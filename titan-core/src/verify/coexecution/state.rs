//! The state of co-execution: rings, roles and their tokens.
//!
//! Times are relative to the start of the current analysis. Two states are equal if they differ only by a shift of the times of each ring;
//! therefore one iteration of a loop can represent all.

use super::barriers::machine::Machine;
use super::linear::{Facts, Linear};
use super::rings::pairs::Pairs;
use super::values::Env;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, Class, ForKind, OpId, Pipe, Value};

/// A set of times: all below `low`, and some above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::verify) struct Times {
    pub(in crate::verify) low: i64,
    above: SortedSet<i64>,
}

impl Times {
    pub(in crate::verify) fn has(&self, t: i64) -> bool {
        t < self.low || self.above.contains(&t)
    }

    pub(in crate::verify) fn add(&mut self, t: i64) {
        // Times may be completed out of order, as by two stages that are released in the other order. With low = 3,
        // adding 4 gives {4} above, and adding 3 then raises low to 5. Each round of the loop takes one number out of
        // `above`, so it ends.
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
    /// The number of its role.
    pub(in crate::verify) role: usize,
    /// Its clock: the next time for which it creates a wait.
    pub(in crate::verify) claimed: i64,
    pub(in crate::verify) released: Times,
}

/// The state of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::verify) struct Ring {
    /// The role that fills it.
    pub(in crate::verify) filler: Option<usize>,
    /// The clock of the filling side.
    pub(in crate::verify) acquired: i64,
    pub(in crate::verify) filled: Times,
    /// Several readers, or the stores of a staging ring.
    pub(in crate::verify) readers: Vec<Reader>,
}

impl Ring {
    /// Whether all slots are free: every acquired slot was filled, and every reader has released it.
    pub(in crate::verify) fn is_empty(&self) -> bool {
        let all = self.acquired;
        self.filled.low == all && self.readers.iter().all(|r| r.claimed == all && r.released.low == all)
    }

    fn base(&self) -> i64 {
        self.readers.iter().map(|r| r.released.low).min().unwrap_or(self.filled.low)
    }

    fn shifted(&self) -> Ring {
        // The least time that some reader has not released. All other times are near to it, at most the number of slots
        // away, so that in a loop which fills and reads equally often they are the same in each round, relative to it.
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

/// The state of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::verify) enum TokenState {
    /// A time of a ring.
    Time(Pipe, i64),
    /// The stages that an accumulator has not released, oldest first.
    Acc(Vec<(Pipe, i64)>),
    /// An MMA, which has no time of its own.
    Mma,
}

/// A position in a role.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Frame {
    /// The next operation of a block.
    Block(Block, usize),
    /// The head of a loop.
    Loop(Loop),
}

/// The index of a loop.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Index {
    /// `lo`, `lo + step`, ….
    Steps { lo: Linear, step: i64 },
    /// Iterations that are distributed over programs, or an unknown step: equal ranges have equal indices.
    Dealt(ForKind, [Linear; 3]),
}

/// A loop that is being executed.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Loop {
    pub(in crate::verify) op: OpId,
    pub(in crate::verify) index: Index,
    /// Iterations so far, and in total.
    pub(in crate::verify) done: Linear,
    pub(in crate::verify) total: Linear,
    /// Iterations to execute before the role stops.
    pub(in crate::verify) quota: i64,
    /// Iterations that were peeled one by one since the last induction.
    pub(in crate::verify) peeled: usize,
    /// In the current iteration, outside of inner loops, the bounds of loops that were entered.
    pub(in crate::verify) bounds: Box<Bounds>,
}

/// The bounds of loops that a role has entered, as they were found then.
///
/// A bound is found from what is known at the time, so that it can be another number later: a quotient of a number that may be negative
/// is opaque, and once the number is known not to be it is not. Both are right, but nothing says that they are equal. Two loops of which
/// one ends where the other begins must have one number for both.
///
/// The entries of a loop are removed when its next iteration begins. So each is of a value that was defined once since then: blocks
/// that are not bodies of inner loops are executed once in an iteration.
pub(in crate::verify) type Bounds = SortedMap<Value, Linear>;

impl Role {
    /// The bounds of loops that were entered where this role is.
    pub(in crate::verify) fn bounds(&mut self) -> &mut Bounds {
        let inner = self.frames.iter_mut().rev().find_map(|frame| match frame {
            Frame::Loop(l) => Some(&mut *l.bounds),
            Frame::Block(..) => None,
        });
        inner.unwrap_or(&mut self.bounds)
    }
}

impl Loop {
    pub(in crate::verify) fn left(&self) -> Linear {
        self.total.minus(&self.done)
    }
}

/// A state or token of barriers and groups, valid for one iteration.
#[derive(Clone, Copy, Debug)]
pub(in crate::verify) enum Mark {
    /// A phase of a barrier.
    Phase(usize, i64),
    /// A commit group of a class, by its number.
    Group(Class, i64),
}

/// The execution state of a role.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Role {
    /// The open frames, innermost last; empty when it has ended.
    pub(in crate::verify) frames: Vec<Frame>,
    pub(in crate::verify) env: Env,
    /// Outside of all loops, the bounds of loops that were entered.
    pub(in crate::verify) bounds: Bounds,
    pub(in crate::verify) tokens: SortedMap<Value, TokenState>,
    /// States of barriers and tokens of groups, with the iteration in which they were created.
    pub(in crate::verify) marks: SortedMap<Value, (Mark, u32)>,
    /// The meaning of slots and rounds, in barrier programs.
    pub(super) pairs: Pairs,
}

/// The state of all roles.
#[derive(Clone, Debug)]
pub(in crate::verify) struct State {
    pub(in crate::verify) rings: Vec<Ring>,
    /// The offsets of the times of readers and of the filler, by ring, from the start of the kernel.
    pub(in crate::verify) clocks: Vec<[Linear; 2]>,
    pub(in crate::verify) roles: Vec<Role>,
    pub(in crate::verify) facts: Facts,
    pub(in crate::verify) machine: Machine,
}

impl State {
    /// The time to which the times of a ring are relative in comparisons.
    pub(super) fn base(&self, pipe: Pipe) -> i64 {
        self.rings.get(pipe.index()).map_or(0, Ring::base)
    }

    /// The pairs of a role, with times relative to the rings.
    pub(super) fn relative_pairs(&self, role: usize) -> Pairs {
        self.roles[role].pairs.shifted(|pipe| self.base(pipe))
    }

    /// Whether both are equal up to a shift of times.
    pub(in crate::verify) fn same(&self, other: &State, roles: &[usize]) -> bool {
        self.same_but_for_pairs(other, roles)
            && roles.iter().all(|r| self.relative_pairs(*r) == other.relative_pairs(*r))
    }

    /// Whether both are equal up to a shift of times, but for the pairs of barrier programs.
    pub(super) fn same_but_for_pairs(&self, other: &State, roles: &[usize]) -> bool {
        let rings = self.rings.iter().zip(&other.rings).all(|(a, b)| a.shifted() == b.shifted());
        let held = |state: &State, held: &TokenState| {
            let shift = |(p, t): &(Pipe, i64)| (*p, t - state.base(*p));
            match held {
                TokenState::Time(p, t) => TokenState::Time(*p, shift(&(*p, *t)).1),
                TokenState::Acc(list) => TokenState::Acc(list.iter().map(shift).collect()),
                TokenState::Mma => TokenState::Mma,
            }
        };
        let tokens = |state: &State, role: usize| -> Vec<(Value, TokenState)> {
            state.roles[role].tokens.iter().map(|(v, h)| (*v, held(state, h))).collect()
        };
        rings && self.machine.same(&other.machine) && roles.iter().all(|r| tokens(self, *r) == tokens(other, *r))
    }
}
