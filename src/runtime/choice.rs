//! The code of a kernel that a launch runs, and the reasons against the code that is tried before it.

use super::backend::{Call, Code};
use super::device::Device;
use crate::error::Result;
use std::fmt;

/// The code that a launch would run. A kernel has code for several targets and under several assumptions, which is tried in the order of
/// [`KernelInfo::variants`](crate::KernelInfo::variants), starting with that for the best target.
/// [`Launch::choice`](crate::Launch::choice) returns it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Choice {
    /// The target of the code: `cpu`, `sm_80`, `sm_90a`, `gfx942`; `simulator` on a simulated device.
    pub target: String,
    /// The code that is tried before it: its target, and the reason why it cannot run these arguments on this device.
    pub passed_over: Vec<(String, String)>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = |target: &str, upto: usize| self.passed_over[..upto].iter().filter(|(t, _)| t == target).count();
        let tried = self.passed_over.len();
        write!(f, "the code for {}", self.target)?;
        if before(&self.target, tried) > 0 {
            write!(f, ", variant {}", before(&self.target, tried) + 1)?;
        }
        for (i, (target, reason)) in self.passed_over.iter().enumerate() {
            // Several variants of a target are numbered as `titan::kernels()` lists them.
            let several = before(target, tried) + usize::from(*target == self.target) > 1;
            match several {
                true => write!(f, "\n  not variant {} for {target}: {reason}", before(target, i) + 1)?,
                false => write!(f, "\n  not that for {target}: {reason}")?,
            }
        }
        Ok(())
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
    #[cfg_attr(
        any(
            not(any(feature = "cpu", feature = "simulator")),
            not(any(feature = "cuda", feature = "hip", feature = "emulator"))
        ),
        expect(unused_variables, reason = "some devices have one target, others several")
    )]
    pub(crate) fn choice(&self, device: &Device, call: &Call<'_>) -> Result<Choice> {
        match self {
            #[cfg(feature = "cpu")]
            Code::Cpu(_) => Ok(Choice::only(device.kind().name())),
            #[cfg(feature = "cuda")]
            Code::Cuda(code) => code.choice(call),
            #[cfg(feature = "hip")]
            Code::Hip(code) => code.choice(call),
            #[cfg(feature = "emulator")]
            Code::Emulated(code) => code.choice(call),
            #[cfg(feature = "simulator")]
            Code::Simulated(_) => Ok(Choice::only(device.kind().name())),
            #[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
            Code::Nowhere(never) => match *never {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Choice;

    fn choice(target: &str, passed_over: &[(&str, &str)]) -> String {
        let passed_over = passed_over.iter().map(|(t, why)| ((*t).to_owned(), (*why).to_owned())).collect();
        Choice { target: target.to_owned(), passed_over }.to_string()
    }

    #[test]
    fn variants_of_one_target_are_numbered() {
        assert_eq!(choice("sm_80", &[("sm_90a", "no map")]), "the code for sm_80\n  not that for sm_90a: no map");
        assert_eq!(
            choice("sm_90a", &[("sm_90a", "one tile")]),
            "the code for sm_90a, variant 2\n  not variant 1 for sm_90a: one tile"
        );
        assert_eq!(
            choice("sm_80", &[("sm_90a", "one tile"), ("sm_90a", "no map")]),
            "the code for sm_80\n  not variant 1 for sm_90a: one tile\n  not variant 2 for sm_90a: no map"
        );
    }
}
