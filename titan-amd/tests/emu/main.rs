//! The emulator: kernels in text, assembled by the tables, and what becomes of them.

mod absent;
mod arith;
mod atomics;
mod bad;
mod buffers;
mod diverge;
mod division;
mod errors;
mod generic;
mod harness;
mod hazards;
mod index;
mod literals;
mod matrix;
mod memory;
mod mix;
mod modes;
#[path = "../isa/random.rs"]
mod random;
mod scalar;
mod shadows;
mod stack;
#[path = "../support/mod.rs"]
mod support;
mod turns;
mod unaligned;
mod undefined;
mod vector;
mod visibility;
mod waits;
