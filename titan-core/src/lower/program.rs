//! The index of a program in the tile IR, which may be another number than its index on the device.
//!
//! Programs of a grid in groups of rows ([`crate::pipeline::walk`]) only use their index as the number of a tile, so that any permutation
//! of indices computes the same. On a device of several dies it is the one of [`crate::lane`], module `dies`. All operations that tell a program's index
//! see the permuted one, reports of traps and prints too.

use super::{Lower, Reg};
use crate::ir::{ForKind, GridSpec, Kernel, OpKind, Value};
use crate::lane;
use crate::target::Target;

/// The number of dies for which programs are numbered: 1 if the index of a program is more to the kernel than the number of a tile.
pub(super) fn dies(kernel: &Kernel, target: &Target, cluster: u32) -> u32 {
    let flat = matches!(&kernel.sig.grid, GridSpec::Extents(extents) if extents.len() == 1);
    if target.dies < 2 || cluster > 1 || !flat {
        return 1;
    }
    let mut numbers: Vec<Value> = Vec::new();
    let mut free = true;
    kernel.walk(&mut |_, op| {
        if op.kind == OpKind::ProgramId(0) {
            numbers.extend(&op.results);
        }
        free &= !matches!(op.kind, OpKind::ProgramId(1..) | OpKind::NumPrograms(_) | OpKind::For(ForKind::Distributed));
    });
    kernel.walk(&mut |_, op| {
        let uses = |value: &Value| numbers.contains(value);
        let places = matches!(op.kind, OpKind::UnflattenGrouped(_));
        let others = if places { op.args.get(1..).unwrap_or_default() } else { &op.args[..] };
        free &= !others.iter().any(uses);
    });
    if free && !numbers.is_empty() { target.dies } else { 1 }
}

impl Lower<'_> {
    /// The program's index along an axis.
    pub(super) fn program_index(&mut self, axis: u8) -> Reg {
        match axis {
            0 => self.b.number_on_dies(self.dies),
            axis => self.b.one(lane::OpKind::ProgramId(axis), &[]),
        }
    }
}
