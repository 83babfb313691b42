//! Code objects: what is written is what LLVM writes and reads, what is read is checked, and nothing panics.

mod functions;
mod fuzz;
mod llvm;
mod programs;
mod refusals;
#[path = "../support/mod.rs"]
mod support;
mod undescribed;
