//! Weak and strong correctness of a load, and how a schedule reaches them: the three levels.
//!
//! *Weak*: every place of shared memory that stands for an element of the tensor holds it. Holes hold anything. Every schedule is
//! weakly correct, whatever was in shared memory before, and whether or not the copy is predicated (theorem 1).
//!
//! *Strong*: besides, every hole holds zero, as for matrix products that read whole tiles.
//!
//! | level | the schedule | strong correctness |
//! |---|---|---|
//! | 1 | only protected domains are overrun | the engine's own zeros suffice (theorem 5) |
//! | 2 | others are overrun too, and every copy can be made right | the program checks them, and sends the others out of the tensor |
//! | 3 | there are copies that no coordinates make right (FTTC) | impossible |
//!
//! A domain is *overrun* if it is the input of a step that makes holes.
//!
//! Zero is the only value that holes can be given. Another padding is selected after the load.
//!
//! Source: "TMA Modeling In Depth", theorems 1, 5 and 6, and table 1 (docs/tma.md).

use super::domain::{Domains, Id};
use super::fttc::{Counterexample, fttc};
use super::protect::{overrun, protected};

/// What holes must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Correctness {
    /// Anything.
    Weak,
    /// This.
    Strong(Padding),
}

/// The value of holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zero, which the engine fills with.
    Zero,
    /// Another value.
    Other,
}

/// How a schedule can be strongly correct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// By itself.
    One,
    /// If the program checks these domains, which are overrun and not protected.
    Two(Vec<Id>),
    /// Not at all.
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
