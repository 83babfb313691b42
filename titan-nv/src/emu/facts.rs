//! What a module says of itself before anything runs: sizes, limits, variables.

use super::error::EmuError;
use super::launch::{Kernel, Module};
use super::memory::{DevicePtr, Memory};
use super::ty::{Kind, Space};

impl Kernel<'_> {
    /// Bytes of shared memory that the kernel declares; what the launch sizes is not among them.
    #[must_use]
    pub fn static_shared(&self) -> u32 {
        self.program().shared.iter().filter_map(|s| s.2).sum()
    }

    /// Bytes of local memory that each thread has.
    #[must_use]
    pub fn local_bytes(&self) -> u32 {
        self.program().local.iter().map(|l| l.2).sum()
    }

    /// Threads that a block may have by `.reqntid` or `.maxntid`, if the kernel limits them.
    #[must_use]
    pub fn thread_limit(&self) -> Option<u32> {
        let extents = self.entry().required.or(self.entry().max)?;
        extents.iter().try_fold(1_u32, |n, e| n.checked_mul(*e))
    }

    /// Words of 32 bits that the declared registers take: an upper bound of what a register allocation needs.
    #[must_use]
    pub fn register_words(&self) -> u32 {
        let words = |kind, bits: u32| if kind == Kind::Pred { 0 } else { bits.div_ceil(32) };
        self.entry().regs.iter().map(|r| words(r.ty.kind(), r.ty.bits())).sum()
    }

    /// Where each parameter begins among all parameters, and its size, in bytes.
    pub fn param_places(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.entry().params.iter().map(|p| (p.offset, p.size))
    }
}

impl Module {
    /// The same code with variables of its own: loaded twice, a module has them twice.
    #[must_use]
    pub fn instance(mut self, number: u64) -> Module {
        self.hash = self.hash.wrapping_add(u128::from(number) << 64 | u128::from(number));
        self
    }

    /// Places the variables, and gives the address and size of one of them, if there is one of this name.
    ///
    /// # Errors
    /// A variable that begins with the address of what is not declared.
    pub fn variable(&self, name: &str, memory: &mut Memory) -> Result<Option<(DevicePtr, u32)>, EmuError> {
        let named = |v: &&super::ast::Var| v.name == name && matches!(v.space, Space::Global | Space::Const);
        let Some(var) = self.ast.vars.iter().find(named) else { return Ok(None) };
        let places = memory.load(self.hash, &self.ast, &[name.to_owned()])?;
        let place = places.first().map(|at| DevicePtr::from_address(*at));
        Ok(place.zip(var.size))
    }

    /// Frees the variables.
    pub fn unload(&self, memory: &mut Memory) {
        memory.unload(self.hash);
    }
}
