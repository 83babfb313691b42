//! Weak and strong correctness of a load, and how a schedule reaches them: the three levels.
//!
//! *Weak*: every position in shared memory that stands for an element of the tensor holds it. Holes may hold anything. Every schedule is
//! weakly correct, whatever was in shared memory before, and whether or not the copy is predicated (theorem 1).
//!
//! *Strong*: in addition, every hole holds zero, as matrix products that read whole tiles require.
//!
//! | level | the schedule | strong correctness |
//! |---|---|---|
//! | 1 | only protected domains are overrun | the engine's own zeros suffice (theorem 5) |
//! | 2 | others are overrun too, and every copy can be made correct | the program checks them, and moves failing copies out of the tensor |
//! | 3 | for some copies no coordinates are correct (FTTC) | impossible |
//!
//! A domain is *overrun* if it is the input of a step that makes holes.
//!
//! Zero is the only value that holes can be given. Other padding values are selected after the load.
//!
//! Source: "TMA Modeling In Depth", theorems 1, 5 and 6, and table 1 (docs/tma.md).

use super::domain::{Domains, Id};
use super::protect::{overrun, protected};
use titan_core::analysis::fttc::{Counterexample, fttc};

/// The contents that holes must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Correctness {
    /// Holes may hold anything.
    Weak,
    /// Holes must hold this value.
    Strong(Padding),
}

/// The value of holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zero, with which the copy engine fills.
    Zero,
    /// Another value.
    Other,
}

/// The condition under which a schedule is strongly correct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// Strongly correct without checks.
    One,
    /// Strongly correct if the program checks these domains, which are overrun and not protected.
    Two(Vec<Id>),
    /// Never strongly correct; a counterexample.
    Three(Counterexample),
}

/// The level of a schedule.
#[must_use]
pub fn level(domains: &Domains) -> Level {
    let dims = domains.dims().iter().enumerate();
    let impossible = dims.filter_map(|(dim, d)| fttc(dim, d.size, d.boxed, d.stride).err()).next();
    if let Some(counterexample) = impossible {
        return Level::Three(counterexample);
    }
    let open = unprotected(domains);
    if open.is_empty() { Level::One } else { Level::Two(open) }
}

/// The domains that are overrun and not protected.
#[must_use]
pub fn unprotected(domains: &Domains) -> Vec<Id> {
    let is = protected(domains);
    overrun(domains).filter(|id| !is[id.0]).collect()
}
