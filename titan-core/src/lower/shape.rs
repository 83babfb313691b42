//! Operations that move elements without changing them: reshape, transpose, interleave, split.

use super::tile::{LoweredValue, register_index};
use super::{Lower, LowerError};
use crate::ir::Op;

impl Lower<'_> {
    /// A reshape between shapes that differ in axes of extent 1 only.
    pub(super) fn reshape(&mut self, op: &Op) {
        let (from, to) = (self.layout(op.args[0]), self.layout(op.results[0]));
        let regs = self.regs(op.args[0]);
        let regs = self.reorder(&regs, &from, &to, &|at| unrename(at, from.extents(), to.extents()));
        self.define(op.results[0], LoweredValue::Tile(regs));
    }

    /// A permutation of axes, which relabels the same registers or the same buffer.
    pub(super) fn permute(&mut self, op: &Op, perm: [u8; 4]) -> Result<(), LowerError> {
        let (from, to) = (op.args[0], op.results[0]);
        let perm = &perm[..self.extents(from).len()];
        if let Some(LoweredValue::Buffer(staged)) = &self.lowered[from.index()] {
            let staged = match perm {
                [1, 0] => staged.transposed(),
                [0, 1] => staged.clone(),
                _ => return Err(self.defect("a transpose of more than two axes in shared memory")),
            };
            self.define(to, LoweredValue::Buffer(staged));
            return Ok(());
        }
        let (source, turned) = (self.layout(from), self.layout(to));
        let regs = self.regs(from);
        let back = |at: [u32; 4]| {
            let mut out = [0; 4];
            for (i, p) in perm.iter().enumerate() {
                out[usize::from(*p)] = at[i];
            }
            out
        };
        let regs = self.reorder(&regs, &source, &turned, &back);
        self.define(to, LoweredValue::Tile(regs));
        Ok(())
    }

    /// A tile whose elements alternate between two tiles, along the last axis.
    pub(super) fn interleave(&mut self, op: &Op) {
        let (half, whole) = (self.layout(op.args[0]), self.layout(op.results[0]));
        let both = [self.regs(op.args[0]), self.regs(op.args[1])];
        let index = register_index(&half);
        let last = half.rank() - 1;
        let mut regs = Vec::new();
        for r in 0..whole.registers() {
            let mut at = whole.register_coords(r);
            let which = usize::from(at[last] % 2 == 1);
            at[last] /= 2;
            let reg = index.get(&at).and_then(|i| both[which].get(*i)).copied();
            regs.push(reg.unwrap_or_else(|| self.missing()));
        }
        self.define(op.results[0], LoweredValue::Tile(regs));
    }

    /// The even and the odd elements along the last axis, as two tiles.
    pub(super) fn split(&mut self, op: &Op) {
        let (whole, half) = (self.layout(op.args[0]), self.layout(op.results[0]));
        let regs = self.regs(op.args[0]);
        let last = half.rank() - 1;
        for (which, result) in (0u32..).zip(&op.results) {
            let back = |mut at: [u32; 4]| {
                at[last] = at[last] * 2 + which;
                at
            };
            let part = self.reorder(&regs, &whole, &half, &back);
            self.define(*result, LoweredValue::Tile(part));
        }
    }
}

/// The coordinates in a shape from those in another one that differs in axes of extent 1 only.
fn unrename(at: [u32; 4], old: &[u32], new: &[u32]) -> [u32; 4] {
    let mut real = new.iter().enumerate().filter(|(_, n)| **n > 1).map(|(i, _)| at[i]);
    let mut out = [0; 4];
    for (i, n) in old.iter().enumerate() {
        if *n > 1 {
            out[i] = real.next().unwrap_or(0);
        }
    }
    out
}
