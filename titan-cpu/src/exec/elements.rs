//! Groups of elementwise operations, block by block.
//!
//! For each block every operand becomes one slice: where it is, in its register if it had to be copied, or one element that
//! stands for all. Then the operations run over slices, results going to registers or to the tiles that the group makes.

use super::Machine;
use super::pool::{Buffer, bytes, bytes_mut, reserve};
use super::tile::Data;
use crate::ops::words::{self, Strided};
use crate::plan::TileSlot;
use crate::plan::group::{Act, BLOCK, Group, Leaf, MAX_LEAVES, Micro, Operand};

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
    /// Depending on the block: in place, from its cell, or copied to its register.
    Strided(TileSlot),
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
        for (leaf, source) in sources.iter_mut().enumerate().take(group.leaves.len()) {
            *source = self.source(group, leaf, bank);
        }
        let mut start = 0;
        while start < group.len {
            // Whole rows, or a part of one.
            let row = if group.block < group.cols { group.cols - start % group.cols } else { group.len - start };
            let span = Span { start, n: group.block.min(row) };
            let mut places = [None; MAX_LEAVES];
            for (leaf, source) in sources[..group.leaves.len()].iter().enumerate() {
                if let Source::Strided(slot) = source {
                    places[leaf] = self.fetch(group, leaf, *slot, span, bank);
                }
            }
            let Bank { copies, registers, outs, cells, partial } = &mut *bank;
            let mut leaves: [&[u8]; MAX_LEAVES] = [&[]; MAX_LEAVES];
            for (i, leaf) in leaves.iter_mut().enumerate().take(group.leaves.len()) {
                let size = group.leaves[i].1;
                *leaf = match (sources[i], places[i]) {
                    (Source::Uniform, _) | (_, Some(Place::Cell)) => &bytemuck::cast_slice(&cells[i..])[..size],
                    (Source::Dense(slot, first), _) => &self.data(slot)[(first + start) * size..][..span.n * size],
                    (Source::Strided(slot), Some(Place::At(at))) => &self.data(slot)[at * size..][..span.n * size],
                    (Source::Filled | Source::Strided(_), _) => bytes(&copies[i], span.n * size),
                };
            }
            let registers = bytemuck::cast_slice_mut(registers);
            for (number, op) in group.ops.iter().enumerate() {
                self.micro(group, (number, op), &leaves, registers, outs, partial, span);
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
                    Data::Buffer(_) | Data::Memory(_) => return Source::Strided(slot),
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
    fn fetch(&self, group: &Group, leaf: usize, slot: TileSlot, span: Span, bank: &mut Bank) -> Option<Place> {
        let tile = self.strided(slot)?;
        let size = group.leaves[leaf].1;
        // In one row the elements follow each other, or are all the same.
        let (in_row, step) = (span.n <= group.cols, tile.strides[3]);
        if in_row && step == 1 {
            return Some(Place::At(first_of(&tile, span)));
        }
        if in_row && step == 0 && !group.whole[leaf] {
            let bits = words::element(tile.data, size, first_of(&tile, span));
            words::fill(&mut bytemuck::cast_slice_mut(&mut bank.cells[leaf..])[..size], size, bits);
            return Some(Place::Cell);
        }
        words::gather_run(bank.copy(leaf, span.n * size), &tile, span.start);
        None
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of the bank, borrowed one by one")]
    fn micro(
        &self,
        group: &Group,
        (number, op): (usize, &Micro),
        leaves: &[&[u8]; MAX_LEAVES],
        registers: &mut [u8],
        outs: &mut [Buffer],
        partial: &mut [u64],
        span: Span,
    ) {
        match &op.act {
            Act::Map { f, to: Operand::Out(o), size } => {
                let mut dst = std::mem::take(&mut outs[*o]);
                let args = op.args.map(|arg| operand(arg, leaves, (registers, &[]), usize::MAX, outs, span));
                f(self.isa, &mut bytemuck::cast_slice_mut(&mut dst)[span.start * size..][..span.n * size], args);
                outs[*o] = dst;
            }
            Act::Map { f, to: Operand::Reg(r) | Operand::Leaf(r), size } => {
                let (below, rest) = registers.split_at_mut(r * REGISTER);
                let (dst, above) = rest.split_at_mut(REGISTER);
                let args = op.args.map(|arg| operand(arg, leaves, (below, above), *r, outs, span));
                f(self.isa, &mut dst[..span.n * size], args);
            }
            Act::Reduce { f, to, size } => {
                let mut dst = std::mem::take(&mut outs[*to]);
                let data = operand(op.args[0], leaves, (registers, &[]), usize::MAX, outs, span);
                let row = span.start / group.cols;
                if span.n >= group.cols {
                    let rows = span.n / group.cols;
                    let out = &mut bytemuck::cast_slice_mut(&mut dst)[row * size..][..rows * size];
                    (f.rows)(self.isa, out, data, [rows, group.cols, 1]);
                } else {
                    let part = (f.part)(self.isa, data);
                    let begins = span.start % group.cols == 0;
                    let sum = if begins { part } else { (f.merge)(partial[number], part) };
                    partial[number] = sum;
                    if (span.start + span.n) % group.cols == 0 {
                        (f.finish)(sum, &mut bytemuck::cast_slice_mut(&mut dst)[row * size..][..*size]);
                    }
                }
                outs[*to] = dst;
            }
            Act::Store(place) => {
                let size = op.args[0].map_or(1, |(_, size)| size);
                let data = operand(op.args[0], leaves, (registers, &[]), usize::MAX, outs, span);
                self.store_run(place, group.shape, span.start, size, data);
            }
        }
    }
}

/// Where an operand that depends on the block is, if it was not copied.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In its data, from the element of this index on.
    At(usize),
    /// In its cell: the same in every element of the block.
    Cell,
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

/// The elements of an operand in a block. Registers come in two parts: those below number `middle`, and those above.
#[inline]
fn operand<'a>(
    arg: Option<(Operand, usize)>,
    leaves: &[&'a [u8]; MAX_LEAVES],
    (below, above): (&'a [u8], &'a [u8]),
    middle: usize,
    outs: &'a [Buffer],
    span: Span,
) -> &'a [u8] {
    match arg {
        None => &[],
        Some((Operand::Leaf(leaf), _)) => leaves[leaf],
        Some((Operand::Reg(r), size)) if r < middle => &below[r * REGISTER..][..span.n * size],
        Some((Operand::Reg(r), size)) => &above[(r - middle - 1) * REGISTER..][..span.n * size],
        Some((Operand::Out(o), size)) => &bytemuck::cast_slice(&outs[o])[span.start * size..][..span.n * size],
    }
}
