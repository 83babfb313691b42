//! The compiler core of TITAN.
mod entity;

pub mod analysis;
pub mod diag;
pub mod ir;
pub mod text;
pub mod verify;
