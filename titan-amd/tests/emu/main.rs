//! The emulator: kernels in text, assembled by the tables, and what becomes of them.

mod arith;
mod errors;
mod harness;
mod memory;
