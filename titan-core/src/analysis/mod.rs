//! Analyses of kernels: pure functions from IR to tables. They neither change a kernel nor report errors of style.
//!
//! | module | result |
//! |---|---|
//! | [`uses`] | parents, users, and which operations every program runs |
//! | [`number`] | values that are equal, values that are the same in every program of a launch |
//! | [`affine`] | the form `Σ coefficient · term + [lo, hi]` and its arithmetic |
//! | [`forms`] | the affine form of every `i32` value of a kernel |
//! | [`access`] | the part of a tensor that each memory operation accesses |
//! | [`one_thread`] | roles that one thread executes for all |
//! | [`partition`] | the output rule: no two programs access the same element of an output |
//! | [`proxy`] | asynchronous accesses that are not fenced from generic ones, stores that are not waited for |
//! | [`vector`] | how many neighbours of a row may be accessed at once |
//! | [`boxes`] | the boxes of tensors that bulk copies copy |
//! | [`cluster`] | values that may differ between the programs of a cluster |
//! | [`tiles`] | tile numbers that are not far behind the last tile of an extent |
//! | [`turns`] | roles whose instances take tiles in turn, and accesses that exclude each other |
//! | [`cover`] | whether a declared grid covers every output |
//! | [`grid`] | bounds of declared grids, inference of undeclared ones |
//!
//! The analyses expect a well-formed kernel (`crate::verify` checks that first): on anything else their results are useless, but
//! they do not panic.
//!
//! Deliberately absent: dependence between iterations, alias analysis (distinct parameters are distinct memory: the
//! launch takes `&` and `&mut`), and ranges of floats.

pub mod access;
pub mod affine;
pub mod boxes;
pub mod cluster;
pub mod cover;
pub mod forms;
pub mod grid;
pub mod number;
pub mod one_thread;
pub mod partition;
pub mod proxy;
pub mod tiles;
pub mod turns;
pub mod uses;
pub mod vector;

mod explain;
mod origin;

#[cfg(test)]
mod tests;
