//! Operations that move elements without changing them: reshape, transpose, interleave, split.

use super::tile::{Held, register_index};
use super::{Lower, LowerError, Reg};
use crate::ir::{Op, Value};
use crate::layout::{Bit, Encoding, Layout, Swizzle};

impl Lower<'_> {
    /// The same elements, row-major, under other extents.
    pub(super) fn reshape(&mut self, op: &Op) -> Result<(), LowerError> {
        let (from, to) = (op.args[0], op.results[0]);
        let elem = self.k.ty(from).elem();
        let home = self.home(to);
        let source = self.home(from);
        let regs = self.tile(from, &source)?;
        let regs = match renamed(&source, home.extents()) {
            Some(same) => {
                let regs = moved(&regs, &source, &same, &|at| unrename(at, source.extents(), same.extents()));
                self.convert(&regs, &same, &home, elem)?
            }
            None => {
                // Through shared memory, where the order of elements is that of the shapes.
                let bits = super::convert::in_buffer(elem).bits();
                let write = self.stage("reshape", rows(source.extents(), bits));
                let read = super::tile::Staged { encoding: rows(home.extents(), bits), ..write.clone() };
                self.write_buffer(&write, &regs, &source, elem);
                self.read_buffer(&read, &home, elem)
            }
        };
        self.hold(to, Held::Tile(regs));
        Ok(())
    }

    /// Axes in another order: a name for the same registers, or for the same buffer.
    pub(super) fn permute(&mut self, op: &Op, perm: [u8; 4]) -> Result<(), LowerError> {
        let (from, to) = (op.args[0], op.results[0]);
        let perm = &perm[..self.extents(from).len()];
        if let Some(Held::Buffer(staged)) = &self.held[from.index()] {
            let mut staged = staged.clone();
            staged.encoding = staged.encoding.permuted(perm);
            self.hold(to, Held::Buffer(staged));
            return Ok(());
        }
        let source = self.home(from);
        let regs = self.tile(from, &source)?;
        let turned = source.permuted(perm);
        let back = |at: [u32; 4]| {
            let mut out = [0; 4];
            for (i, p) in perm.iter().enumerate() {
                out[usize::from(*p)] = at[i];
            }
            out
        };
        let regs = moved(&regs, &source, &turned, &back);
        let home = self.home(to);
        let regs = self.convert(&regs, &turned, &home, self.k.ty(from).elem())?;
        self.hold(to, Held::Tile(regs));
        Ok(())
    }

    /// Elements of two tiles alternate along the last axis.
    pub(super) fn interleave(&mut self, op: &Op) -> Result<(), LowerError> {
        let to = op.results[0];
        let half = self.home(op.args[0]);
        let both = [self.tile(op.args[0], &half)?, self.tile(op.args[1], &half)?];
        let whole = doubled(&half);
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
        let home = self.home(to);
        let regs = self.convert(&regs, &whole, &home, self.k.ty(to).elem())?;
        self.hold(to, Held::Tile(regs));
        Ok(())
    }

    /// The even and the odd elements along the last axis.
    pub(super) fn split(&mut self, op: &Op) -> Result<(), LowerError> {
        let elem = self.k.ty(op.args[0]).elem();
        let half = self.home(op.results[0]);
        let whole = doubled(&half);
        let regs = self.tile(op.args[0], &whole)?;
        let index = register_index(&whole);
        let last = half.rank() - 1;
        for (which, result) in (0u32..).zip(&op.results) {
            let mut part = Vec::new();
            for r in 0..half.registers() {
                let mut at = half.register_coords(r);
                at[last] = at[last] * 2 + which;
                let reg = index.get(&at).and_then(|i| regs.get(*i)).copied();
                part.push(reg.unwrap_or_else(|| self.missing()));
            }
            let home = self.home(*result);
            let part = self.convert(&part, &half, &home, elem)?;
            self.hold(*result, Held::Tile(part));
        }
        Ok(())
    }

    /// The registers of a value that is a tile in its own layout.
    pub(super) fn home_regs(&mut self, value: Value) -> Result<(Layout, Vec<Reg>), LowerError> {
        let home = self.home(value);
        let regs = self.tile(value, &home)?;
        Ok((home, regs))
    }
}

/// Row after row without gaps.
fn rows(extents: &[u32], bits: u32) -> Encoding {
    let fast = extents.last().copied().unwrap_or(1);
    Encoding {
        extents: extents.to_vec(),
        bits,
        order: (0..extents.len()).collect(),
        row: fast,
        pitch: fast * bits / 8,
        swizzle: Swizzle::None,
    }
}

/// A layout with the same threads for a tile that differs in axes of extent 1 only. Not if the layout goes beyond such an axis:
/// what lies there is padding, and would be called a copy.
fn renamed(from: &Layout, extents: &[u32]) -> Option<Layout> {
    if from.extents().iter().enumerate().any(|(axis, n)| *n == 1 && from.is_padded(axis)) {
        return None;
    }
    let real = |e: &[u32]| e.iter().enumerate().filter(|(_, n)| **n > 1).map(|(i, n)| (i, *n)).collect::<Vec<_>>();
    let (old, new) = (real(from.extents()), real(extents));
    if old.iter().map(|(_, n)| n).ne(new.iter().map(|(_, n)| n)) {
        return None;
    }
    let rename = |bit: &Bit| match bit {
        Bit::Step { axis, by } => {
            let place = old.iter().position(|(i, _)| *i == usize::from(*axis));
            match place.and_then(|p| u8::try_from(new[p].0).ok()) {
                Some(axis) => Bit::Step { axis, by: *by },
                None => Bit::Copy,
            }
        }
        Bit::Copy => Bit::Copy,
    };
    let list = |bits: &[Bit]| bits.iter().map(rename).collect::<Vec<_>>();
    let regs: Vec<Bit> = list(from.register_bits()).into_iter().filter(|b| *b != Bit::Copy).collect();
    Some(Layout::new(extents, regs, list(from.lane_bits()), list(from.warp_bits())))
}

/// Coordinates of a tile from those of the tile without, or with more, axes of extent 1.
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

/// Registers in the order of another layout; `back` gives the old coordinates of new ones.
fn moved(regs: &[Reg], old: &Layout, new: &Layout, back: &dyn Fn([u32; 4]) -> [u32; 4]) -> Vec<Reg> {
    let index = register_index(old);
    (0..new.registers())
        .filter_map(|r| index.get(&back(new.register_coords(r))).and_then(|i| regs.get(*i)).copied())
        .collect()
}

/// The layout of a tile whose last axis is twice as long, pairs in one thread.
fn doubled(half: &Layout) -> Layout {
    let last = half.rank() - 1;
    let mut extents = half.extents().to_vec();
    extents[last] *= 2;
    let double = |bit: &Bit| match bit {
        Bit::Step { axis, by } if usize::from(*axis) == last => Bit::Step { axis: *axis, by: by * 2 },
        Bit::Step { .. } | Bit::Copy => *bit,
    };
    let mut regs = vec![Bit::Step { axis: u8::try_from(last).unwrap_or(0), by: 1 }];
    regs.extend(half.register_bits().iter().map(double));
    let list = |bits: &[Bit]| bits.iter().map(double).collect::<Vec<_>>();
    Layout::new(&extents, regs, list(half.lane_bits()), list(half.warp_bits()))
}
