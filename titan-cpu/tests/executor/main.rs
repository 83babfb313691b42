//! The executor against straightforward scalar code.

mod common;
mod control;
mod elementwise;
mod groups;
mod launch;
mod matmul;
mod memory;
mod safety;
mod scalar;
mod shapes;
