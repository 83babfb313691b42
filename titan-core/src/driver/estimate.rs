//! Estimates the resources of a multiprocessor that a program uses, from layouts: shared memory, and registers per thread.
//!
//! Shared memory is exact: regions are allocated as they are later. Registers are those of [`super::registers`].
//!
//! Deliberately absent: the choice by these numbers.

use super::registers::{Held, with_others};
use crate::ir::{Kernel, NvOp, OpKind};
use crate::target::Target;

/// The resources that a program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The shared memory in bytes.
    pub shared_bytes: u32,
    /// The number of 32-bit registers per thread.
    pub registers: u32,
    /// The number of warps.
    pub warps: u32,
    /// Whether it copies tiles to shared memory in bulk.
    pub copies_in_bulk: bool,
}

impl Estimate {
    /// The estimate for a barrier program whose regions are allocated in `shared_bytes` bytes, and whose threads hold these tiles.
    pub(super) fn of(program: &Kernel, shared_bytes: u32, held: &Held) -> Estimate {
        let warps = program.laid_out.as_deref().map_or(1, |laid| laid.warps);
        let copies_in_bulk = program.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(NvOp::BulkLoad { .. })));
        Estimate { shared_bytes, registers: with_others(held.most), warps, copies_in_bulk }
    }

    /// The number of programs that a multiprocessor can run concurrently, if it has no more shared memory than one program may use.
    #[must_use]
    pub fn programs(&self, target: &Target) -> u32 {
        let of = |all: u32, each: u32| all.checked_div(each).unwrap_or(u32::MAX);
        // For each program, the system reserves some memory in addition to the program's own.
        let shared = of(target.shared_bytes + target.shared_reserved, self.shared_bytes + target.shared_reserved);
        let registers = of(target.registers_per_sm, self.registers.min(target.registers) * self.warps * target.lanes);
        shared.min(registers).min(of(target.warps_per_sm, self.warps))
    }
}
