//! The code that a device runs: the targets of its vendor, and the back ends that compile for them.

use super::device::Device;
use super::kernel::Loaded;
use crate::error::{Error, Result};
use titan_core::artifact::Variant;
#[cfg(feature = "_compiler")]
use titan_core::driver::Backend;

/// What a device can run.
#[derive(Clone, Debug)]
pub(super) enum Machines {
    /// The code for NVIDIA's targets of this compute capability, times ten, and for older ones.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    Nvidia(u32),
    /// The code for this architecture of AMD's, and no other.
    #[cfg(feature = "hip")]
    Amd(String),
}

impl Machines {
    /// The targets whose code the device runs, the best one first.
    pub(super) fn targets(&self) -> Vec<&'static str> {
        match self {
            #[cfg(any(feature = "cuda", feature = "emulator"))]
            Machines::Nvidia(capability) => {
                titan_nv::Machine::of_capability(*capability).iter().map(|machine| machine.name).collect()
            }
            #[cfg(feature = "hip")]
            Machines::Amd(name) => titan_amd::Machine::from_name(name).iter().map(|machine| machine.name).collect(),
        }
    }

    /// All targets of the vendor.
    fn of_vendor(&self) -> Vec<&'static str> {
        match self {
            #[cfg(any(feature = "cuda", feature = "emulator"))]
            Machines::Nvidia(_) => titan_nv::Machine::all().iter().map(|machine| machine.name).collect(),
            #[cfg(feature = "hip")]
            Machines::Amd(_) => titan_amd::Machine::all().iter().map(|machine| machine.name).collect(),
        }
    }

    /// The back end of one of the vendor's targets.
    #[cfg(feature = "_compiler")]
    fn back_end(&self, target: &str) -> Option<&'static dyn Backend> {
        match self {
            #[cfg(any(feature = "cuda", feature = "emulator"))]
            Machines::Nvidia(_) => titan_nv::Machine::from_name(target).ok().map(|machine| machine as &dyn Backend),
            #[cfg(feature = "hip")]
            Machines::Amd(_) => titan_amd::Machine::from_name(target).ok().map(|machine| machine as &dyn Backend),
        }
    }

    /// The error of a kernel that has code for some of the vendor's targets, none of which the device runs.
    fn elsewhere(&self, device: &Device, loaded: &Loaded, targets: &[&str]) -> Error {
        let (device, targets) = (device.to_string(), targets.join(", "));
        match self {
            #[cfg(any(feature = "cuda", feature = "emulator"))]
            Machines::Nvidia(capability) => {
                let capability = format!("{}.{}", capability / 10, capability % 10);
                Error::TooOld { kernel: loaded.name.clone(), device, capability, targets }
            }
            #[cfg(feature = "hip")]
            Machines::Amd(name) => {
                Error::ForeignGpu { what: loaded.title.to_string(), device, machine: name.clone(), targets }
            }
        }
    }

    /// The variants of a kernel that the device runs, in the order in which launches try them: those for the best target first. The last one
    /// assumes nothing. Kernels in text form, which only tests have, are compiled now.
    pub(super) fn variants(&self, device: &Device, loaded: &Loaded) -> Result<Vec<Variant>> {
        let refuse =
            |reason: String| Error::Unsupported { kernel: loaded.name.clone(), device: device.to_string(), reason };
        let targets = self.targets();
        let embedded = |target: &'static str| loaded.variants.iter().filter(move |v| v.target == target).cloned();
        let fitting: Vec<Variant> = targets.iter().copied().flat_map(embedded).collect();
        if !fitting.is_empty() {
            return Ok(fitting);
        }
        if let Some((_, reason)) = targets.iter().find_map(|name| loaded.refused.iter().find(|(t, _)| t == name)) {
            return Err(refuse(reason.clone()));
        }
        let all = self.of_vendor();
        let mut others: Vec<&str> = loaded.variants.iter().map(|v| v.target.as_str()).collect();
        others.retain(|name| all.contains(name));
        if targets.is_empty() || !others.is_empty() {
            let mut others = if others.is_empty() { all } else { others };
            others.dedup();
            return Err(self.elsewhere(device, loaded, &others));
        }
        self.compiled(loaded, &targets).map_err(refuse)
    }

    /// The code of a kernel that has none, for the best of these targets for which it can be compiled.
    #[cfg(feature = "_compiler")]
    fn compiled(&self, loaded: &Loaded, targets: &[&'static str]) -> std::result::Result<Vec<Variant>, String> {
        let (mut made, mut refused) = (Vec::new(), NO_CODE.to_owned());
        for machine in targets.iter().filter_map(|name| self.back_end(name)) {
            match titan_core::driver::compile(&loaded.kernel, machine, Some((&loaded.kernel.sig.name, 1))) {
                Ok(variants) => made.extend(variants),
                Err(error) => refused = format!("[{}] {error}", error.code()),
            }
            if made.last().is_some_and(Variant::takes_all_arguments) {
                return Ok(made);
            }
        }
        Err(refused)
    }

    /// Programs do not contain the compiler: all their kernels are compiled by the macro.
    #[cfg(not(feature = "_compiler"))]
    fn compiled(&self, _: &Loaded, _: &[&'static str]) -> std::result::Result<Vec<Variant>, String> {
        Err(NO_CODE.to_owned())
    }
}

/// The reason why a kernel does not run on a target for which it was not compiled.
const NO_CODE: &str = "there is no code for it";
