//! Rules of barrier-level programs.

pub(super) mod event;
pub(super) mod machine;
pub(super) mod objects;
mod place;
mod words;

pub(super) use place::check;
