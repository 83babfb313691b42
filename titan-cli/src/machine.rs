//! The machines for which kernels are compiled, by the names of their targets.
//!
//! Deliberately absent: what the machines are, which the back ends say.

use std::io;
use titan_core::driver::Backend;

/// A machine of a back end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Machine {
    /// NVIDIA's: its code is PTX.
    Nv(&'static titan_nv::Machine),
    /// AMD's: its code is a code object.
    Amd(&'static titan_amd::Machine),
}

impl Machine {
    /// All machines, NVIDIA's first.
    pub(crate) fn all() -> impl Iterator<Item = Machine> {
        let nv = titan_nv::Machine::all().iter().map(Machine::Nv);
        nv.chain(titan_amd::Machine::all().iter().map(Machine::Amd))
    }

    /// The machine of a target.
    ///
    /// # Errors
    /// There is no target of this name.
    pub(crate) fn from_name(name: &str) -> io::Result<Machine> {
        let found = Machine::all().find(|machine| machine.name() == name);
        found.ok_or_else(|| io::Error::other(format!("there is no target `{name}`")))
    }

    /// The name of its target.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Machine::Nv(machine) => machine.name,
            Machine::Amd(machine) => machine.name,
        }
    }

    /// Its back end.
    pub(crate) fn backend(self) -> &'static dyn Backend {
        match self {
            Machine::Nv(machine) => machine,
            Machine::Amd(machine) => machine,
        }
    }
}
