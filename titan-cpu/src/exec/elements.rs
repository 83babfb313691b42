//! Groups of elementwise operations, block by block.
//!
//! For each block every operand becomes one slice (see [`super::operands`]). Then the operations run over slices; their results
//! go to registers, to the outputs of the group, or directly to the tensor that the group stores to (see [`super::target`]).

use super::operands::{Inputs, Operands, Span};
use super::pool::{Buffer, reserve};
use super::target::Target;
use super::tile::Data;
use super::{Machine, Outcome};
use crate::ops::reduce::RowFold;
use crate::ops::words;
use crate::ops::{ElementFn, TileFn};
use crate::plan::group::{Act, Group, MAX_LEAVES, Micro, Operand, Out};
use crate::rep;
use crate::simd::Isa;

/// The buffers of groups, kept from one group to the next.
#[derive(Debug, Default)]
pub(super) struct Bank {
    inputs: Inputs,
    /// The registers for results, one after the other.
    registers: Buffer,
    /// The registers for results of one element per row, one after the other.
    rows: Buffer,
    /// The outputs of the current group.
    outs: Vec<Buffer>,
    /// The buffers of results that are one element.
    ones: Vec<Buffer>,
    /// The accumulators of rows that are longer than a block, by operation.
    partial: Vec<u64>,
}

impl Machine<'_, '_> {
    pub(super) fn elements(&mut self, group: &Group) -> Outcome<()> {
        let mut bank = self.work.bank.take().unwrap_or_default();
        bank.prepare(group)?;
        for out in &group.outs {
            let buffer = match out {
                Out::Tile(tile) => {
                    let id = self.fresh(*tile)?;
                    self.work.pool.lend(id)
                }
                Out::Scalar(..) => bank.one()?,
            };
            bank.outs.push(buffer);
        }
        // Most groups have few operands.
        match group.inputs.len() {
            0..=3 => self.evaluate::<3>(group, &mut bank)?,
            4..=6 => self.evaluate::<6>(group, &mut bank)?,
            _ => self.evaluate::<MAX_LEAVES>(group, &mut bank)?,
        }
        for out in group.outs.iter().rev() {
            let Some(buffer) = bank.outs.pop() else { continue };
            match out {
                Out::Tile(tile) => {
                    if let Data::Buffer(id) = self.tiles[*tile as usize].data {
                        self.work.pool.give_back(id, buffer);
                    }
                }
                Out::Scalar(scalar, elem) => {
                    let bits = words::element(bytemuck::cast_slice(&buffer), rep::size(*elem), 0);
                    self.set(*scalar, rep::extend(*elem, bits));
                    bank.ones.push(buffer);
                }
            }
        }
        self.work.bank = Some(bank);
        Ok(())
    }

    fn evaluate<const N: usize>(&self, group: &Group, bank: &mut Bank) -> Outcome<()> {
        let Bank { inputs, registers, rows, outs, partial, .. } = bank;
        let operands = Operands::<N>::new(self, group, inputs)?;
        let target = group.store.as_ref().map(|place| self.target(place, group.shape));
        let mut span = Span::first(group, operands.block);
        while span.start < group.len {
            let mut leaves: [&[u8]; N] = [&[]; N];
            operands.of_block(self, (group, span), inputs, &mut leaves)?;
            let (registers, rows) = (bytemuck::cast_slice_mut(registers), bytemuck::cast_slice_mut(rows));
            let mut frame = Frame { isa: self.isa, group, leaves: &leaves, registers, rows, outs, partial, span };
            for (number, op) in group.ops.iter().enumerate() {
                frame.micro(number, op, target.as_ref());
                if let (Some(target), true) = (&target, group.reduced == Some(number)) {
                    // After the last pass over the operands, whose lines come first, and before what its result is needed for.
                    target.prefetch(span, self.isa);
                }
            }
            span = span.next(group, operands.block);
        }
        Ok(())
    }
}

