//! PTX as data: a module, its kernel, its instructions, and the tables of instruction forms.
//!
//! * [`module`]: the parts of a program. Registers have a class and a number, labels a number, addresses a base and an
//!   offset; nothing is text before it is printed.
//! * [`isa`]: one row for each instruction form: its spelling, its operands, the section of the manual, and the lowest PTX
//!   version and target that have it. Nothing else spells an instruction.
//! * [`check`]: every operand fits its form, every label is defined once, the target has the form.
//! * the printer, [`Module`]'s `Display`.
//!
//! Source: the PTX ISA manual, whose sections are cited by title, as numbers change between versions.
//!
//! Deliberately absent: functions, variables other than dynamic shared memory, parsing (the emulator has its own parser, so
//! that one mistake is not made twice).

pub mod check;
pub mod isa;
pub mod module;
mod print;

pub use isa::{Form, Slot};
pub use module::{Address, Base, Entry, Guard, Inst, Label, Line, Module, Operand, Param, Reg, Special};
