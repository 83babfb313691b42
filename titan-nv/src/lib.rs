//! TITAN for NVIDIA GPUs.
//!
//! Here: [`Machine`], what each architecture has, one row per target, each row citing the manual it was read in; and
//! [`compile`], the one entry through which a verified kernel becomes a [`Variant`].
//!
//! [`emit`] spells a function of the lane IR as PTX: [`lower`] chooses instructions, [`ptx`] is what they are. With feature
//! `emu`, for tests and tools: an emulator of PTX text.
//!
//! To come: the plan of a kernel for a target, legality of its operations, the driver (feature `runtime`).
//!
//! Deliberately absent: the way from a verified kernel to the lane IR. [`compile`] says so in an error that names the
//! target; nothing here pretends. Never to come: PTX templates written by hand. What is emitted comes from the IR.

#[cfg(feature = "emu")]
pub mod emu;
pub mod lower;
pub mod machine;
pub mod ptx;

pub use lower::{EmitError, Ptx, emit};
pub use machine::{Feature, Machine, UnknownMachine};

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
