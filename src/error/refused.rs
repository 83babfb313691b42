//! What several errors say: an operation that is not possible, why, and what to do.

use std::fmt;

/// An operation that is not possible.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Refused {
    /// The operation that was requested.
    pub operation: &'static str,
    /// The reason why it is not possible.
    pub problem: String,
    /// The way to correct it.
    pub help: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { operation, problem, help } = self;
        write!(f, "{operation}: {problem}\n  help: {help}")
    }
}
