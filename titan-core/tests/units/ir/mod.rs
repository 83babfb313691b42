//! Functions on constants and indices of kernels.

mod fold;
mod grouped;
mod names;
