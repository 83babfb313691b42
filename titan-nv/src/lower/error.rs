//! The reasons why a function cannot be emitted as PTX.

use crate::machine::{Feature, Machine};
use crate::ptx::Form;
use crate::target::shared_classes;
use titan_core::diag::Code;
use titan_core::ir::Loc;
use titan_core::lane::{Func, LaneError, Op, mnemonic};

/// The reason why a function cannot be emitted as PTX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The function breaks a rule of the lane IR.
    #[error("{0}")]
    Lane(#[source] LaneError),

    /// The target lacks an operation.
    #[error("kernel `{kernel}`, line {line}: {target} has no `{op}`: {why}", line = loc.line)]
    Operation {
        /// The kernel with its instance.
        kernel: String,
        /// The target's name.
        target: &'static str,
        /// The mnemonic of the operation of the lane IR.
        op: String,
        /// The reason why the target lacks it.
        why: String,
        /// The source location of the operation.
        loc: Loc,
    },

    /// The program exceeds a limit of the target.
    #[error("kernel `{kernel}`: {target} {why}")]
    Limit {
        /// The kernel with its instance.
        kernel: String,
        /// The target's name.
        target: &'static str,
        /// The limit, with numbers.
        why: String,
    },

    /// The name of the source file has a character that PTX cannot spell.
    #[error("kernel `{kernel}`: PTX cannot contain the file name {file:?}; omit the line information")]
    FileName {
        /// The kernel with its instance.
        kernel: String,
        /// The name of the file.
        file: String,
    },

    /// A defect of this crate.
    #[error("kernel `{kernel}`: a bug in the PTX back end: {message}; please report it")]
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
}

/// The reason why an operation cannot be emitted; callers add its place.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The target does not have the instruction.
    Missing(&'static Form),
    /// No sequence of instructions implements the operation.
    Refused(String),
    /// A defect of this crate.
    Defect(String),
    /// An error with its place.
    Placed(Box<EmitError>),
}

impl Fault {
    /// Adds the place of the fault: the innermost operation around it.
    pub(super) fn at(self, func: &Func, machine: &Machine, op: &Op) -> Fault {
        let why = match self {
            Fault::Placed(_) | Fault::Defect(_) => return self,
            Fault::Missing(form) => format!("`{}` needs {} (PTX ISA manual, {})", form.text, targets(form), form.cites),
            Fault::Refused(why) => why,
        };
        Fault::Placed(Box::new(EmitError::Operation {
            kernel: func.name.clone(),
            target: machine.name,
            op: mnemonic(&op.kind),
            why,
            loc: op.loc,
        }))
    }

    /// Converts a fault that has passed through all enclosing operations to an error.
    pub(super) fn outside(self, func: &Func) -> EmitError {
        let kernel = func.name.clone();
        match self {
            Fault::Placed(error) => *error,
            Fault::Defect(message) | Fault::Refused(message) => EmitError::Defect { kernel, message },
            Fault::Missing(form) => EmitError::Defect { kernel, message: format!("`{}`", form.text) },
        }
    }
}

/// A description of the targets that have an instruction: all from one on, or some.
fn targets(form: &Form) -> String {
    if form.needs.is_none() {
        return format!("sm_{}", form.sm);
    }
    let having: Vec<&str> = Machine::all().iter().filter(|m| form.is_of(m)).map(|m| m.name).collect();
    having.join(" or ")
}

/// Checks limits before any instruction is selected.
pub(super) fn limits(func: &Func, machine: &Machine, file: Option<&str>) -> Result<(), EmitError> {
    let limit = |why: String| Err(EmitError::Limit { kernel: func.name.clone(), target: machine.name, why });
    if func.lanes != machine.warp_size {
        return limit(format!("has warps of {} lanes, not {}", machine.warp_size, func.lanes));
    }
    if func.threads == 0 || !func.threads.is_multiple_of(func.lanes) || func.threads > machine.threads_per_block {
        let max = machine.threads_per_block;
        return limit(format!("runs programs of whole warps, at most {max} threads, not {}", func.threads));
    }
    if func.cluster > 1 && !machine.has(Feature::Cluster) {
        return limit(format!("has no clusters of programs; this code has clusters of {}", func.cluster));
    }
    // Code for one machine runs on later ones, which may grant more; a variant that needs more states this as a condition.
    let max = shared_classes(machine).last().copied().unwrap_or(machine.shared_per_block);
    if func.shared_bytes > max {
        return limit(format!(
            "and later have at most {max} bytes of shared memory for a program, not {}",
            func.shared_bytes
        ));
    }
    match file {
        Some(file) if file.contains(|c: char| c.is_control() || c == '"' || c == '\\') => {
            Err(EmitError::FileName { kernel: func.name.clone(), file: file.to_owned() })
        }
        Some(_) | None => Ok(()),
    }
}

/// The first operand or result. `verify` has checked their number.
pub(super) fn first<T: Copy>(all: &[T]) -> Result<T, Fault> {
    all.first().copied().ok_or_else(|| Fault::Defect("an operand is missing".to_owned()))
}

/// Takes exactly two operands.
pub(super) fn two<T: Copy>(all: &[T]) -> Result<[T; 2], Fault> {
    all.try_into().map_err(|_| Fault::Defect(format!("{} operands, not 2", all.len())))
}

/// Takes exactly three operands.
pub(super) fn three<T: Copy>(all: &[T]) -> Result<[T; 3], Fault> {
    all.try_into().map_err(|_| Fault::Defect(format!("{} operands, not 3", all.len())))
}
