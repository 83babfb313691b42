//! TITAN for AMD GPUs.
//!
//! Here: [`Machine`], what each architecture has, one row per target, each row citing the manual it was read in; [`isa`],
//! the tables of gfx942's instructions, from which they are encoded, decoded, printed and read; [`object`], the code objects
//! that AMD's loaders take; `emu`, an emulator of their bytes (a feature); `runtime`, the HIP runtime, loaded when it is there
//! (a feature); and [`compile`], the one entry through which a verified kernel becomes a [`Variant`].
//!
//! To come, in this order of dependence: the plan of a kernel for a target, selection of instructions from the lane IR,
//! their scheduling, registers, waits and hazards.
//!
//! Deliberately absent: code generation. [`compile`] says so in an error that names the target; nothing here pretends.
//! Never to come: LLVM, or code objects made from templates.

#[cfg(feature = "emu")]
pub mod emu;
pub mod isa;
pub mod machine;
pub mod object;
#[cfg(feature = "runtime")]
pub mod runtime;

pub use machine::{Fp8, Machine, UnknownMachine};

use titan_core::artifact::Variant;
use titan_core::diag::Code;
use titan_core::verify::Verified;

/// Why a kernel cannot be compiled for a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// The target is known, but this version has no code generator for it.
    CodeGeneration {
        /// The kernel, with its instance.
        kernel: String,
        /// The target's name.
        target: &'static str,
    },
}

impl Unsupported {
    /// The code of the rule.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::Backend
    }
}

impl std::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unsupported::CodeGeneration { kernel, target } => write!(
                f,
                "kernel `{kernel}`: code generation for {target} is not part of this version\n  \
                 help: the CPU device runs every kernel; set `TITAN_DEVICE=cpu`"
            ),
        }
    }
}

impl std::error::Error for Unsupported {}

/// Compiles a kernel for a machine.
///
/// # Errors
/// Always, in this version: there is no code generator yet.
pub fn compile(kernel: &Verified, machine: &Machine) -> Result<Variant, Unsupported> {
    Err(Unsupported::CodeGeneration { kernel: kernel.sig.full_name(), target: machine.name })
}
