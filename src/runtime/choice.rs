//! The code of a kernel that a launch runs, and the reasons against the code that is tried before it.

use super::backend::{Call, Code};
use super::device::Device;
use crate::error::Result;
use std::fmt;

/// The code that a launch would run. A kernel has code for several targets and under several assumptions, which is tried in the order of
/// [`KernelInfo::variants`](crate::KernelInfo::variants), starting with that for the best target.
/// [`Launch::choice`](crate::Launch::choice) returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The target of the code: `cpu`, `sm_80`, `sm_90a`; `simulator` on a simulated device.
    pub target: String,
    /// The code that is tried before it: its target, and the reason why it cannot run these arguments on this device.
    pub passed_over: Vec<(String, String)>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the code for {}", self.target)?;
        self.passed_over.iter().try_for_each(|(target, reason)| write!(f, "\n  not that for {target}: {reason}"))
    }
}

impl Choice {
    #[cfg(any(feature = "cpu", feature = "simulator"))]
    fn only(target: &str) -> Choice {
        Choice { target: target.to_owned(), passed_over: Vec::new() }
    }
}

impl Code {
    /// The code that [`run`](Self::run) or [`give`](Self::give) would run.
    pub(crate) fn choice(&self, device: &Device, call: &Call<'_>) -> Result<Choice> {
        match self {
            #[cfg(feature = "cpu")]
            Code::Cpu(_) => Ok(Choice::only(device.kind().name())),
            #[cfg(feature = "cuda")]
            Code::Cuda(code) => code.choice(call),
            #[cfg(feature = "emulator")]
            Code::Emulated(code) => code.choice(call),
            #[cfg(feature = "simulator")]
            Code::Simulated(_) => Ok(Choice::only(device.kind().name())),
            #[cfg(not(any(feature = "cpu", feature = "cuda", feature = "emulator")))]
            Code::Nowhere(never) => match *never {},
        }
    }
}
