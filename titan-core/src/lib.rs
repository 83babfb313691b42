//! The compiler core of TITAN.
mod entity;

pub mod analysis;
pub mod artifact;
pub mod diag;
#[cfg(feature = "engine")]
pub mod engine;
#[cfg(feature = "filetest")]
pub mod filetest;
pub mod ir;
pub mod launch;
pub mod num;
pub mod text;
pub mod verify;
