//! Waits and faults of co-execution.

use super::linear::{Atom, Condition, Linear};
use crate::ir::{OpId, Pipe};
use crate::verify::Error;

/// A wait of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) struct Wait {
    pub(in crate::verify) role: usize,
    pub(in crate::verify) op: OpId,
    pub(in crate::verify) on: On,
}

/// The condition of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum On {
    /// A stage that is filled.
    Filled(Pipe),
    /// A slot that is free.
    Free(Pipe),
    /// A phase of a barrier.
    Phase(usize, i64),
}

/// A wait that does not terminate.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Stuck {
    pub(in crate::verify) wait: Wait,
    /// The role that could complete it.
    pub(in crate::verify) provider: Option<usize>,
    /// The loop at whose head that role is, and whether the loop uses the ring.
    pub(in crate::verify) behind: Option<(OpId, bool)>,
    /// How many stages of the ring the waiting role holds itself.
    pub(in crate::verify) holds: usize,
    /// How many stages of the ring its accumulators may hold in addition, with all of their MMAs in flight.
    pub(in crate::verify) may_hold: Option<usize>,
    /// The error of a phase that does not complete.
    pub(in crate::verify) told: Option<Error>,
}

/// A fault of co-execution.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Fault {
    /// A deadlock: every role waits or has ended.
    Stuck { waits: Vec<Stuck>, ended: Vec<bool> },
    /// Every role has ended, but a ring is not empty.
    Left { pipe: Pipe, filled: i64, read: i64 },
    /// Loops for which the induction failed, and their remaining iteration counts.
    Apart { loops: Vec<(usize, OpId, Linear)> },
    /// A loop without an iteration count contains pipeline operations.
    Endless { role: usize, op: OpId },
    /// A loop with barriers, groups or regions in it is left early.
    Early { role: usize, op: OpId },
    /// A staging slot is acquired again before its store was waited for.
    Staging { op: OpId, pipe: Pipe },
    /// A stated time that differs from the ring's clock, or is not known to be equal.
    Time { op: OpId, pipe: Pipe, wrong: bool },
    /// A claim of a barrier program that does not hold.
    Claim { op: OpId, what: String },
    /// A violation of the rules of barriers, groups and memory.
    Barrier(Box<Error>),
    /// A situation that earlier rules exclude: a defect of the verifier.
    Defect { op: OpId, what: &'static str },
    /// The number of cases is too large.
    Lost,
}

/// The reason why a run stops.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Stop {
    Fault(Fault),
    /// No fault, but a request to the loops with this counter: a branch in them switches at this iteration, so they
    /// must be split there.
    SplitAt {
        counter: Atom,
        at: Linear,
    },
    /// No fault either: both outcomes of a condition on launch arguments must be tried before any loop.
    Open(Condition),
}

/// The fault for a situation that earlier rules exclude.
pub(in crate::verify) const fn defect<T>(op: OpId, what: &'static str) -> Result<T, Fault> {
    Err(Fault::Defect { op, what })
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}
