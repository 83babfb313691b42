//! Operations that move elements without changing them.

use super::{Laid, LayOut};
use crate::ir::{LocalOp, Op, OpKind, TileShape, Ty};
use crate::layout::{Bit, Encoding, Layout, Swizzle};

impl LayOut<'_> {
    /// A reshape: the same elements in row-major order, with other extents.
    pub(super) fn reshape(&mut self, op: &Op, shape: TileShape) -> Laid<()> {
        let (old, result) = (op.args[0], op.results[0]);
        let (from, value) = self.own(old)?;
        let layout = self.layout(result);
        let reshaped = match renamed(&from, layout.extents()) {
            Some(same) => self.tile_op(op.kind.clone(), &[value], &same)?,
            None => {
                // The elements pass through shared memory, in row-major order.
                let elem = self.elem(old);
                let bits = elem.bits().max(8);
                let buffer = self.buffer(elem, from.extents(), &rows(from.extents(), bits), "reshape")?;
                self.write(value, buffer)?;
                let view = self.one(OpKind::Local(LocalOp::Reshape(shape)), &[buffer])?;
                self.b.put_shared(view, &rows(layout.extents(), bits));
                self.read(view, &layout)?
            }
        };
        self.settle(result, reshaped)
    }

    /// A permutation of axes: relabels the same registers, or the same buffer.
    pub(super) fn permute(&mut self, op: &Op, perm: [u8; 4]) -> Laid<()> {
        let (old, result) = (op.args[0], op.results[0]);
        let perm = &perm[..self.extents(old).len()];
        if let Some(made) = self.made[old.index()].filter(|made| matches!(self.b.ty(*made), Ty::Smem(..))) {
            let Some(encoding) = self.b.kernel().encoding(made).map(|e| e.permuted(perm)) else {
                return Err(self.internal("shared memory without an encoding"));
            };
            let view = self.one(op.kind.clone(), &[made])?;
            self.b.put_shared(view, &encoding);
            self.make(result, view);
            return Ok(());
        }
        let (from, value) = self.own(old)?;
        let value = self.tile_op(op.kind.clone(), &[value], &from.permuted(perm))?;
        self.settle(result, value)
    }

    /// A tile whose elements alternate between two tiles, along the last axis.
    pub(super) fn interleave(&mut self, op: &Op) -> Laid<()> {
        let half = self.layout(op.args[0]);
        let both = [self.tile(op.args[0], &half)?, self.tile(op.args[1], &half)?];
        let value = self.tile_op(OpKind::Interleave, &both, &doubled(&half))?;
        self.settle(op.results[0], value)
    }

    /// The even and the odd elements along the last axis, as two tiles.
    pub(super) fn split(&mut self, op: &Op) -> Laid<()> {
        let half = self.layout(op.results[0]);
        let whole = self.tile(op.args[0], &doubled(&half))?;
        let parts = self.op(OpKind::Split, &[whole])?;
        for (old, part) in op.results.iter().zip(parts) {
            self.b.put(part, &half);
            self.settle(*old, part)?;
        }
        Ok(())
    }

    /// A part of a tile. The tile is in shared memory, and the threads read the part from there.
    pub(super) fn cut(&mut self, op: &Op, axis: u8, [from, n]: [i32; 2]) -> Laid<()> {
        let (layout, value) = self.own(op.args[0])?;
        let elem = self.elem(op.args[0]);
        let buffer = self.buffer(elem, layout.extents(), &rows(layout.extents(), elem.bits().max(8)), "slice")?;
        self.write(value, buffer)?;
        let at = self.b.i32(from);
        let part = self.part_at(buffer, axis, n.unsigned_abs(), at)?;
        let value = self.read(part, &self.layout(op.results[0]))?;
        self.make(op.results[0], value);
        Ok(())
    }

    /// Two tiles one behind the other: each is written to its part of a buffer, from which the threads read the whole.
    ///
    /// Zeros are written to all of it first. The verifier of barrier programs takes no write of a part for one of certain bytes (rule 83), since
    /// offsets of parts may be computed, so that it would not see that the two parts are the whole.
    pub(super) fn concat(&mut self, op: &Op, axis: u8) -> Laid<()> {
        let result = op.results[0];
        let (elem, whole) = (self.elem(result), self.layout(result));
        let buffer = self.buffer(elem, whole.extents(), &rows(whole.extents(), elem.bits().max(8)), "concat")?;
        let zero = self.zero(elem);
        let (all, wide) = (self.shape(whole.extents())?, self.wide(whole.extents(), elem.bits()));
        let zeros = self.tile_op(OpKind::Splat(all), &[zero], &wide)?;
        self.write(zeros, buffer)?;
        let mut from = 0;
        for old in &op.args {
            let (layout, value) = self.own(*old)?;
            let n = layout.extents()[usize::from(axis)];
            let at = self.index(from);
            let part = self.part_at(buffer, axis, n, at)?;
            self.write(value, part)?;
            from += n;
        }
        let value = self.read(buffer, &whole)?;
        self.make(result, value);
        Ok(())
    }
}

/// The row-major encoding without padding.
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

/// The same distribution over threads for a tile that differs only in axes of extent 1. `None` if the layout has padding along such an
/// axis, which would become copies.
pub(crate) fn renamed(from: &Layout, extents: &[u32]) -> Option<Layout> {
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

/// The layout of a tile whose last axis is twice as long, with the pairs in one thread.
pub(crate) fn doubled(half: &Layout) -> Layout {
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
