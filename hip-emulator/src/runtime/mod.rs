//! The C edge: exported functions of one line, and what callers' pointers are taken for.

#![expect(unsafe_code, reason = "this is the module for it")]

mod abi;
pub(crate) mod host;
