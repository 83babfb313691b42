//! The driver over its C interface: what programs get when they do it right, and what when they do not.

#![expect(unsafe_code, reason = "the interface is C")]

mod basics;
mod graphs;
mod harness;
mod host;
mod memory;
mod modules;
mod order;
mod tensor;
