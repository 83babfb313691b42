//! Rules of barrier-level programs.

pub(super) mod event;
mod forms;
pub(super) mod machine;
pub(super) mod objects;
mod place;
mod words;

pub(super) use place::check;
