//! The meaning of elementwise operations, lowered to lanes and evaluated there, against Rust's own arithmetic, the `half`
//! crate, `libm`, and rounding by its definition.

mod casts;
mod eval;
mod floats;
mod functions;
mod harness;
mod ints;
mod powers;
mod quotients;
mod remainders;
mod wide;
