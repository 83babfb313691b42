//! Instructions: tables against LLVM's assembler and disassembler, round trips, and what is refused.

mod llvm;
mod oracle;
mod random;
mod refusals;
mod roundtrip;
mod tables;
