//! The operands of a group, block by block: their addresses are determined once for the group as far as possible, and per block by a
//! few additions.

use super::pool::{Buffer, bytes, bytes_mut, reserve};
use super::tile::Data;
use super::{Machine, Outcome};
use crate::ops::words;
use crate::plan::group::{Group, Input, LONG_ROW, Leaf, MAX_LEAVES};

/// The way in which an operand is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Source {
    /// One element stands for all; it is in the operand's cell.
    #[default]
    Uniform,
    /// The same in every block; it is in the operand's register, which was filled before the first block.
    Filled,
    /// Row-major, from the first byte of its data on.
    Dense,
    /// Row by row, by the strides of its tile.
    Rows,
    /// One element for each row of the block, read in place if these are contiguous.
    OfRows,
}

/// The position of the elements of one block, for an operand that is read row by row.
#[derive(Clone, Copy, Debug, Default)]
enum Place {
    /// In the operand's data, from the element with this index on.
    At(usize),
    /// In the operand's cell: the same for every element of the block.
    Cell,
    /// Copied to its register.
    #[default]
    Register,
}

/// A block: its first element, its number of elements, and the coordinates of the first one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) n: usize,
    /// The number of rows, at least one; divided once, because every operation on rows asks for it.
    rows: usize,
    /// The coordinates on the three leading axes.
    pub(super) row: [usize; 3],
    pub(super) col: usize,
}

/// Buffers for operands that are not read in place; kept from one group to the next.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// The registers of operands that are copied.
    copies: Vec<Buffer>,
    /// The operands that are the same in every element.
    cells: [u64; MAX_LEAVES],
    /// For operands that are read row by row, the position of the current block.
    places: [Place; MAX_LEAVES],
}

/// The operands of a group, of which there are at most `N`.
#[derive(Debug)]
pub(super) struct Operands<'a, const N: usize> {
    sources: [Source; N],
    data: [&'a [u8]; N],
    /// The number of elements evaluated at a time: whole rows, or a part of one.
    pub(super) block: usize,
    by_rows: bool,
}

impl Span {
    /// The number of rows of the block, at least one.
    #[inline]
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The same block with this number of elements.
    fn of_len(self, group: &Group, n: usize) -> Self {
        Span { n, rows: if n <= group.cols { 1 } else { n / group.cols }, ..self }
    }

    /// Whether all elements have the same coordinates on the first two axes.
    fn is_in_plane(&self, group: &Group) -> bool {
        let rows = usize::try_from(group.shape[2]).unwrap_or(1);
        self.row[2] * group.cols + self.col + self.n <= rows * group.cols
    }

    /// The first block of a group.
    pub(super) fn first(group: &Group, block: usize) -> Self {
        Span::default().of_len(group, block.min(group.len))
    }

    /// The next block, which may be beyond the last one: whole rows, or a part of one.
    pub(super) fn next(&self, group: &Group, block: usize) -> Self {
        let mut next = Span { start: self.start + self.n, col: self.col + self.n, ..*self };
        if next.col >= group.cols {
            let rows = if next.col == group.cols { 1 } else { next.col / group.cols };
            next.col = 0;
            next.row[2] += rows;
            for axis in [2, 1] {
                let extent = usize::try_from(group.shape[axis]).unwrap_or(1).max(1);
                if next.row[axis] >= extent {
                    next.row[axis - 1] += next.row[axis] / extent;
                    next.row[axis] %= extent;
                }
            }
        }
        let rest = if block < group.cols { group.cols - next.col } else { group.len.saturating_sub(next.start) };
        next.of_len(group, block.min(rest))
    }
}

impl Inputs {
    /// Makes room for the operands of a group.
    fn prepare(&mut self, group: &Group) {
        if self.copies.len() < group.inputs.len() {
            self.copies.resize(group.inputs.len(), Buffer::new());
        }
    }

    /// The register of an operand, with this number of bytes.
    fn copy(&mut self, leaf: usize, n: usize) -> Outcome<&mut [u8]> {
        reserve(&mut self.copies[leaf], n)?;
        Ok(bytes_mut(&mut self.copies[leaf], n))
    }

    /// Fills the cell of an operand.
    #[inline]
    fn set_cell(&mut self, leaf: usize, size: usize, bits: u64) {
        if cfg!(target_endian = "little") {
            self.cells[leaf] = bits;
        } else {
            words::fill(&mut bytemuck::bytes_of_mut(&mut self.cells[leaf])[..size], size, bits);
        }
    }
}

impl<'a, const N: usize> Operands<'a, N> {
    /// Locates the operands of a group; values that are equal in every element are placed where they will be read.
    #[inline]
    pub(super) fn new(machine: &'a Machine<'_, '_>, group: &Group, inputs: &mut Inputs) -> Outcome<Self> {
        inputs.prepare(group);
        let (mut sources, mut data): (_, [&[u8]; N]) = ([Source::Uniform; N], [&[]; N]);
        let mut by_rows = false;
        for (number, (source, data)) in sources.iter_mut().zip(&mut data).enumerate().take(group.inputs.len()) {
            (*source, *data) = machine.source(group, number, inputs)?;
            by_rows |= matches!(source, Source::Rows | Source::OfRows);
        }
        // Long rows that are not contiguous are evaluated one at a time, because copying them together would cost more.
        let one_row = by_rows && group.cols >= LONG_ROW;
        let block = if one_row { group.block.min(group.cols) } else { group.block };
        Ok(Operands { sources, data, block, by_rows })
    }

