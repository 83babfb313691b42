//! The plan of a kernel for a target: how many warps, which layout each tile has, how each product is computed.
//!
//! Deliberately absent: stages and roles, which are the schedule's.

mod target;

pub use target::Target;
