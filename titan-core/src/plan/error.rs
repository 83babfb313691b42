//! The errors of planning and lowering.

use super::Target;
use crate::diag::{Code, Diagnostic};
use crate::ir::{Kernel, Loc, OpId, OpKind, RegionOp};

/// The reason why a kernel cannot be compiled for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerError {
    /// The name of the kernel with its instance.
    pub kernel: String,
    /// The location in the user's source.
    pub loc: Loc,
    /// The message, with the user's names.
    pub message: String,
    /// A suggested fix, other than to use another device.
    pub help: Option<String>,
    /// Whether the error depends on the instance of the kernel.
    pub of_instance: bool,
    /// Whether accumulators do not fit in the registers of the warps that the kernel or the plan gives them.
    pub of_registers: bool,
    /// Whether the program needs more shared memory than devices allow for which it was to be compiled: others may allow more.
    pub of_memory: bool,
}

/// Of the message that a barrier program cannot be verified, what is before the reason.
const UNPROVEN: &str = "the generated barrier program fails verification: ";

impl LowerError {
    /// The code of the diagnostic.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::Backend
    }

    /// The target lacks an instruction for an operation of the kernel.
    #[must_use]
    pub fn no_instruction(kernel: &str, loc: Loc, target: &str, op: &str, why: &str) -> Self {
        LowerError {
            loc,
            of_instance: false,
            ..LowerError::of_kernel(kernel, format!("{target} has no `{op}`: {why}"))
        }
    }

    /// An error that concerns the kernel as a whole.
    #[must_use]
    pub fn of_kernel(kernel: &str, message: String) -> Self {
        LowerError {
            kernel: kernel.to_owned(),
            loc: Loc::default(),
            message,
            help: None,
            of_instance: true,
            of_registers: false,
            of_memory: false,
        }
    }

    pub(crate) fn internal(kernel: &Kernel, message: String) -> Self {
        LowerError {
            help: Some("please report it with the kernel".to_owned()),
            ..LowerError::of_kernel(
                &kernel.sig.full_name(),
                format!("a defect of TITAN: {}", kernel.without_numbers(&message)),
            )
        }
    }

    /// The target is known, but there is no code generator for it.
    pub(crate) fn no_code_generator(kernel: &Kernel, target: &str) -> Self {
        LowerError::of_kernel(&kernel.sig.full_name(), format!("TITAN does not generate code for {target} yet"))
    }

    /// A generated barrier program fails verification, which is a defect of the compiler.
    pub(crate) fn unproven(program: &Kernel, errors: &[Diagnostic<Loc>]) -> Self {
        let why = errors.first().map_or("", |e| e.title.as_str());
        let loc = errors.first().map(|e| e.site).unwrap_or_default();
        LowerError { loc, ..LowerError::internal(program, format!("{UNPROVEN}{why}")) }
    }

    /// The same as an error of a schedule that someone wrote, which is no defect.
    pub(crate) fn of_a_schedule(self, help: &str) -> Self {
        let Some((_, why)) = self.message.split_once(UNPROVEN) else { return self };
        LowerError {
            message: format!("the schedule is not shown to be right: {why}"),
            help: Some(help.to_owned()),
            ..self
        }
    }

    pub(crate) fn unsupported(kernel: &Kernel, at: Option<OpId>, target: &str, what: &str) -> Self {
        LowerError { help: None, ..LowerError::refused(kernel, at, format!("{what} is not supported on {target}"), "") }
    }

    pub(crate) fn refused(kernel: &Kernel, at: Option<OpId>, message: String, help: &str) -> Self {
        LowerError {
            loc: at.map_or_else(Loc::default, |op| kernel.op(op).loc),
            help: Some(help.to_owned()),
            of_instance: false,
            ..LowerError::of_kernel(&kernel.sig.full_name(), message)
        }
    }

    /// The regions of a program do not fit. The message lists the largest ones; with the rest they add up to the bytes that are needed.
    pub(crate) fn shared_memory(program: &Kernel, needed: u32, target: &Target) -> Self {
        let mut placed: Vec<(u32, u32, String, Loc)> = Vec::new();
        program.walk(&mut |_, op| {
            if let (OpKind::Region(RegionOp::Place { offset, bytes, .. }), [region]) = (&op.kind, &op.results[..]) {
                placed.push((*offset, *bytes, contents(&program.display_name(*region)), op.loc));
            }
        });
        // Regions that are not live at the same time share bytes: of these, only the largest is listed.
        placed.sort_by_key(|(offset, bytes, ..)| (std::cmp::Reverse(*bytes), *offset));
        let mut parts: Vec<(u32, u32, String, Loc)> = Vec::new();
        for (offset, bytes, what, loc) in placed {
            let apart = |(other, n, ..): &(u32, u32, String, Loc)| offset >= other + n || other >= &(offset + bytes);
            if parts.len() < 3 && parts.iter().all(apart) {
                parts.push((offset, bytes, what, loc));
            }
        }
        let rest = needed - parts.iter().map(|(_, bytes, ..)| bytes).sum::<u32>();
        let mut sum: Vec<String> = parts.iter().map(|(_, bytes, what, _)| format!("{bytes} for {what}")).collect();
        if rest > 0 {
            sum.push(format!("{rest} for the rest"));
        }
        let (name, limit) = (target.name, target.shared_bytes);
        let message = format!(
            "it needs {needed} bytes of shared memory, but code for {name} may use {limit}: {}",
            sum.join(", ")
        );
        LowerError {
            loc: parts.first().map_or_else(Loc::default, |(_, _, _, loc)| *loc),
            help: Some("use smaller tiles".to_owned()),
            of_memory: true,
            ..LowerError::of_kernel(&program.sig.full_name(), message)
        }
    }
}

/// The contents of a region of shared memory, by its name: the user's, or one that a pass gave it.
fn contents(name: &str) -> String {
    match (name, name.split_once(", ")) {
        (_, Some((ring, "barriers"))) => format!("the barriers of `{ring}`"),
        (_, Some((ring, _))) => format!("the counters of `{ring}`"),
        ("exchange", _) => "a tile that passes from thread to thread, as in a transpose or before a store".to_owned(),
        ("reshape", _) => "a tile that is reshaped".to_owned(),
        ("reduction" | "scalar", _) => "the partial results of a reduction".to_owned(),
        ("slice", _) => "slices of a tile that is stored".to_owned(),
        ("pairs", _) => "a tile of 4-bit elements that is stored".to_owned(),
        ("print", _) => "`tprint!`".to_owned(),
        _ if name.starts_with('%') => "a tile without a name".to_owned(),
        _ => format!("`{name}`"),
    }
}

impl std::fmt::Display for LowerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let help = self.help.as_deref().unwrap_or("the CPU device runs it: `TITAN_DEVICE=cpu`");
        write!(f, "kernel `{}`: {}\n  help: {help}", self.kernel, self.message)
    }
}

impl std::error::Error for LowerError {}
