//! Kernels of the tree and random ones, compiled and run, beside the evaluation of their lane IR.

pub(crate) mod both;
mod chains;
mod elements;
pub(crate) mod products;
mod random;
mod tree;
