//! Properties of a module that are known before anything runs: sizes, limits, variables.

use super::error::EmuError;
use super::launch::{Kernel, Module};
use super::memory::{DevicePtr, Memory};
use super::ty::{Kind, Space};

impl Kernel<'_> {
    /// The bytes of shared memory that the kernel declares, without the array that the launch sizes.
    #[must_use]
    pub fn static_shared(&self) -> u32 {
        self.program().shared.iter().filter_map(|s| s.2).sum()
    }

    /// The bytes of local memory of each thread.
    #[must_use]
    pub fn local_bytes(&self) -> u32 {
        self.program().local.iter().map(|l| l.2).sum()
    }

    /// The largest number of threads of a block by `.reqntid` or `.maxntid`, if the kernel limits them.
    #[must_use]
    pub fn thread_limit(&self) -> Option<u32> {
        let extents = self.entry().required.or(self.entry().max)?;
        extents.iter().try_fold(1_u32, |n, e| n.checked_mul(*e))
    }

    /// The number of 32-bit registers that the declared registers take: an upper bound of what a register allocation needs.
    #[must_use]
    pub fn register_words(&self) -> u32 {
        let words = |kind, bits: u32| if kind == Kind::Pred { 0 } else { bits.div_ceil(32) };
        self.entry().regs.iter().map(|r| words(r.ty.kind(), r.ty.bits())).sum()
    }

    /// The offset of each parameter among all parameters, and its size, in bytes.
    pub fn param_places(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.entry().params.iter().map(|p| (p.offset, p.size))
    }
}

impl Module {
    /// The same code with its own variables: a module that is loaded twice has them twice.
    #[must_use]
    pub fn instance(mut self, number: u64) -> Module {
        self.hash = self.hash.wrapping_add(u128::from(number) << 64 | u128::from(number));
        self
    }

    /// Allocates the variables, and returns the address and size of the one with this name, if it exists.
    ///
    /// # Errors
    /// A variable whose initial value is the address of an undeclared entity.
    pub fn variable(&self, name: &str, memory: &mut Memory) -> Result<Option<(DevicePtr, u32)>, EmuError> {
        let named = |v: &&super::ast::Var| v.name == name && matches!(v.space, Space::Global | Space::Const);
        let Some(var) = self.ast.vars.iter().find(named) else { return Ok(None) };
        let places = memory.load(self.hash, &self.ast, &[name.to_owned()])?;
        let place = places.first().map(|at| DevicePtr::from_address(*at));
        Ok(place.zip(var.size))
    }

    /// Frees the module's variables.
    pub fn unload(&self, memory: &mut Memory) {
        memory.unload(self.hash);
    }
}
