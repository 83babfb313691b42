//! The executor against straightforward scalar code.

mod common;
mod matmul;
