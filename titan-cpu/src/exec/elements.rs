//! Groups of elementwise operations, block by block.
//!
//! For each block an operand is either read where it is or first copied into its register; an operand that is the same in
//! every element is put into its register once. Operations run over slices; the destination is taken out of its place
//! meanwhile, so that operands can be borrowed beside it.

use super::Machine;
use super::pool::{Buffer, bytes, bytes_mut, reserve};
use super::tile::Data;
use crate::ops::words;
use crate::plan::TileSlot;
use crate::plan::group::{Act, BLOCK, Group, Leaf, Operand};

/// How an operand is read in the current block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// From its register, which was filled before the first block.
    Filled,
    /// Row-major in its data, whose element 0 of the tile is at this index.
    Dense(TileSlot, usize),
    /// Rows of consecutive elements: where it is if the block is in one row, otherwise copied.
    Rows(TileSlot),
    /// Copied for each block.
    Copied(TileSlot),
}

/// Where an operand is, if not in place.
const IN_REGISTER: usize = usize::MAX;

/// A block: its first element, and how many it has.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    n: usize,
}

/// What groups work with; kept between them.
#[derive(Debug, Default)]
pub(super) struct Bank {
    registers: Vec<Buffer>,
    /// Tiles that the group is making.
    outs: Vec<Buffer>,
    /// How each operand is read, and in this block the index of its first element where it is.
    sources: Vec<(Source, usize)>,
    /// Accumulators of rows that are longer than a block, by operation.
    partial: Vec<u64>,
}

impl Machine<'_, '_> {
    pub(super) fn elements(&mut self, group: &Group) {
        let mut bank = std::mem::take(&mut self.work.bank);
        for tile in &group.outs {
            let id = self.fresh(*tile);
            bank.outs.push(self.work.pool.lend(id));
        }
        while bank.registers.len() < group.registers {
            let mut register = Buffer::new();
            reserve(&mut register, BLOCK * 8);
            bank.registers.push(register);
        }
        if bank.partial.len() < group.ops.len() {
            bank.partial.resize(group.ops.len(), 0);
        }
        for (i, (leaf, size)) in group.leaves.iter().enumerate() {
            let source = self.source(*leaf, *size, group, &mut bank.registers[i]);
            bank.sources.push((source, IN_REGISTER));
        }
        let mut start = 0;
        while start < group.len {
            // Whole rows, or a part of one.
            let row = if group.block < group.cols { group.cols - start % group.cols } else { group.len - start };
            let span = Span { start, n: group.block.min(row) };
            self.fetch(group, span, &mut bank);
            (0..group.ops.len()).for_each(|op| self.micro(group, op, &mut bank, span));
            start += span.n;
        }
        bank.sources.clear();
        for tile in group.outs.iter().rev() {
            if let (Data::Buffer(id), Some(buffer)) = (self.tiles[*tile as usize].data, bank.outs.pop()) {
                self.work.pool.give_back(id, buffer);
            }
        }
        self.work.bank = bank;
    }

    fn source(&self, leaf: Leaf, size: usize, group: &Group, register: &mut Buffer) -> Source {
        let bits = match leaf {
            Leaf::Scalar(slot) => self.scalar(slot),
            Leaf::Tile(slot) => {
                let tile = &self.tiles[slot as usize];
                match tile.data {
                    Data::Splat(bits) => bits,
                    Data::Nothing => 0,
                    Data::Buffer(_) | Data::Memory(_) if tile.dense => return Source::Dense(slot, tile.first),
                    Data::Buffer(_) | Data::Memory(_) if tile.strides[3] == 1 => return Source::Rows(slot),
                    Data::Buffer(_) | Data::Memory(_) => return Source::Copied(slot),
                }
            }
        };
        words::fill(bytes_mut(register, group.block.min(group.len) * size), size, bits);
        Source::Filled
    }

    /// Finds the operands of a block, or copies them into their registers.
    fn fetch(&self, group: &Group, span: Span, bank: &mut Bank) {
        for (i, (source, place)) in bank.sources.iter_mut().enumerate() {
            *place = IN_REGISTER;
            match *source {
                Source::Filled => {}
                Source::Dense(_, first) => *place = first + span.start,
                Source::Rows(slot) | Source::Copied(slot) => {
                    let Some(tile) = self.strided(slot) else { continue };
                    if matches!(source, Source::Rows(_)) && span.n <= group.cols {
                        *place = words::index_of(&tile, span.start);
                    } else {
                        let size = group.leaves[i].1;
                        words::gather_run(bytes_mut(&mut bank.registers[i], span.n * size), &tile, span.start);
                    }
                }
            }
        }
    }

    /// The elements of an operand in a block.
    fn operand<'a>(&'a self, bank: &'a Bank, arg: Option<(Operand, usize)>, span: Span) -> &'a [u8] {
        let Some((operand, size)) = arg else { return &[] };
        let n = span.n * size;
        match operand {
            Operand::Reg(r) => bytes(&bank.registers[r], n),
            Operand::Out(o) => &bytemuck::cast_slice(&bank.outs[o])[span.start * size..][..n],
            Operand::Leaf(leaf) => match bank.sources[leaf] {
                (Source::Dense(slot, _) | Source::Rows(slot), place) if place != IN_REGISTER => {
                    &self.data(slot)[place * size..][..n]
                }
                _ => bytes(&bank.registers[leaf], n),
            },
        }
    }

    fn micro(&self, group: &Group, number: usize, bank: &mut Bank, span: Span) {
        let op = &group.ops[number];
        match &op.act {
            Act::Map { f, to, size } => {
                let (mut dst, skip) = match to {
                    Operand::Out(o) => (std::mem::take(&mut bank.outs[*o]), span.start),
                    Operand::Reg(r) | Operand::Leaf(r) => (std::mem::take(&mut bank.registers[*r]), 0),
                };
                let args = op.args.map(|arg| self.operand(bank, arg, span));
                f(self.isa, &mut bytemuck::cast_slice_mut(&mut dst)[skip * size..][..span.n * size], args);
                match to {
                    Operand::Out(o) => bank.outs[*o] = dst,
                    Operand::Reg(r) | Operand::Leaf(r) => bank.registers[*r] = dst,
                }
            }
            Act::Reduce { f, to, size } => {
                let mut dst = std::mem::take(&mut bank.outs[*to]);
                let data = self.operand(bank, op.args[0], span);
                let row = span.start / group.cols;
                if span.n >= group.cols {
                    let rows = span.n / group.cols;
                    let out = &mut bytemuck::cast_slice_mut(&mut dst)[row * size..][..rows * size];
                    (f.rows)(self.isa, out, data, [rows, group.cols, 1]);
                } else {
                    let part = (f.part)(self.isa, data);
                    let begins = span.start % group.cols == 0;
                    let sum = if begins { part } else { (f.merge)(bank.partial[number], part) };
                    bank.partial[number] = sum;
                    if (span.start + span.n) % group.cols == 0 {
                        (f.finish)(sum, &mut bytemuck::cast_slice_mut(&mut dst)[row * size..][..*size]);
                    }
                }
                bank.outs[*to] = dst;
            }
            Act::Store(place) => {
                let size = op.args[0].map_or(1, |(_, size)| size);
                self.store_run(place, group.shape, span.start, size, self.operand(bank, op.args[0], span));
            }
        }
    }
}
