//! The GPUs for which kernels are compiled: one row for each target, with the vendor whose back end compiles for it.
//!
//! What differs between vendors is in their rows of [`Vendor`], and nowhere else in the macro. A vendor may be left out of a build: its targets
//! still have names, and a kernel that lists one of them is told which feature brings it.
//!
//! Deliberately absent: what the machines are, which the back ends say.

use titan_core::driver::Backend;
use titan_nv::Machine as Nv;

/// What is done for a target if a kernel has no `targets(..)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unlisted {
    /// The kernel is compiled for it, and it is an error if that is impossible.
    Compiled,
    /// The kernel is compiled for it, and the build warns if that is impossible.
    Tried,
    /// Nothing.
    LeftOut,
}

/// A GPU target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gpu {
    /// Its name in `targets(..)` and in artifacts.
    pub(crate) name: &'static str,
    vendor: &'static Vendor,
    unlisted: Unlisted,
    /// The target with whose code the code for this one comes: it runs on some of that target's devices only, and for some arguments.
    with: Option<&'static str>,
}

/// What the macro must know of a vendor.
#[derive(Debug)]
struct Vendor {
    /// The machine of a target; `None` if this macro was built without the vendor's back end.
    machine: fn(&str) -> Option<&'static dyn Backend>,
    /// Whether the devices that run the code for the first target also run that for the second one.
    also_runs: fn(&str, &str) -> bool,
    /// The feature of `titan-gpu` that brings the back end; nothing if each build has it.
    feature: Option<&'static str>,
}

static NVIDIA: Vendor = Vendor {
    machine: |name| Nv::from_name(name).ok().map(|machine| machine as &dyn Backend),
    also_runs: |target, other| {
        let capability = Nv::from_name(target).map_or(0, |machine| machine.capability);
        Nv::from_name(other).is_ok_and(|machine| machine.runs_on(capability))
    },
    feature: None,
};

static AMD: Vendor = Vendor {
    #[cfg(feature = "amd")]
    machine: |name| titan_amd::Machine::from_name(name).ok().map(|machine| machine as &dyn Backend),
    #[cfg(not(feature = "amd"))]
    machine: |_| None,
    // Code objects are for one architecture.
    also_runs: |target, other| target == other,
    feature: Some("hip"),
};

const fn nvidia(name: &'static str) -> Gpu {
    Gpu { name, vendor: &NVIDIA, unlisted: Unlisted::LeftOut, with: None }
}

/// All targets. Of those whose code a device runs, the best one comes first: in this order launches try their code.
static GPUS: &[Gpu] = &[
    nvidia("sm_120a"),
    nvidia("sm_103a"),
    nvidia("sm_100a"),
    Gpu { with: Some("sm_80"), ..nvidia("sm_90a") },
    Gpu { unlisted: Unlisted::Compiled, ..nvidia("sm_80") },
    Gpu { name: "gfx942", vendor: &AMD, unlisted: Unlisted::Tried, with: None },
];

/// All targets, the oldest of each vendor first, for messages.
pub(crate) fn in_words() -> String {
    let with = |gpu: &Gpu| match gpu.vendor.feature {
        Some(feature) => format!("`{}` (with feature `{feature}` of `titan-gpu`)", gpu.name),
        None => format!("`{}`", gpu.name),
    };
    let (of_all, of_features): (Vec<&Gpu>, Vec<&Gpu>) = GPUS.iter().partition(|gpu| gpu.vendor.feature.is_none());
    let all: Vec<String> = of_all.into_iter().rev().chain(of_features).map(with).collect();
    let (last, others) = all.split_last().expect("there are targets");
    format!("{} and {last}", others.join(", "))
}

impl Gpu {
    /// The target of a name.
    pub(crate) fn of_name(name: &str) -> Option<&'static Gpu> {
        GPUS.iter().find(|gpu| gpu.name == name)
    }

    /// All targets for which this macro can compile, in the order in which launches try their code.
    pub(crate) fn all() -> impl Iterator<Item = &'static Gpu> {
        GPUS.iter().filter(|gpu| gpu.machine().is_some())
    }

    /// The machine of the target; `None` if this macro was built without the vendor's back end.
    pub(crate) fn machine(&self) -> Option<&'static dyn Backend> {
        (self.vendor.machine)(self.name)
    }

    /// The feature of `titan-gpu` without which this macro cannot compile for the target, if it cannot.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        self.vendor.feature.filter(|_| self.machine().is_none())
    }

    /// Whether kernels without `targets(..)` are compiled for it.
    pub(crate) fn is_default(&self) -> bool {
        self.unlisted != Unlisted::LeftOut
    }

    /// Whether a kernel without `targets(..)` may have no code for it.
    pub(crate) fn is_optional(&self) -> bool {
        self.unlisted == Unlisted::Tried
    }

    /// The target with whose code the code for this one comes.
    pub(crate) fn comes_with(&self) -> Option<&'static str> {
        self.with
    }

    /// Whether the devices that run its code also run that for another target.
    pub(crate) fn also_runs(&self, other: &str) -> bool {
        (self.vendor.also_runs)(self.name, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_the_machine_of_its_name() {
        for gpu in GPUS {
            match gpu.machine() {
                Some(machine) => assert_eq!(machine.target().name, gpu.name),
                None => assert_eq!((gpu.lacks(), cfg!(feature = "amd")), (Some("hip"), false), "{}", gpu.name),
            }
            assert!(gpu.also_runs(gpu.name), "{}", gpu.name);
        }
        assert_eq!(Gpu::of_name("gfx942").map(|gpu| gpu.lacks().is_none()), Some(cfg!(feature = "amd")));
    }

    #[test]
    fn devices_of_a_vendor_run_no_code_for_another() {
        let runs = |target: &str, other: &str| Gpu::of_name(target).expect("a target").also_runs(other);
        assert!(runs("sm_90a", "sm_80") && !runs("sm_80", "sm_90a"));
        assert!(!runs("sm_90a", "gfx942") && !runs("gfx942", "sm_80"));
    }
}
