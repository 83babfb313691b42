//! A schedule: where each operation of a loop is placed. It is plain data, also if it is wrong; `check` judges it.
//!
//! Deliberately absent: the graph. Operations are named, so that a schedule can be written down and read for itself.

/// The place of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the operation.
    pub name: String,
    /// The number of intervals between the beginning of its iteration and its issue: `cycle / II`, rounded down.
    pub stage: i64,
    /// The cycle in which it is issued, counted from the beginning of its iteration.
    pub cycle: i64,
    /// Its place among all operations in the body of the overlapped loop, from 0.
    pub order: i64,
}

/// The schedule of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The name of the loop.
    pub name: String,
    /// The initiation interval: the number of cycles between the beginnings of two iterations.
    pub ii: i64,
    /// The number of stages: of iterations that are in flight at the same time.
    pub stages: i64,
    /// The greatest sum of weights of all results that are live in the same cycle.
    pub live: i64,
    /// The operations, in the order of the program.
    pub ops: Vec<Entry>,
}