/// The data of one block that operations access.
struct Frame<'a> {
    isa: Isa,
    group: &'a Group,
    leaves: &'a [&'a [u8]],
    registers: &'a mut [u8],
    rows: &'a mut [u8],
    outs: &'a mut [Buffer],
    partial: &'a mut [u64],
    span: Span,
}

impl Frame<'_> {
    /// Runs operation `number`.
    fn micro(&mut self, number: usize, op: &Micro, target: Option<&Target<'_>>) {
        match (op.act, target) {
            (Act::Map(f, to), _) => self.map(f, to, op),
            (Act::MapRow(f, row), _) => self.map_row(f, row, op),
            (Act::Reduce(f, row), _) => self.reduce(&f, row, op, number),
            (Act::Expand(to), _) => self.expand(to, op),
            (Act::Give(out), _) => {
                let mut dst = std::mem::take(&mut self.outs[out]);
                let (first, src) = (self.span.start / self.group.cols * op.size, self.operand(op.args[0]));
                bytemuck::cast_slice_mut(&mut dst)[first..first + src.len()].copy_from_slice(src);
                self.outs[out] = dst;
            }
            (Act::Store, Some(target)) => target.store(self.span, op.args[0].1, self.operand(op.args[0])),
            (Act::MapStore(f, register), Some(target)) => {
                let args = self.operands(op);
                if !target.store_by(self.span, self.isa, f, args) {
                    self.map(f, Operand::Reg(register), op);
                    target.store(self.span, op.size, self.operand((Operand::Reg(register), op.size)));
                }
            }
            (Act::Store | Act::MapStore(..), None) => {}
        }
    }

    /// The elements of an operand.
    #[inline]
    fn operand(&self, (operand, size): (Operand, usize)) -> &[u8] {
        match operand {
            Operand::Nothing => &[],
            Operand::Leaf(leaf) => self.leaves[leaf],
            Operand::Reg(r) => &self.registers[r * self.group.registers[1]..][..self.span.n * size],
            Operand::Row(r) => &self.rows[r * self.group.rows[1]..][..self.span.rows() * size],
            Operand::Out(o) => &bytemuck::cast_slice(&self.outs[o])[self.span.start * size..][..self.span.n * size],
        }
    }

    #[inline]
    fn operands(&self, op: &Micro) -> [&[u8]; 3] {
        let [a, b, c] = op.args;
        [self.operand(a), self.operand(b), self.operand(c)]
    }

    /// Computes elements with a function. Their destination is none of the operands.
    fn map(&mut self, f: TileFn, to: Operand, op: &Micro) {
        let n = self.span.n * op.size;
        match to {
            Operand::Reg(r) => {
                let stride = self.group.registers[1];
                let (below, rest) = self.registers.split_at_mut(r * stride);
                let (dst, above) = rest.split_at_mut(stride);
                let arg = |(operand, size): (Operand, usize)| -> &[u8] {
                    match operand {
                        Operand::Nothing => &[],
                        Operand::Leaf(leaf) => self.leaves[leaf],
                        Operand::Reg(other) if other < r => &below[other * stride..][..self.span.n * size],
                        Operand::Reg(other) => &above[(other - r - 1) * stride..][..self.span.n * size],
                        Operand::Row(row) => &self.rows[row * self.group.rows[1]..][..self.span.rows() * size],
                        Operand::Out(o) => {
                            &bytemuck::cast_slice(&self.outs[o])[self.span.start * size..][..self.span.n * size]
                        }
                    }
                };
                let [a, b, c] = op.args;
                f(self.isa, &mut dst[..n], [arg(a), arg(b), arg(c)]);
            }
            Operand::Out(o) => {
                let mut dst = std::mem::take(&mut self.outs[o]);
                let args = self.operands(op);
                f(self.isa, &mut bytemuck::cast_slice_mut(&mut dst)[self.span.start * op.size..][..n], args);
                self.outs[o] = dst;
            }
            Operand::Nothing | Operand::Leaf(_) | Operand::Row(_) => {}
        }
    }

    /// Computes one element for each row.
    fn map_row(&mut self, f: ElementFn, row: usize, op: &Micro) {
        // Operands were computed before, so they are in lower registers.
        let (stride, count) = (self.group.rows[1], self.span.rows());
        let (below, dst) = self.rows.split_at_mut(row * stride);
        let arg = |(operand, size): (Operand, usize)| -> &[u8] {
            match operand {
                Operand::Leaf(leaf) => self.leaves[leaf],
                Operand::Row(row) => &below[row * stride..][..count * size],
                Operand::Nothing | Operand::Reg(_) | Operand::Out(_) => &[],
            }
        };
        let [a, b, c] = op.args;
        let dst = &mut dst[..count * op.size];
        if count > 1 {
            (f.tile)(self.isa, dst, [arg(a), arg(b), arg(c)]);
            return;
        }
        // Most blocks are one row: a loop over one element would cost more than the element.
        let one = |(operand, size): (Operand, usize)| match operand {
            Operand::Nothing => 0,
            Operand::Leaf(_) | Operand::Reg(_) | Operand::Row(_) | Operand::Out(_) => {
                words::element(arg((operand, size)), size, 0)
            }
        };
        words::fill(dst, op.size, (f.scalar)([one(a), one(b), one(c)]));
    }

    /// Reduces the rows of an operand of operation `number` to a row operand. For rows longer than a block, the last part sets it.
    fn reduce(&mut self, f: &RowFold, row: usize, op: &Micro, number: usize) {
        let (Span { col, n, .. }, cols) = (self.span, self.group.cols);
        let dst = row * self.group.rows[1];
        // The operation has no row operand, so the buffer of rows can be taken.
        let rows = std::mem::take(&mut self.rows);
        let data = [self.operand(op.args[0]), self.operand(op.args[1])];
        if n >= cols {
            let count = self.span.rows();
            (f.rows)(self.isa, &mut rows[dst..][..count * op.size], data, [count, cols, 1]);
        } else {
            let part = (f.part)(self.isa, data);
            let sum = if col == 0 { part } else { (f.merge)(self.partial[number], part) };
            self.partial[number] = sum;
            if col + n == cols {
                (f.finish)(sum, &mut rows[dst..][..op.size]);
            }
        }
        self.rows = rows;
    }

    /// Repeats the elements of a row operand along the rows.
    fn expand(&mut self, to: Operand, op: &Micro) {
        let ((Operand::Row(row), size), Span { start, n, .. }) = (op.args[0], self.span) else { return };
        let src = &self.rows[row * self.group.rows[1]..][..self.span.rows() * size];
        let dst: &mut [u8] = match to {
            Operand::Reg(r) => &mut self.registers[r * self.group.registers[1]..][..n * size],
            Operand::Out(o) => &mut bytemuck::cast_slice_mut(&mut self.outs[o])[start * size..][..n * size],
            Operand::Nothing | Operand::Leaf(_) | Operand::Row(_) => return,
        };
        for (row, dst) in dst.chunks_mut(self.group.cols * size).enumerate() {
            words::fill(dst, size, words::element(src, size, row));
        }
    }
}

impl Bank {
    /// Makes room for the results of a group.
    fn prepare(&mut self, group: &Group) -> Outcome<()> {
        reserve(&mut self.registers, group.registers[0] * group.registers[1])?;
        reserve(&mut self.rows, group.rows[0] * group.rows[1])?;
        if self.partial.len() < group.ops.len() {
            self.partial.resize(group.ops.len(), 0);
        }
        Ok(())
    }

    /// A buffer for one element.
    fn one(&mut self) -> Outcome<Buffer> {
        let mut buffer = self.ones.pop().unwrap_or_default();
        reserve(&mut buffer, size_of::<u64>())?;
        Ok(buffer)
    }
}
