//! The reasons why a function cannot be compiled for a machine.

use crate::isa::IsaError;
use crate::object::ObjectError;
use std::fmt;
use titan_core::diag::Code;
use titan_core::ir::Loc;
use titan_core::lane::{Func, LaneError, Op, mnemonic};
use titan_core::plan::LowerError;

/// The reason why a function cannot be compiled for a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmitError {
    /// The function breaks a rule of the lane IR.
    Lane(LaneError),

    /// The target lacks an operation.
    Operation {
        /// The kernel with its instance.
        kernel: String,
        /// The name of the target.
        target: &'static str,
        /// The mnemonic of the operation of the lane IR.
        op: String,
        /// The reason why the target lacks it.
        why: String,
        /// The source location of the operation.
        loc: Loc,
    },

    /// The program exceeds a limit of the target.
    Limit {
        /// The kernel with its instance.
        kernel: String,
        /// The name of the target.
        target: &'static str,
        /// The limit, with numbers.
        why: String,
        /// The source location where it is exceeded, if there is one.
        loc: Loc,
    },

    /// A defect of this crate.
    Defect {
        /// The kernel with its instance.
        kernel: String,
        /// The message.
        message: String,
    },
}

impl EmitError {
    /// The code of the rule.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::Backend
    }

    /// The error in the form in which the driver reports it.
    #[must_use]
    pub fn into_lower_error(self, func: &Func) -> LowerError {
        match self {
            EmitError::Operation { kernel, target, op, why, loc } => {
                LowerError::no_instruction(&kernel, loc, target, &op, &why)
            }
            EmitError::Limit { kernel, target, why, loc } => {
                LowerError { loc, ..LowerError::of_kernel(&kernel, format!("{target} {why}")) }
            }
            EmitError::Lane(_) | EmitError::Defect { .. } => LowerError::of_kernel(&func.name, self.to_string()),
        }
    }
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EmitError::Lane(error) => error.fmt(f),
            EmitError::Operation { kernel, target, op, why, loc } => {
                write!(f, "kernel `{kernel}`, line {}: {target} has no `{op}`: {why}", loc.line)
            }
            EmitError::Limit { kernel, target, why, loc } if loc.line > 0 => {
                write!(f, "kernel `{kernel}`, line {}: {target} {why}", loc.line)
            }
            EmitError::Limit { kernel, target, why, .. } => write!(f, "kernel `{kernel}`: {target} {why}"),
            EmitError::Defect { kernel, message } => {
                write!(f, "kernel `{kernel}`: a bug in the code generator for AMD: {message}; please report it")
            }
        }
    }
}

impl std::error::Error for EmitError {}

/// The reason why a function cannot be compiled; callers add its place.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// No sequence of instructions implements the operation.
    Refused(String),
    /// The program exceeds a limit of the target.
    Limit(String, Loc),
    /// A defect of this crate.
    Defect(String),
    /// An error with its place.
    Placed(Box<EmitError>),
}

/// Done, or the reason why not.
pub(crate) type Done = Result<(), Fault>;

impl Fault {
    /// Adds the place of the fault: the innermost operation around it.
    pub(crate) fn at(self, func: &Func, target: &'static str, op: &Op) -> Fault {
        match self {
            Fault::Placed(_) | Fault::Defect(_) | Fault::Limit(..) => self,
            Fault::Refused(why) => Fault::Placed(Box::new(EmitError::Operation {
                kernel: func.name.clone(),
                target,
                op: mnemonic(&op.kind),
                why,
                loc: op.loc,
            })),
        }
    }

    /// The fault as an error of the function.
    pub(crate) fn outside(self, func: &Func, target: &'static str) -> EmitError {
        let kernel = func.name.clone();
        match self {
            Fault::Placed(error) => *error,
            Fault::Limit(why, loc) => EmitError::Limit { kernel, target, why, loc },
            Fault::Refused(message) | Fault::Defect(message) => EmitError::Defect { kernel, message },
        }
    }
}

impl From<IsaError> for Fault {
    fn from(error: IsaError) -> Fault {
        Fault::Defect(error.to_string())
    }
}

impl From<ObjectError> for Fault {
    fn from(error: ObjectError) -> Fault {
        Fault::Defect(error.to_string())
    }
}

/// The first operand or result. The verifier of the lane IR has checked their number.
pub(crate) fn first<T: Copy>(all: &[T]) -> Result<T, Fault> {
    all.first().copied().ok_or_else(|| Fault::Defect("an operand is missing".to_owned()))
}

/// Takes exactly two operands.
pub(crate) fn two<T: Copy>(all: &[T]) -> Result<[T; 2], Fault> {
    all.try_into().map_err(|_| Fault::Defect(format!("{} operands, not 2", all.len())))
}

/// Takes exactly three operands.
pub(crate) fn three<T: Copy>(all: &[T]) -> Result<[T; 3], Fault> {
    all.try_into().map_err(|_| Fault::Defect(format!("{} operands, not 3", all.len())))
}
