//! The `unsafe` code of this crate: device memory, element access, calls of the matrix product crates.
//!
//! Every function in here is safe to call with any arguments. The reasons:
//!
//! * **Instructions.** Those that a machine may lack are called with a value that exists only where they were detected.
//! * **Bounds.** Each access to memory compares its first and last element with the length of the memory, right where the
//!   pointer is made.
//! * **Aliasing with the host and other launches.** A launch holds a [`memory::Lease`] on every memory that it uses, shared or
//!   exclusive; host reads and writes take one too. So nothing else writes a memory that a launch reads.
//! * **Inside a launch.** Memory that no argument of the launch may write is read through slices. The rest is accessed
//!   through raw pointers, never through references: programs of one launch store to disjoint parts, which is the proof that
//!   a [`titan_core::verify::Verified`] kernel carries, or was promised by the user in an `unsafe` block around `shared()`.
//!   The proof holds for grids that the kernel can have for some arguments, which a launch checks. It assumes that segments are
//!   disjoint. A launch whose offsets are out of order detects only while it runs that they are not; its views are *contended*.
//!   Accesses of contended views, scatters and atomics, for which nothing is proved, are atomic instructions.

#![expect(unsafe_code, reason = "this is the module for it")]

use crate::{CompileError, Options, Program};
use titan_core::ir::Kernel;

pub(crate) mod access;
pub(crate) mod halves;
pub(crate) mod launch;
pub mod memory;
pub(crate) mod product;
pub(crate) mod view;

/// A program of a kernel that nobody has verified: for tests of behaviour that no verified kernel has.
///
/// # Errors
/// The same as of [`Program::compile`].
///
/// # Safety
/// Whoever runs it must know that no two programs of the launch access the same element, unless both only read it.
pub unsafe fn unverified(kernel: &Kernel, options: Options) -> Result<Program, CompileError> {
    Program::of(kernel, options)
}
