//! The text form of kernels, `.tir`, for tests and tools. Programs embed it for their CPU device.
//!
//! ```text
//! kernel @scale<T = f32>(
//!     %x: in tensor<f32>[N],
//!     %y: mut tensor<f32>[N],
//!     %by: f32,
//! ) grid(cdiv(N, 128)) {
//!     %p = program_id<0> : i32
//!     %zero = const 0.0 : f32
//!     %t = load_tile %x[%p] or %zero : tile<128xf32> @3:13
//!     %f = splat %by : tile<128xf32>
//!     %u = mul %t, %f : tile<128xf32>
//!     store_tile %y[%p], %u
//!     return
//! }
//! ```
//!
//! * [`parse`] of [`print`](print()) gives an equal kernel, including the numbering, for kernels made by
//!   [`Builder`](crate::ir::Builder); for others it gives
//!   [`Kernel::canonical`](crate::ir::Kernel::canonical).
//! * The parser checks the text, not the kernel: it accepts everything that the IR can represent, so that an invalid kernel can be written
//!   and passed to the verifier. Result types may be omitted where they follow from the operands; a stated type that differs from the
//!   inferred one is an error.
//! * It reports all errors it finds, and never panics. Nesting is limited to [`MAX_DEPTH`].
//!
//! The grammar is [`GRAMMAR`], explained in `docs/ir.md`.

mod lex;
mod parse;
mod place;
mod print;
mod suggest;

pub use parse::{Located, MAX_DEPTH, Positions, parse, parse_located, parse_one};
pub use print::print;
pub use suggest::closest;

use std::fmt;

/// The grammar, for documentation.
pub const GRAMMAR: &str = include_str!("grammar.txt");

/// A position in a text: line and column count from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextPos {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for TextPos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
