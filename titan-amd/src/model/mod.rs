//! Models of a compute unit: for how many clocks the instructions of a loop occupy each of its units.
//!
//! [`banks`] has the phases in which the local data share serves the lanes of an access, [`units`] the clocks of the other units. Both are tables
//! with their sources. They say which unit a loop occupies longest, and so what it can reach at best; they say nothing of latencies, of
//! waits, or of the order of instructions. No AMD GPU has been measured.

pub mod banks;
pub mod units;

/// A row of the table of phases is looked up by whether an access stores, and by the bytes of a lane.
pub use banks::{Clocks, Phases};
