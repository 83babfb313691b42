//! Instructions: tables against LLVM's assembler and disassembler, round trips, and what is refused.

mod asm;
mod llvm;
mod random;
mod refusals;
mod roundtrip;
#[path = "../support/mod.rs"]
mod support;
mod tables;
