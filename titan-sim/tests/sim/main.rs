//! The simulator and the model checker, on kernels of the filetests, of the museum, and on its own.
#![expect(clippy::print_stdout, reason = "what was found in which kernel, and how fast")]

mod args;
mod cluster;
mod explore;
mod filetests;
mod findings;
mod gemm;
mod grid;
mod reduction;
mod roles;
mod tensor;
mod tensor_pair;
