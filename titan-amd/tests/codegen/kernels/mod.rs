//! Kernels of the tree and random ones, compiled and run, beside the evaluation of their lane IR.

pub(crate) mod attention;
pub(crate) mod both;
mod chains;
mod elements;
mod fetches;
mod guards;
pub(crate) mod products;
mod random;
mod roles;
mod rows;
mod slots;
mod tree;