    /// Locates the elements of every operand in one block.
    #[inline]
    pub(super) fn of_block<'s>(
        &self,
        machine: &Machine<'_, '_>,
        (group, span): (&Group, Span),
        inputs: &'s mut Inputs,
        leaves: &mut [&'s [u8]; N],
    ) -> Outcome<()>
    where
        'a: 's,
    {
        if self.by_rows {
            for number in 0..group.inputs.len() {
                match self.sources[number] {
                    Source::Rows => inputs.places[number] = machine.fetch(group, number, span, inputs)?,
                    Source::OfRows => inputs.places[number] = machine.fetch_rows(group, number, span, inputs)?,
                    Source::Uniform | Source::Filled | Source::Dense => {}
                }
            }
        }
        let inputs = &*inputs;
        for (i, (leaf, Input { size, .. })) in leaves.iter_mut().zip(&group.inputs).enumerate() {
            let n = span.n * size;
            *leaf = match (self.sources[i], inputs.places[i]) {
                (Source::Uniform, _) | (Source::Rows, Place::Cell) => &bytemuck::bytes_of(&inputs.cells[i])[..*size],
                (Source::Dense, _) => &self.data[i][span.start * size..][..n],
                (Source::Rows, Place::At(at)) => &self.data[i][at * size..][..n],
                (Source::Filled, _) | (Source::Rows, Place::Register) => bytes(&inputs.copies[i], n),
                (Source::OfRows, Place::At(at)) => &self.data[i][at * size..][..span.rows() * size],
                (Source::OfRows, _) => bytes(&inputs.copies[i], span.rows() * size),
            };
        }
        Ok(())
    }
}

impl Machine<'_, '_> {
    /// The way in which an operand is read, and its data if it is read in place.
    fn source(&self, group: &Group, number: usize, inputs: &mut Inputs) -> Outcome<(Source, &[u8])> {
        let Input { leaf, size, of_rows, whole } = group.inputs[number];
        let bits = match leaf {
            Leaf::Scalar(slot) => self.scalar(slot),
            Leaf::Tile(slot) => {
                let tile = &self.tiles[slot as usize];
                match (tile.data, tile.dense) {
                    (Data::Splat(bits), _) => bits,
                    (Data::Nothing, _) => 0,
                    (Data::Buffer(_) | Data::Memory(_), _) if of_rows => return Ok((Source::OfRows, self.data(slot))),
                    (Data::Buffer(_) | Data::Memory(_), true) => {
                        return Ok((Source::Dense, &self.data(slot)[tile.first * size..]));
                    }
                    (Data::Buffer(_) | Data::Memory(_), false) => return Ok((Source::Rows, self.data(slot))),
                }
            }
        };
        if whole {
            words::fill(inputs.copy(number, group.block.min(group.len) * size)?, size, bits);
            return Ok((Source::Filled, &[]));
        }
        inputs.set_cell(number, size, bits);
        Ok((Source::Uniform, &[]))
    }

    /// Locates an operand of a block in its data, or copies it.
    fn fetch(&self, group: &Group, leaf: usize, span: Span, inputs: &mut Inputs) -> Outcome<Place> {
        let Input { leaf: Leaf::Tile(slot), size, whole, .. } = group.inputs[leaf] else { return Ok(Place::Register) };
        let tile = &self.tiles[slot as usize];
        let step = tile.strides[3];
        // Within one row the elements are contiguous, or all the same; within a plane they are if its rows are contiguous.
        let [i, j, k] = span.row;
        let joined = || step == 1 && tile.strides[2] == group.cols.cast_signed() && span.is_in_plane(group);
        if span.n <= group.cols && (step == 1 || step == 0 && !whole) || joined() {
            let first = [i, j, k, span.col]
                .iter()
                .zip(tile.strides)
                .fold(tile.first, |sum, (i, s)| sum.wrapping_add(i.wrapping_mul(s.cast_unsigned())));
            if step == 1 {
                return Ok(Place::At(first));
            }
            let bits = words::element(self.data(slot), size, first);
            inputs.set_cell(leaf, size, bits);
            return Ok(Place::Cell);
        }
        if let Some(tile) = self.strided(slot) {
            words::gather_run(inputs.copy(leaf, span.n * size)?, &tile, span.start);
        }
        Ok(Place::Register)
    }

    /// Locates the elements of an operand for the rows of a block, or copies them.
    fn fetch_rows(&self, group: &Group, leaf: usize, span: Span, inputs: &mut Inputs) -> Outcome<Place> {
        let Input { leaf: Leaf::Tile(slot), size, .. } = group.inputs[leaf] else { return Ok(Place::Register) };
        if let Some(tile) = self.strided(slot) {
            let row = span.start / group.cols;
            if tile.strides[3] == 1 && words::is_in_line(&tile, row, span.rows()) {
                return Ok(Place::At(words::index_of(&tile, row)));
            }
            words::gather_run(inputs.copy(leaf, span.rows() * size)?, &tile, row);
        }
        Ok(Place::Register)
    }
}
