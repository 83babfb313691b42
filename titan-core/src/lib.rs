//! The compiler core of TITAN.
mod entity;
mod words;

pub mod analysis;
pub mod artifact;
pub mod diag;
#[cfg(feature = "engine")]
pub mod engine;
#[cfg(feature = "filetest")]
pub mod filetest;
pub mod ir;
pub mod lane;
pub mod launch;
pub mod layout;
pub mod lower;
pub mod num;
pub mod pipeline;
pub mod plan;
#[cfg(feature = "engine")]
pub mod sanitize;
#[cfg(feature = "sim")]
pub mod sim;
pub mod text;
pub mod verify;
