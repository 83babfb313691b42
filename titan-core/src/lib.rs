//! The compiler core of TITAN.
pub mod diag;
mod entity;
pub mod ir;
pub mod num;
pub mod verify;
