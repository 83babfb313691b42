//! The compiler core of TITAN.
mod entity;
pub mod diag;
pub mod ir;
pub mod launch;
pub mod num;
pub mod text;
pub mod verify;
