//! The compiler core of TITAN.
pub mod ir;
pub mod num;
