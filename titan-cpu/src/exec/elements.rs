//! Groups of elementwise operations, block by block.
//!
//! For each block every operand becomes one slice: where it is, in its register if it had to be copied, or one element that
//! stands for all. Then the operations run over slices, results going to registers or to the tiles that the group makes.

use super::Machine;
use super::pool::{Buffer, bytes, bytes_mut, reserve};
use super::tile::Data;
use crate::ops::TileFn;
use crate::ops::reduce::RowFold;
use crate::ops::words::{self, Strided};
use crate::plan::TileSlot;
use crate::plan::group::{Act, BLOCK, Group, Leaf, MAX_LEAVES, Micro, Operand};
use crate::simd::Isa;

/// Bytes of a register.
const REGISTER: usize = BLOCK * 8;

/// How an operand is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Source {
    /// The same in every element: from its cell.
    #[default]
    Uniform,
    /// From its register, which was filled before the first block.
    Filled,
    /// Row-major in its data, from the element of this index on.
    Dense(TileSlot, usize),
    /// Depending on the block.
    Strided(TileSlot, Place),
}

/// Where an operand that depends on the block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In its data, from the element of this index on.
    At(usize),
    /// In its cell: the same in every element of the block.
    Cell,
    /// Copied to its register.
    Register,
}

/// A block: its first element, and how many it has.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    n: usize,
}

/// What groups work with; kept between them.
#[derive(Debug, Default)]
pub(super) struct Bank {
    /// Registers of operands that are copied.
    copies: Vec<Buffer>,
    /// Registers of results, one after the other.
    registers: Buffer,
    /// Tiles that the group is making.
    outs: Vec<Buffer>,
    /// Operands that are the same in every element.
    cells: [u64; MAX_LEAVES],
    /// Accumulators of rows that are longer than a block, by operation.
    partial: Vec<u64>,
}

impl Machine<'_, '_> {
    pub(super) fn elements(&mut self, group: &Group) {
        let mut bank = self.work.bank.take().unwrap_or_default();
        bank.prepare(group);
        for tile in &group.outs {
            let id = self.fresh(*tile);
            bank.outs.push(self.work.pool.lend(id));
        }
        self.evaluate(group, &mut bank);
        for tile in group.outs.iter().rev() {
            if let (Data::Buffer(id), Some(buffer)) = (self.tiles[*tile as usize].data, bank.outs.pop()) {
                self.work.pool.give_back(id, buffer);
            }
        }
        self.work.bank = Some(bank);
    }

    fn evaluate(&self, group: &Group, bank: &mut Bank) {
        let mut sources = [Source::Uniform; MAX_LEAVES];
        let sources = &mut sources[..group.leaves.len()];
        for (leaf, source) in sources.iter_mut().enumerate() {
            *source = self.source(group, leaf, bank);
        }
        let mut start = 0;
        while start < group.len {
            // Whole rows, or a part of one.
            let row = if group.block < group.cols { group.cols - start % group.cols } else { group.len - start };
            let span = Span { start, n: group.block.min(row) };
            for (leaf, source) in sources.iter_mut().enumerate() {
                if let Source::Strided(slot, place) = source {
                    *place = self.fetch(group, leaf, *slot, span, bank);
                }
            }
            let Bank { copies, registers, outs, cells, partial } = &mut *bank;
            let mut leaves: [&[u8]; MAX_LEAVES] = [&[]; MAX_LEAVES];
            for (i, (leaf, source)) in leaves.iter_mut().zip(&*sources).enumerate() {
                let size = group.leaves[i].1;
                *leaf = match *source {
                    Source::Uniform | Source::Strided(_, Place::Cell) => &bytemuck::cast_slice(&cells[i..])[..size],
                    Source::Dense(slot, first) => &self.data(slot)[(first + start) * size..][..span.n * size],
                    Source::Strided(slot, Place::At(at)) => &self.data(slot)[at * size..][..span.n * size],
                    Source::Filled | Source::Strided(_, Place::Register) => bytes(&copies[i], span.n * size),
                };
            }
            let registers = bytemuck::cast_slice_mut(registers);
            let mut frame = Frame { isa: self.isa, leaves: &leaves, registers, outs, partial, span };
            for (number, op) in group.ops.iter().enumerate() {
                self.micro(group, number, op, &mut frame);
            }
            start += span.n;
        }
    }

