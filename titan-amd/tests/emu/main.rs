//! The emulator: kernels in text, assembled by the tables, and what becomes of them.

mod arith;
mod atomics;
mod bad;
mod buffers;
mod diverge;
mod division;
mod errors;
mod harness;
mod hazards;
mod index;
mod matrix;
mod memory;
mod mix;
#[path = "../isa/random.rs"]
mod random;
mod scalar;
mod shadows;
#[path = "../support/mod.rs"]
mod support;
mod vector;
mod waits;
