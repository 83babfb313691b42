//! The kernels of the forward pass. One source each: checked and compiled by `cargo build`, run on the CPU and on GPUs.
//!
//! | kernel                     | computes                                     | from, to                           |
//! |----------------------------|----------------------------------------------|------------------------------------|
//! | [`embed`](embed::embed)    | rows of three tables, added, layer norm      | `[T]` numbers to `[T, H]`          |
//! | [`linear`](linear::linear) | matrix product, bias, gelu if wanted         | `[T, I]` to `[T, O]`               |
//! | [`attention`](attention::attention) | softmax attention within each sentence | `[T, 3, HEADS, DIM]` to `[T, HEADS, DIM]` |
//! | [`add_norm`](norm::add_norm) | sum of two, layer norm                     | `[T, H]`, `[T, H]` to `[T, H]`     |
//! | [`pool`](pool::pool)       | mean over each sentence's tokens, length 1   | `[T, H]` to `[B, H]`               |
//!
//! `T` tokens of `B` sentences lie one after the other, without padding. All elements are `f32`, all sums too. A row's
//! width may be any number up to the tile's: what lies outside of a tensor reads as zero, and is not written.

pub mod attention;
pub mod embed;
pub mod linear;
pub mod norm;
pub mod pool;

#[cfg(test)]
mod tests;