    /// How an operand is read; if it is the same in every element, it is put where it will be read.
    fn source(&self, group: &Group, number: usize, bank: &mut Bank) -> Source {
        let (leaf, size) = group.leaves[number];
        let bits = match leaf {
            Leaf::Scalar(slot) => self.scalar(slot),
            Leaf::Tile(slot) => {
                let tile = &self.tiles[slot as usize];
                match tile.data {
                    Data::Splat(bits) => bits,
                    Data::Nothing => 0,
                    Data::Buffer(_) | Data::Memory(_) if tile.dense => return Source::Dense(slot, tile.first),
                    Data::Buffer(_) | Data::Memory(_) => return Source::Strided(slot, Place::Register),
                }
            }
        };
        if group.whole[number] {
            words::fill(bank.copy(number, group.block.min(group.len) * size), size, bits);
            return Source::Filled;
        }
        words::fill(&mut bytemuck::cast_slice_mut(&mut bank.cells[number..])[..size], size, bits);
        Source::Uniform
    }

    /// Finds an operand of a block in its data, or copies it.
    fn fetch(&self, group: &Group, leaf: usize, slot: TileSlot, span: Span, bank: &mut Bank) -> Place {
        let Some(tile) = self.strided(slot) else { return Place::Register };
        let size = group.leaves[leaf].1;
        // In one row the elements follow each other, or are all the same.
        let (in_row, step) = (span.n <= group.cols, tile.strides[3]);
        if in_row && step == 1 {
            return Place::At(first_of(&tile, span));
        }
        if in_row && step == 0 && !group.whole[leaf] {
            let bits = words::element(tile.data, size, first_of(&tile, span));
            words::fill(&mut bytemuck::cast_slice_mut(&mut bank.cells[leaf..])[..size], size, bits);
            return Place::Cell;
        }
        words::gather_run(bank.copy(leaf, span.n * size), &tile, span.start);
        Place::Register
    }

    fn micro(&self, group: &Group, number: usize, op: &Micro, frame: &mut Frame<'_>) {
        let Span { start, n } = frame.span;
        match &op.act {
            Act::Map { f, to: Operand::Out(o), size } => {
                let mut dst = std::mem::take(&mut frame.outs[*o]);
                let args = op.args.map(|arg| frame.operand(arg));
                f(self.isa, &mut bytemuck::cast_slice_mut(&mut dst)[start * size..][..n * size], args);
                frame.outs[*o] = dst;
            }
            Act::Map { f, to: Operand::Reg(r) | Operand::Leaf(r), size } => frame.map(*f, *r, *size, &op.args),
            Act::Map { to: Operand::Nothing, .. } => {}
            Act::Reduce { f, to, size } => {
                let mut dst = std::mem::take(&mut frame.outs[*to]);
                frame.reduce(group.cols, f, &mut bytemuck::cast_slice_mut(&mut dst)[..], *size, (number, [op.args[0], op.args[1]]));
                frame.outs[*to] = dst;
            }
            Act::Store(place) => {
                self.store_run(place, group.shape, start, op.args[0].1, frame.operand(op.args[0]));
            }
            Act::MapStore { f, register, size, place } => {
                let args = op.args.map(|arg| frame.operand(arg));
                if !self.store_by(place, group.shape, (start, n), *f, args) {
                    frame.map(*f, *register, *size, &op.args);
                    let data = frame.operand((Operand::Reg(*register), *size));
                    self.store_run(place, group.shape, start, *size, data);
                }
            }
        }
    }
}

/// What the operations see of one block.
struct Frame<'a> {
    isa: Isa,
    leaves: &'a [&'a [u8]; MAX_LEAVES],
    registers: &'a mut [u8],
    outs: &'a mut [Buffer],
    partial: &'a mut [u64],
    span: Span,
}

impl Frame<'_> {
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
        let Span { start, n } = self.span;
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
    fn reduce(&mut self, cols: usize, f: &RowFold, dst: &mut [u8], size: usize, (number, args): (usize, [(Operand, usize); 2])) {
        let Span { start, n } = self.span;
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
        if self.copies.len() < group.leaves.len() {
            self.copies.resize(group.leaves.len(), Buffer::new());
        }
    }

    /// The register of an operand.
    fn copy(&mut self, leaf: usize, n: usize) -> &mut [u8] {
        reserve(&mut self.copies[leaf], REGISTER);
        bytes_mut(&mut self.copies[leaf], n)
    }
}

/// The index in its data of the first element of a block.
fn first_of(tile: &Strided<'_>, span: Span) -> usize {
    if span.start == 0 { tile.first } else { words::index_of(tile, span.start) }
}
