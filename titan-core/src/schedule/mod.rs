//! Modulo scheduling of loops, on graphs: which operation of an iteration is issued in which cycle, so that a new iteration begins every
//! *initiation interval* (II) and iterations overlap.
//!
//! | module | contents |
//! |---|---|
//! | [`graph`] | operations with units and latencies, dependences with distances; what is wrong with them |
//! | [`text`] | the text form of graphs and of schedules |
//! | [`bounds`] | lower bounds of the interval, with the unit or the cycle of dependences that causes them |
//! | [`swing`] | the search: swing modulo scheduling, the interval upward from the bounds |
//! | [`check`] | the judge: whether a schedule is legal, by code that the search does not share |
//!
//! [`plan`] puts them together. `docs/scheduling.md` explains the algorithms with an example.
//!
//! Deliberately absent: the IR. Nothing here knows a kernel: the driver makes a graph of a loop, and the schedule of the loop of what is found
//! here (`titan emit --schedule swing`). Also absent are an exact search (a test has one), choosing numbers of registers,
//! and the decision whether a loop is divided among roles.

pub mod bounds;
pub mod check;
pub mod graph;
mod iterative;
mod live;
mod order;
mod partial;
mod placed;
mod recurrences;
mod sequence;
mod steps;
pub mod swing;
pub mod text;
mod units;

use graph::Graph;
use swing::{Found, Options, Stop};

pub use placed::{Entry, Schedule};

/// The number of slots of a ring in a loop that is not overlapped: one is filled while the other is read.
pub const FALLBACK_SLOTS: u32 = 2;

/// The schedule of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The search found one.
    Overlapped(Found),
    /// It found none: the operations follow each other, and an iteration begins when the one before has ended.
    Sequential {
        /// Why there is no better one.
        stop: Stop,
        /// The schedule, which has one stage.
        schedule: Schedule,
        /// The number of slots that its rings need.
        slots: u32,
    },
}

impl Plan {
    /// The schedule.
    #[must_use]
    pub const fn schedule(&self) -> &Schedule {
        match self {
            Plan::Overlapped(found) => &found.schedule,
            Plan::Sequential { schedule, .. } => schedule,
        }
    }
}

/// The schedule of a loop: that of the search if it finds one within its bounds, else the sequential one. The same arguments give the
/// same schedule.
#[must_use]
pub fn plan(graph: &Graph, options: &Options) -> Plan {
    let stop = match swing::search(graph, options) {
        Ok(found) => match check::check(graph, &found.schedule, options.live) {
            Ok(()) => return Plan::Overlapped(found),
            Err(_) => Stop::Refused,
        },
        Err(stop) => stop,
    };
    Plan::Sequential { stop, schedule: sequence::sequential(graph), slots: FALLBACK_SLOTS }
}
