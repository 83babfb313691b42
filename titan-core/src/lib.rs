//! The compiler core of TITAN.
mod entity;
mod named_enum;

pub mod allocate;
pub mod analysis;
pub mod artifact;
pub mod collections;
pub mod diag;
pub mod driver;
pub mod expand;
pub mod ir;
pub mod lane;
pub mod launch;
pub mod lay_out;
pub mod layout;
pub mod lower;
pub mod num;
pub mod pipeline;
pub mod plan;
pub mod synchronize;
pub mod text;
pub mod verify;
