//! What keeps other crates from implementing traits of the language that have nothing hidden to implement.
//!
//! The other traits of [`lang`](super) need no seal: their methods are hidden, or they have a trait of this crate above them.

/// A type of which the language knows all.
pub trait Sealed {}
