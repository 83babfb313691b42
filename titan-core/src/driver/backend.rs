//! What a back end is to the compiler: a machine's tables, and the spelling of a function for its lanes. Decisions are made above
//! it, and the meaning of operations is lowered above it.

use crate::lane::Func;
use crate::plan::{LowerError, Target};

/// A machine for which kernels are compiled.
pub trait Backend {
    /// What plans and the lowering to lanes depend on.
    fn target(&self) -> Target;

    /// Whether there is a code generator for it. If not, kernels are refused before anything is tried.
    fn generates_code(&self) -> bool;

    /// The code of a function. `source` is the user's file and the line of it on which the kernel begins, for line information.
    ///
    /// # Errors
    /// If the machine has no instruction for an operation, or not enough of something.
    fn emit(&self, func: &Func, source: Option<(&str, u32)>) -> Result<Code, LowerError>;
}

/// A function as code of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The code: PTX text, or a code object.
    pub payload: Vec<u8>,
    /// What is to be known of it: the name of its `entry`, the version of its language.
    pub config: Vec<(String, String)>,
}
