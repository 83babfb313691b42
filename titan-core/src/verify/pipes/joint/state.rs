//! Where everybody is: rings, roles and what they hold.
//!
//! Times are counted from the start of what is looked at. Two states are the same if they differ only by a shift of the times
//! of each ring: that is how one iteration of a loop stands for all.

use super::linear::{Facts, Linear};
use super::values::Env;
use crate::ir::{Block, OpId, Pipe, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Times at which something has happened: all below `low`, and some above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) low: i64,
    above: BTreeSet<i64>,
}

impl Times {
    pub(super) fn has(&self, t: i64) -> bool {
        t < self.low || self.above.contains(&t)
    }

    pub(super) fn add(&mut self, t: i64) {
        self.above.insert(t);
        while self.above.remove(&self.low) {
            self.low += 1;
        }
    }

    fn shifted(&self, by: i64) -> Times {
        Times { low: self.low - by, above: self.above.iter().map(|t| t - by).collect() }
    }
}

/// One reader of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reader {
    /// Which role.
    pub(super) role: usize,
    /// Its clock.
    pub(super) claimed: i64,
    pub(super) released: Times,
}

/// A ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ring {
    /// Its role that fills.
    pub(super) filler: Option<usize>,
    /// The filling side's clock.
    pub(super) acquired: i64,
    pub(super) filled: Times,
    /// Several readers, or the stores of a staging ring.
    pub(super) readers: Vec<Reader>,
}

impl Ring {
    fn base(&self) -> i64 {
        self.readers.iter().map(|r| r.released.low).min().unwrap_or(self.filled.low)
    }

    fn shifted(&self) -> Ring {
        let by = self.base();
        let readers = self.readers.iter().map(|r| Reader { role: r.role, claimed: r.claimed - by, released: r.released.shifted(by) });
        Ring { filler: self.filler, acquired: self.acquired - by, filled: self.filled.shifted(by), readers: readers.collect() }
    }
}

/// What a token names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// One time of a ring.
    Time(Pipe, i64),
    /// The stages that an accumulator has not given back, oldest first.
    Acc(Vec<(Pipe, i64)>),
    /// A product: no time of its own.
    Product,
}

/// A place in a role.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    /// The next operation of a block.
    Block(Block, usize),
    /// The head of a loop.
    Loop(Loop),
}

/// A loop that is being run.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    pub(super) op: OpId,
    pub(super) lo: Linear,
    pub(super) step: i64,
    /// Iterations so far, and in all.
    pub(super) done: Linear,
    pub(super) total: Linear,
}

impl Loop {
    pub(super) fn left(&self) -> Linear {
        self.total.minus(&self.done)
    }
}

/// A role on its way.
#[derive(Clone, Debug)]
pub(super) struct Role {
    /// Innermost last; none when it has ended.
    pub(super) frames: Vec<Frame>,
    pub(super) env: Env,
    pub(super) tokens: BTreeMap<Value, Held>,
}

/// Everything.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) rings: Vec<Ring>,
    pub(super) roles: Vec<Role>,
    pub(super) facts: Facts,
}

impl State {
    /// Whether both are at the same place, but for the times that have passed.
    pub(super) fn same(&self, other: &State, roles: &[usize]) -> bool {
        let rings = self.rings.iter().zip(&other.rings).all(|(a, b)| a.shifted() == b.shifted());
        let held = |state: &State, held: &Held| {
            let shift = |(p, t): &(Pipe, i64)| (*p, t - state.rings.get(p.index()).map_or(0, Ring::base));
            match held {
                Held::Time(p, t) => Held::Time(*p, shift(&(*p, *t)).1),
                Held::Acc(list) => Held::Acc(list.iter().map(shift).collect()),
                Held::Product => Held::Product,
            }
        };
        let tokens = |state: &State, role: usize| -> Vec<(Value, Held)> {
            state.roles[role].tokens.iter().map(|(v, h)| (*v, held(state, h))).collect()
        };
        rings && roles.iter().all(|r| tokens(self, *r) == tokens(other, *r))
    }
}
