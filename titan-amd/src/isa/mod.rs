//! The instructions of gfx942: tables, and the code that is driven by them.
//!
//! ```text
//! tables ─▶ Row ─┬─ encode ─▶ words        Inst = row, encoding, operands, modifiers
//!                ├─ decode ◀─ words
//!                ├─ print  ─▶ text         in the syntax of LLVM's assembler
//!                └─ parse  ◀─ text
//! ```
//!
//! | module | part |
//! |---|---|
//! | [`ty`] | the type of an operand, and so its number of registers |
//! | [`mod@format`] | fields of each microcode format, in the manual's notation |
//! | [`operand`] | registers, constants, immediates, and their codes |
//! | [`row`] | the description of an instruction |
//! | `tables` | the rows |
//! | `inst` | an instruction |
//!
//! Source of all tables: "AMD Instinct MI300" Instruction Set Architecture (CDNA3), cited as ISA. The spelling is that of
//! LLVM 19, with which tests compare encodings and text.
//!
//! Deliberately absent: instructions that are used neither by our kernels nor by the compilers with which we compare (typed buffers,
//! images, global wave sync, fork and join, scalar stores and atomics, trap handling).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a format, class or operand that a place does not name is one that cannot appear there: every such arm reports that"
)]

pub mod asm;
mod decode;
mod encode;
mod error;
pub mod format;
mod inst;
pub mod operand;
mod parse;
mod print;
pub mod row;
mod tables;
pub mod ty;

pub use decode::{Decoded, decode};
pub use error::IsaError;
pub use format::{Field, Format};
pub use inst::Inst;
pub use operand::{Inline, InlineFloat, Operand, Special};
pub use parse::parse;
pub use row::{Access, Arg, Class, Form, Implicit, Mods, Row, Unit};
pub use tables::{all, by_name};
pub use ty::{Elem, Ty};
