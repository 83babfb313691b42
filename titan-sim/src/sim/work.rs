//! Asynchronous operations: their accesses while they are in flight, and their effects when they complete.

use super::finding::Found;
use super::tcgen05::Accessed;
use super::value::{Cells, Smem, Source, Tile, View};
use std::rc::Rc;
use titan_core::ir::{Elem, OpId, TileShape};

/// A result, or the finding that prevents it.
pub(super) type Res<T> = Result<T, Box<Found>>;

/// The accesses of an asynchronous operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Span {
    /// A range of bytes of a program's shared memory.
    Shared { cta: usize, lo: u64, hi: u64 },
    /// Columns of a program's tensor memory, from `lo` up to `hi`, exclusive.
    Columns { cta: usize, lo: u32, hi: u32 },
    /// A box of elements of a tensor parameter, by coordinates from `lo` up to `hi`, exclusive.
    Tensor { param: usize, lo: Vec<i64>, hi: Vec<i64> },
}

impl Span {
    pub(super) fn overlaps(&self, other: &Span) -> bool {
        match (self, other) {
            (Span::Shared { cta, lo, hi }, Span::Shared { cta: c, lo: l, hi: h }) => cta == c && lo < h && l < hi,
            (Span::Tensor { param, lo, hi }, Span::Tensor { param: p, lo: l, hi: h }) => {
                param == p && lo.iter().zip(h).all(|(a, b)| a < b) && l.iter().zip(hi).all(|(a, b)| a < b)
            }
            (Span::Columns { cta, lo, hi }, Span::Columns { cta: c, lo: l, hi: h }) => cta == c && lo < h && l < hi,
            (Span::Shared { .. }, Span::Tensor { .. } | Span::Columns { .. })
            | (Span::Columns { .. }, Span::Tensor { .. } | Span::Shared { .. })
            | (Span::Tensor { .. }, Span::Shared { .. } | Span::Columns { .. }) => false,
        }
    }
}

/// A range of memory that is accessed, and whether it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Touch {
    pub(super) span: Span,
    pub(super) write: bool,
    /// Whether accesses of this kind may be unordered among themselves: atomics and scatters, whose results are defined.
    pub(super) strong: bool,
}

/// An operand of an MMA.
#[derive(Clone, Debug, Hash)]
pub(super) enum Operand {
    Tile(Rc<Tile>),
    Shared {
        cta: usize,
        address: u64,
        smem: Rc<Smem>,
    },
    /// Elements of a tile in shared memory, each at its place; their bytes are those of `ranges`.
    Placed {
        cta: usize,
        elem: Elem,
        shape: TileShape,
        places: Rc<Vec<u64>>,
        ranges: Rc<Vec<(u64, u64)>>,
    },
    Unknown,
}

/// The part of an accumulator that a warp holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    pub(super) rows: Vec<u32>,
    pub(super) columns: Vec<u32>,
}

impl Part {
    /// The row-major numbers of its elements in a tile with this number of columns.
    fn places(&self, columns: usize) -> impl Iterator<Item = usize> + '_ {
        let row = move |i: u32| self.columns.iter().map(move |j| i as usize * columns + *j as usize);
        self.rows.iter().flat_map(move |i| row(*i))
    }

    /// Extracts its elements from a tile.
    pub(super) fn of(&self, tile: &Tile) -> Option<Tile> {
        let columns = usize::try_from(*tile.shape.get(1)?).ok()?;
        let extent = |n: usize| i32::try_from(n).ok();
        let shape = TileShape::new(&[extent(self.rows.len())?, extent(self.columns.len())?])?;
        Some(Tile { shape, cells: tile.cells.pick(self.places(columns)) })
    }

    /// A tile with these elements written in place of the tile's own.
    pub(super) fn put(&self, tile: &Tile, own: &Cells) -> Tile {
        let mut all = tile.clone();
        let columns = tile.shape.get(1).map_or(0, |n| usize::try_from(*n).unwrap_or(0));
        for (from, to) in self.places(columns).enumerate() {
            match (&mut all.cells, own) {
                (Cells::Int(all), Cells::Int(own)) => all[to] = own[from],
                (Cells::Float(all), Cells::Float(own)) => all[to] = own[from],
                (Cells::Int(_), Cells::Float(_)) | (Cells::Float(_), Cells::Int(_)) => {}
            }
        }
        all
    }
}

/// The effect of an asynchronous operation at its completion.
#[derive(Clone, Debug, Hash)]
pub(super) enum Effect {
    None,
    /// Marks bytes of shared memory as written; their values do not matter.
    Define {
        cta: usize,
        lo: u64,
        hi: u64,
    },
    /// Reads bytes of shared memory, which must be defined.
    Expect {
        cta: usize,
        lo: u64,
        hi: u64,
    },
    /// Copies a tile to shared memory; without a source, zeros.
    Copy {
        cta: usize,
        address: u64,
        len: u64,
        source: Option<Rc<Source>>,
    },
    /// Writes each element of a tile, or zero, to its own address.
    Deal {
        cta: usize,
        source: Rc<Source>,
        places: Rc<Vec<(Option<usize>, u64)>>,
        elem: Elem,
        ranges: Vec<(u64, u64)>,
    },
    /// Adds a matrix product to the accumulator with this number.
    Mma {
        id: (usize, u32),
        a: Operand,
        b: Operand,
        elem: Elem,
    },
    /// Adds a matrix product to the part of an accumulator that a warp holds: reads the result `from`, writes the result `id`.
    Step {
        from: (usize, u32),
        id: (usize, u32),
        a: Operand,
        b: Operand,
        elem: Elem,
        part: Rc<Part>,
    },
    /// Reads a stage, for a store.
    Keep {
        id: (usize, u32),
        cta: usize,
        address: u64,
        len: u64,
    },
    /// Reads a tile in shared memory, for a store.
    KeepTile {
        id: (usize, u32),
        tile: Operand,
        elem: Elem,
    },
    /// Accesses tensor memory.
    TensorMemory(Rc<Accessed>),
    /// Writes the bytes that were read to the tensor.
    Put {
        id: (usize, u32),
        view: Rc<View>,
        first: Option<Vec<i64>>,
        shape: TileShape,
    },
}

/// An asynchronous operation in flight, with its accesses and its effect.
#[derive(Clone, Debug, Hash)]
pub(super) struct Work {
    pub(super) op: OpId,
    /// The ring time of the stage that it accesses.
    pub(super) time: Option<u64>,
    pub(super) touches: Vec<Touch>,
    pub(super) effect: Effect,
}
