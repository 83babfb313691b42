//! Analyses of kernels: pure functions from IR to tables. They neither change kernels nor report errors of style.
//!
//! | module | result |
//! |---|---|
//! | [`uses`] | parents, users, and the operations that every program executes |
//! | [`number`] | invariant values, and which of them are equal |
//! | [`affine`] | the form `Σ coefficient · term + [lo, hi]` and its arithmetic |
//! | [`forms`] | the affine form of every `i32` value of a kernel |
//! | [`access`] | the part of a tensor that each memory operation accesses |
//! | [`one_thread`] | roles of which one thread executes most operations |
//! | [`partition`] | the output rule: no two programs access the same element of an output |
//! | [`proxy`] | asynchronous accesses without a fence after generic ones, missing waits for stores |
//! | [`vector`] | the number of adjacent elements of a row that may be accessed at once |
//! | [`boxes`] | boxes of tensors that can be copied in bulk |
//! | [`ends`] | ends of parts of tensors that are known before the kernel runs |
//! | [`fttc`] | bulk copies with element strides whose tiles cannot end in zeros |
//! | [`cluster`] | values that may differ between the programs of a cluster |
//! | [`diverging`] | control and values that may differ between the programs of a launch |
//! | [`tiles`] | tile numbers that exceed the last tile of an extent by at most a few |
//! | [`turns`] | roles whose instances take tiles in turn, and accesses that exclude each other |
//! | [`cover`] | whether a declared grid covers every output |
//! | [`grid`] | bounds of declared grids, inference of undeclared ones |
//!
//! The analyses expect a well-formed kernel, which `crate::verify` checks first. For other kernels their results are meaningless, but they
//! do not panic.
//!
//! Deliberately absent: dependences between iterations, alias analysis (distinct parameters are distinct memory, since a launch takes `&`
//! and `&mut`), and ranges of floats.

pub mod access;
pub mod affine;
pub mod boxes;
pub mod cluster;
pub mod cover;
pub mod diverging;
pub mod ends;
pub mod forms;
pub mod fttc;
pub mod grid;
pub mod number;
pub mod one_thread;
pub mod partition;
pub mod proxy;
pub(crate) mod same_registers;
pub(crate) mod sides;
pub mod tiles;
pub mod turns;
pub mod uses;
pub mod vector;
pub(crate) mod whole;

mod explain;
mod origin;
