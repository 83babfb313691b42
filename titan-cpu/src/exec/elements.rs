//! Groups of elementwise operations, block by block.
//!
//! For each block every operand becomes one slice (see [`super::operands`]). Then the operations run over slices, results
//! going to registers, to what the group makes, or right into the tensor that it stores to (see [`super::target`]).

use super::Machine;
use super::operands::{Inputs, Operands, Span};
use super::pool::{Buffer, reserve};
use super::target::Target;
use super::tile::Data;
use crate::ops::TileFn;
use crate::ops::reduce::RowFold;
use crate::ops::words;
use crate::plan::group::{Act, BLOCK, Group, MAX_LEAVES, Micro, Operand, Out};
use crate::rep;
use crate::simd::Isa;

/// Bytes of a register.
pub(super) const REGISTER: usize = BLOCK * 8;

/// What groups work with; kept between them.
#[derive(Debug, Default)]
pub(super) struct Bank {
    inputs: Inputs,
    /// Registers of results, one after the other.
    registers: Buffer,
    /// What the group is making.
    outs: Vec<Buffer>,
    /// Buffers of results that are one element.
    ones: Vec<Buffer>,
    /// Accumulators of rows that are longer than a block, by operation.
    partial: Vec<u64>,
}

impl Machine<'_, '_> {
    pub(super) fn elements(&mut self, group: &Group) {
        let mut bank = self.work.bank.take().unwrap_or_default();
        bank.prepare(group);
        for out in &group.outs {
            let buffer = match out {
                Out::Tile(tile) => {
                    let id = self.fresh(*tile);
                    self.work.pool.lend(id)
                }
                Out::Scalar(..) => bank.one(),
            };
            bank.outs.push(buffer);
        }
        // Most groups have few operands.
        match group.leaves.len() {
            ..=3 => self.evaluate::<3>(group, &mut bank),
            ..=6 => self.evaluate::<6>(group, &mut bank),
            _ => self.evaluate::<MAX_LEAVES>(group, &mut bank),
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
    }

    fn evaluate<const N: usize>(&self, group: &Group, bank: &mut Bank) {
        let Bank { inputs, registers, outs, partial, .. } = bank;
        let operands = Operands::<N>::new(self, group, inputs);
        let target = group.store.as_ref().map(|place| self.target(place, group.shape));
        let mut span = Span::first(group, operands.block);
        while span.start < group.len {
            let mut leaves: [&[u8]; N] = [&[]; N];
            operands.of_block(self, (group, span), inputs, &mut leaves);
            let registers = bytemuck::cast_slice_mut(registers);
            let mut frame = Frame { isa: self.isa, group, leaves: &leaves, registers, outs, partial, span };
            for (number, op) in group.ops.iter().enumerate() {
                frame.micro(number, op, target.as_ref());
            }
            span = span.next(group, operands.block);
        }
    }
}

/// What the operations see of one block.
struct Frame<'a> {
    isa: Isa,
    group: &'a Group,
    leaves: &'a [&'a [u8]],
    registers: &'a mut [u8],
    outs: &'a mut [Buffer],
    partial: &'a mut [u64],
    span: Span,
}

impl Frame<'_> {
    /// Runs operation `number`.
    fn micro(&mut self, number: usize, op: &Micro, target: Option<&Target<'_>>) {
        let Span { start, n, .. } = self.span;
        match (&op.act, target) {
            (Act::Map { f, to: Operand::Out(o), size }, _) => {
                let mut dst = std::mem::take(&mut self.outs[*o]);
                let args = op.args.map(|arg| self.operand(arg));
                f(self.isa, &mut bytemuck::cast_slice_mut(&mut dst)[start * size..][..n * size], args);
                self.outs[*o] = dst;
            }
            (Act::Map { f, to: Operand::Reg(r) | Operand::Leaf(r), size }, _) => self.map(*f, *r, *size, &op.args),
            (Act::Reduce { f, to, size }, _) => {
                let mut dst = std::mem::take(&mut self.outs[*to]);
                self.reduce(f, bytemuck::cast_slice_mut(&mut dst), *size, (number, [op.args[0], op.args[1]]));
                self.outs[*to] = dst;
            }
            (Act::Store, Some(target)) => target.store(self.span, op.args[0].1, self.operand(op.args[0])),
            (Act::MapStore { f, register, size }, Some(target)) => {
                let args = op.args.map(|arg| self.operand(arg));
                if !target.store_by(self.span, self.isa, *f, args) {
                    self.map(*f, *register, *size, &op.args);
                    target.store(self.span, *size, self.operand((Operand::Reg(*register), *size)));
                }
            }
            (Act::Map { to: Operand::Nothing, .. } | Act::Store | Act::MapStore { .. }, _) => {}
        }
    }

    /// The elements of an operand.
    #[inline]
    fn operand(&self, (operand, size): (Operand, usize)) -> &[u8] {
        match operand {
            Operand::Nothing => &[],
            Operand::Leaf(leaf) => self.leaves[leaf],
            Operand::Reg(r) => &self.registers[r * REGISTER..][..self.span.n * size],
            Operand::Out(o) => &bytemuck::cast_slice(&self.outs[o])[self.span.start * size..][..self.span.n * size],
        }
    }

    /// Makes the elements of a register, which is none of the operands.
    fn map(&mut self, f: TileFn, to: usize, size: usize, args: &[(Operand, usize); 3]) {
        let Span { start, n, .. } = self.span;
        let (below, rest) = self.registers.split_at_mut(to * REGISTER);
        let (dst, above) = rest.split_at_mut(REGISTER);
        let args = args.map(|(operand, size)| match operand {
            Operand::Nothing => &[],
            Operand::Leaf(leaf) => self.leaves[leaf],
            Operand::Reg(r) if r < to => &below[r * REGISTER..][..n * size],
            Operand::Reg(r) => &above[(r - to - 1) * REGISTER..][..n * size],
            Operand::Out(o) => &bytemuck::cast_slice(&self.outs[o])[start * size..][..n * size],
        });
        f(self.isa, &mut dst[..n * size], args);
    }

    /// Folds the rows of an operand of operation `number` into `dst`.
    fn reduce(&mut self, f: &RowFold, dst: &mut [u8], size: usize, (number, args): (usize, [(Operand, usize); 2])) {
        let Span { start, n, .. } = self.span;
        let cols = self.group.cols;
        let row = start / cols;
        let data = args.map(|arg| self.operand(arg));
        if n >= cols {
            let rows = n / cols;
            (f.rows)(self.isa, &mut dst[row * size..][..rows * size], data, [rows, cols, 1]);
            return;
        }
        let part = (f.part)(self.isa, data);
        let sum = if start % cols == 0 { part } else { (f.merge)(self.partial[number], part) };
        self.partial[number] = sum;
        if (start + n) % cols == 0 {
            (f.finish)(sum, &mut dst[row * size..][..size]);
        }
    }
}

impl Bank {
    /// Makes room for a group.
    fn prepare(&mut self, group: &Group) {
        reserve(&mut self.registers, group.registers * REGISTER);
        if self.partial.len() < group.ops.len() {
            self.partial.resize(group.ops.len(), 0);
        }
    }

    /// A buffer for one element.
    fn one(&mut self) -> Buffer {
        let mut buffer = self.ones.pop().unwrap_or_default();
        reserve(&mut buffer, size_of::<u64>());
        buffer
    }
}
