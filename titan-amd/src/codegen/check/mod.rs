//! Independent checkers of the passes: they share no code with what they check.
//!
//! Deliberately absent: a checker of selection and of masks of lanes, for which tests run the code beside evaluated lane IR.

pub mod hazards;
pub mod order;
pub mod registers;
pub mod waits;
