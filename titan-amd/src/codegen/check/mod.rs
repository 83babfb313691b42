//! Independent checkers of the passes: they share no code with what they check.
//!
//! Deliberately absent: a checker of selection and of masks of lanes, for which tests run the code beside evaluated lane IR; a checker of
//! hazards, for which the emulator has a table of its own.

pub mod registers;
pub mod waits;
