//! Kernels of the tree and random ones, compiled and run, beside the evaluation of their lane IR.

pub(crate) mod both;
mod elements;
mod random;
mod tree;
