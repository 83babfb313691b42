//! Facts about kernels: pure functions from IR to tables. Nothing here changes a kernel or reports style.
//!
//! | module | gives |
//! |---|---|
//! | [`uses`] | parents, users, and which operations every program runs |
//! | [`number`] | values that are equal, values that are the same in every program of a launch |
//! | [`affine`] | the form `Σ coefficient · term + [lo, hi]` and its arithmetic |
//! | [`forms`] | the affine form of every `i32` value of a kernel |
//! | [`access`] | which part of which tensor every memory operation touches |
//! | [`partition`] | the output rule: no two programs touch one element of an output |
//! | [`proxy`] | asynchronous accesses that may not see ordinary ones, stores that are not waited for |
//! | [`vector`] | how many neighbours of a row may be accessed at once |
//! | [`cover`] | whether a written grid reaches all of every output |
//! | [`grid`] | bounds of declared grids, inference of undeclared ones |
//!
//! The analyses expect a kernel whose structure, types and visibility are right (`crate::verify` checks these first): on
//! anything else they give useless facts, but they do not panic.
//!
//! Deliberately absent: dependence between iterations, alias analysis (distinct parameters are distinct memory: the
//! launch takes `&` and `&mut`), and ranges of floats.

pub mod access;
pub mod affine;
pub mod cover;
pub mod forms;
pub mod grid;
pub mod number;
pub mod partition;
pub mod proxy;
pub mod uses;
pub mod vector;

mod explain;
mod origin;

#[cfg(test)]
mod tests;
