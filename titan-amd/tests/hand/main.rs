//! Kernels written by hand in the printer's text: assembled by the tables, run by the emulator, compared with `f64`. The
//! assembler of LLVM makes the same bytes of them.

mod attention;
mod gemm;
mod kernels;
mod mutants;
#[path = "../support/mod.rs"]
mod support;
mod vectors;
