//! The interface of back ends: the properties of a machine, and the printing of lane IR as its code. All decisions and the lowering of
//! operations happen before.

use crate::lane::Func;
use crate::plan::LowerError;
use crate::target::Target;

/// A machine for which kernels are compiled.
pub trait Backend {
    /// The properties of the machine on which plans and the lowering depend.
    fn target(&self) -> Target;

    /// Whether there is a code generator. If not, kernels are rejected before anything else is tried.
    fn generates_code(&self) -> bool;

    /// The code of a function. `source` is the user's file and the line on which the kernel begins, for line information.
    ///
    /// # Errors
    /// Returns an error if the machine has no instruction for an operation, or lacks a resource.
    fn emit(&self, func: &Func, source: Option<(&str, u32)>) -> Result<Code, LowerError>;
}

/// The code of a function for a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The code: PTX text, or a code object.
    pub payload: Vec<u8>,
    /// Properties of the code: the name of its entry point (`entry`), the version of its language.
    pub config: Vec<(String, String)>,
}
