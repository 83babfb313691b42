//! The operators against candle's own on the CPU: every element type, layouts with strides and offsets, memory, and bad input.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod bad;
#[path = "../common/mod.rs"]
mod common;
mod memory;
mod operators;
