//! Why a kernel cannot be lowered.

use super::tile::bytes_text;
use crate::diag::Code;
use crate::ir::{Kernel, Loc, OpId};
use crate::lane::Func;
use crate::plan::Target;

/// Why a kernel cannot be lowered for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerError {
    /// The kernel with its instance.
    pub kernel: String,
    /// Where the user wrote it.
    pub loc: Loc,
    /// What is wrong, in the user's names.
    pub message: String,
    /// A way out.
    pub help: String,
}

impl LowerError {
    /// The code of the rule.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::Backend
    }

    pub(crate) fn internal(kernel: &Kernel, message: String) -> Self {
        LowerError {
            kernel: kernel.sig.full_name(),
            loc: Loc::default(),
            message: format!("a defect of TITAN: {message}"),
            help: "please report it with the kernel; the CPU device runs it".to_owned(),
        }
    }

    pub(crate) fn unsupported(kernel: &Kernel, at: Option<OpId>, target: &str, what: String) -> Self {
        LowerError {
            kernel: kernel.sig.full_name(),
            loc: at.map_or_else(Loc::default, |op| kernel.op(op).loc),
            message: format!("{what} is not supported on {target}"),
            help: "the CPU device runs it: `TITAN_DEVICE=cpu`".to_owned(),
        }
    }

    pub(super) fn shared_memory(kernel: &Kernel, func: &Func, target: &Target) -> Self {
        let mut buffers: Vec<(u32, &str)> = func.buffers.iter().map(|b| (b.bytes, b.name.as_str())).collect();
        buffers.sort_by(|a, b| b.cmp(a));
        let largest: Vec<String> =
            buffers.iter().take(3).map(|(n, name)| format!("`{name}` {}", bytes_text(*n))).collect();
        LowerError {
            kernel: kernel.sig.full_name(),
            loc: Loc::default(),
            message: format!(
                "it needs {} of shared memory, {} has {}: {}",
                bytes_text(func.shared_bytes),
                target.name,
                bytes_text(target.shared_bytes),
                largest.join(", ")
            ),
            help: "use smaller tiles".to_owned(),
        }
    }
}

impl std::fmt::Display for LowerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kernel `{}`: {}\n  help: {}", self.kernel, self.message, self.help)
    }
}

impl std::error::Error for LowerError {}
