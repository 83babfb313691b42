//! What may be done wrong, and what may be done differently without being wrong: one row a kind.
//!
//! A row says beforehand what becomes of a program. A kind that is sometimes harmless is made so narrow that it is not.

use crate::sources::Level;
use crate::text::Edit;

/// What a change does to a program that is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is wrong on some schedule, for some number of tiles.
    Wrong,
    /// It breaks a rule of tokens and no more: what is said twice does the same once, or nothing at all. A run tells which rule it is.
    Idle,
    /// It is as right as before.
    Same,
}

/// A kind of change.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    /// Whether a kernel in Rust can say it.
    pub(crate) surface: bool,
    pub(crate) fate: Fate,
    pub(crate) edit: Edit,
}

/// A change that makes a program wrong, and that a kernel in Rust can say.
pub(crate) const fn surface(name: &'static str, edit: Edit) -> Kind {
    Kind { name, level: Level::Rings, surface: true, fate: Fate::Wrong, edit }
}

/// A change that breaks a rule which a kernel in Rust can break, and does no harm.
pub(crate) const fn idle(name: &'static str, edit: Edit) -> Kind {
    Kind { name, level: Level::Rings, surface: true, fate: Fate::Idle, edit }
}

/// A change that makes a program of rings wrong, and that only the text form can say.
pub(crate) const fn rings(name: &'static str, edit: Edit) -> Kind {
    Kind { name, level: Level::Rings, surface: false, fate: Fate::Wrong, edit }
}

/// A change that makes a program of barriers wrong.
pub(crate) const fn barriers(name: &'static str, edit: Edit) -> Kind {
    Kind { name, level: Level::Barriers, surface: false, fate: Fate::Wrong, edit }
}

/// A change that leaves a program right.
pub(crate) const fn same(level: Level, name: &'static str, edit: Edit) -> Kind {
    Kind { name, level, surface: false, fate: Fate::Same, edit }
}

/// Every kind.
pub(crate) fn all() -> Vec<Kind> {
    crate::rings::KINDS.iter().chain(crate::barriers::KINDS).copied().collect()
}
