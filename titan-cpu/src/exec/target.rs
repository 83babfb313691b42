//! The destination of a group's store: determined once for the group, then block by block.

use super::Machine;
use super::memory::count;
use super::operands::Span;
use crate::ops::TileFn;
use crate::plan::Place;
use crate::runtime::view::View;
use crate::simd::Isa;

/// The position of a tile in a tensor.
#[derive(Debug)]
pub(super) struct Target<'a> {
    view: &'a View<'a>,
    start: [i64; 4],
    shape: [i32; 4],
    /// The offset of the tile's first element, which need not exist.
    first: i64,
    cols: usize,
    extents: [usize; 2],
    /// Whether every element is inside, and the elements of a row are contiguous.
    whole: bool,
    /// Whether the rows are contiguous too.
    joined: bool,
}

impl<'m> Machine<'_, 'm> {
    /// The position of a tile of this shape.
    pub(super) fn target(&self, place: &Place, shape: [i32; 4]) -> Target<'_> {
        let (view, start) = (&self.views[place.view as usize], self.start(place, shape));
        let strides = view.strides();
        let whole = strides[3] == 1 && view.holds(start, shape);
        let joined = whole && strides[2] == i64::from(shape[3]) && shape[0] == 1 && shape[1] == 1;
        let extent = |axis: usize| usize::try_from(shape[axis]).unwrap_or(1).max(1);
        Target {
            view,
            start,
            shape,
            first: view.offset(start),
            cols: extent(3),
            extents: [extent(1), extent(2)],
            whole,
            joined,
        }
    }
}

impl Target<'_> {
    /// The offset of an element of the tile.
    fn offset(&self, row: [usize; 3], col: usize) -> i64 {
        let at = row.into_iter().chain([col]);
        at.zip(self.view.strides()).fold(self.first, |sum, (i, s)| sum.wrapping_add(index(i).wrapping_mul(s)))
    }

    /// Computes the elements of a block with a function, directly into the tensor, if they are contiguous there; returns false if they
    /// are not, or if some are outside.
    pub(super) fn store_by(&self, span: Span, isa: Isa, f: TileFn, args: [&[u8]; 3]) -> bool {
        let fits = if span.n <= self.cols { self.whole } else { self.joined };
        fits && self.view.write_by(self.offset(span.row, span.col), span.n, isa, f, args)
    }

    /// Requests the lines of a block, if it is going to be stored as a whole: otherwise the stores to a large tensor wait for them one after the
    /// other, and everything that is stored after them too.
    pub(super) fn prefetch(&self, span: Span, isa: Isa) {
        let fits = if span.n <= self.cols { self.whole } else { self.joined };
        if fits && self.view.is_far() {
            self.view.prefetch(self.offset(span.row, span.col), span.n, isa);
        }
    }

    /// Stores the elements of a block, each of this size in bytes.
    pub(super) fn store(&self, span: Span, size: usize, data: &[u8]) {
        let [i, j, k] = span.row;
        if self.whole && span.col == 0 && span.n.is_multiple_of(self.cols) && k + span.n / self.cols <= self.extents[1]
        {
            // Whole rows of one plane, all of them inside.
            self.view.write_rows(self.offset([i, j, k], 0), self.view.strides()[2], self.cols, data);
            return;
        }
        let inside = self.view.inside(self.start, self.shape);
        if inside.is_empty() {
            return;
        }
        let (mut row, col) = (span.row, index(span.col));
        for piece in data.chunks(self.cols * size) {
            let is_inside = (0..3).all(|axis| (inside.lo[axis]..inside.hi[axis]).contains(&index(row[axis])));
            let end = col + index(piece.len() / size);
            let (lo, hi) = (col.max(inside.lo[3]), end.min(inside.hi[3]));
            if is_inside && lo < hi {
                let part = &piece[count(col, lo) * size..count(col, hi) * size];
                self.view.write_run(self.offset(row, count(0, lo)), self.view.strides()[3], part);
            }
            row[2] += 1;
            for axis in [1, 0] {
                if row[axis + 1] == self.extents[axis] {
                    (row[axis], row[axis + 1]) = (row[axis] + 1, 0);
                }
            }
        }
    }
}

fn index(i: usize) -> i64 {
    i64::try_from(i).unwrap_or(i64::MAX)
}
