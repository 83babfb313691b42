//! Models of a compute unit: for how many clocks the instructions of a loop occupy each of its units.
//!
//! [`banks`] has the phases in which the local data share serves the lanes of an access, [`units`] the clocks of the other units. They say which unit a
//! loop occupies longest, and so what it can reach at best. [`issue`] executes the instructions of a loop in their order, with latencies and
//! waits, and says how long it takes. All are tables with their sources. No AMD GPU has been measured.

pub mod banks;
pub mod issue;
pub mod units;

/// A row of the table of phases is looked up by whether an access stores, and by the bytes of a lane.
pub use banks::{Clocks, Phases};
