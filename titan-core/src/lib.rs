//! The compiler core of TITAN.
pub mod ir;
