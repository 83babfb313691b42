//! Pipelined kernels in text form, executed by the emulator with copies that complete late, early and at random, and compared
//! with loops written here.

mod harness;
mod kernels;
mod runs;
