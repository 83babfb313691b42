//! The compiler core of TITAN.
pub mod analysis;
pub mod artifact;
pub mod diag;
mod entity;
#[cfg(feature = "filetest")]
pub mod filetest;
pub mod ir;
pub mod launch;
pub mod num;
pub mod text;
pub mod verify;
