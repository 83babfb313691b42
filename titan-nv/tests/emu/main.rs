//! The emulator, by PTX written by hand: one file for each family of instructions, and for each kind of error.
//!
//! What is expected follows from the PTX ISA manual's definition of the instruction. Where a `ptxas` can be had
//! (`TITAN_PTXAS`, or in the PATH), it must accept every text that the emulator accepts.

mod accepted;
mod arith;
mod barrier;
mod bits;
mod copy;
mod diverge;
mod errors;
mod float;
mod gemm;
mod half;
mod harness;
mod launch;
mod lex;
mod matrix;
mod memory;
mod needs;
mod parse;
mod parts;
mod race;
mod random;
mod sanitize;
mod tensormap;
mod warp;
