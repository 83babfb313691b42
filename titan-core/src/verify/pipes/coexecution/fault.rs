//! Who waits for what, and why roles do not fit together.

use super::linear::{Atom, Condition, Linear};
use crate::ir::{OpId, Pipe};
use crate::verify::Error;

/// What a role waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) struct Wait {
    pub(in crate::verify) role: usize,
    pub(in crate::verify) op: OpId,
    pub(in crate::verify) on: On,
}

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum On {
    /// A stage that is filled.
    Filled(Pipe),
    /// A slot that is free.
    Free(Pipe),
    /// A phase of a barrier.
    Phase(usize, i64),
}

/// A wait that does not end.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Stuck {
    pub(in crate::verify) wait: Wait,
    /// The role that could end it.
    pub(in crate::verify) provider: Option<usize>,
    /// The loop at whose head that role stands, and whether the loop does anything to the ring.
    pub(in crate::verify) behind: Option<(OpId, bool)>,
    /// How many stages of the ring the role that waits holds itself.
    pub(in crate::verify) holds: usize,
    /// What there is to say of a phase that does not complete.
    pub(in crate::verify) told: Option<Error>,
}

/// Why the roles do not fit together.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Fault {
    /// Every role waits or has ended; which have ended.
    Stuck { waits: Vec<Stuck>, ended: Vec<bool> },
    /// Every role has ended, but a ring is not empty.
    Left { pipe: Pipe, filled: i64, read: i64 },
    /// Loops of which no iteration stands for all, and how often each runs from here on.
    Apart { loops: Vec<(usize, OpId, Linear)> },
    /// A loop without a count has pipeline operations in it.
    Endless { role: usize, op: OpId },
    /// A loop with barriers, groups or regions in it is left early.
    Early { role: usize, op: OpId },
    /// A staging slot is taken again before its store was waited for.
    Staging { op: OpId, pipe: Pipe },
    /// A written time that is not the clock's, or is not known to be.
    Time { op: OpId, pipe: Pipe, wrong: bool },
    /// A barrier program claims of a ring what does not hold.
    Claim { op: OpId, what: String },
    /// Something that barriers, groups and memory do not allow.
    Barrier(Box<Error>),
    /// Too many cases.
    Lost,
}

/// Why a run does not go on.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Stop {
    Fault(Fault),
    /// No fault, but a request to the loops whose counter this is: a branch in them changes sides at this iteration, so they
    /// are to be taken in two parts.
    SplitAt {
        counter: Atom,
        at: Linear,
    },
    /// No fault either: both ways of a condition on the arguments of the launch are to be tried before any loop.
    Open(Condition),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}
