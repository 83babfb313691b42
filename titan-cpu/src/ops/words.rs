//! Operations that only move elements, by their width: strided tiles to dense ones, fills, interleaving.

use crate::rep::with_width;
use crate::runtime::access::Word;

/// A tile in a slice: its extents, the index of its first element, and its strides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) first: usize,
    pub(crate) strides: [isize; 4],
    pub(crate) shape: [i32; 4],
    /// The size of an element in bytes.
    pub(crate) size: usize,
}

impl Strided<'_> {
    /// The tile with its last two axes exchanged.
    pub(crate) fn transposed(&self) -> Self {
        let mut transposed = *self;
        transposed.strides.swap(2, 3);
        transposed.shape.swap(2, 3);
        transposed
    }

    /// The `n` columns from `from` on.
    pub(crate) fn columns(&self, from: usize, n: usize) -> Self {
        self.part(3, from, n)
    }

    /// The `n` rows from `from` on.
    pub(crate) fn rows(&self, from: usize, n: usize) -> Self {
        self.part(2, from, n)
    }

    fn part(&self, axis: usize, from: usize, n: usize) -> Self {
        let mut part = *self;
        part.first = part.first.wrapping_add(from.wrapping_mul(self.strides[axis].cast_unsigned()));
        part.shape[axis] = i32::try_from(n).unwrap_or(0);
        part
    }
}

/// Copies elements `start ..` of a strided tile, in row-major order, until `dst` is full.
pub(crate) fn gather_run(dst: &mut [u8], tile: &Strided<'_>, start: usize) {
    fn words<T: Word>(dst: &mut [u8], tile: &Strided<'_>, start: usize) {
        let (dst, src): (&mut [T], &[T]) = (bytemuck::cast_slice_mut(dst), bytemuck::cast_slice(tile.data));
        let extent = |axis: usize| usize::try_from(tile.shape[axis]).unwrap_or(1).max(1);
        let [planes, rows, cols] = [extent(1), extent(2), extent(3)];
        let (row, mut col, mut rest) = (start / cols, start % cols, dst);
        let [mut i, mut j, mut k] = [row / rows / planes, row / rows % planes, row % rows];
        let mut first = place(tile.first, tile.strides, [i, j, k, 0]);
        if tile.strides[3] == 1 && col == 0 && rest.len().is_multiple_of(cols) && k + rest.len() / cols <= rows {
            // Whole contiguous rows of one plane.
            for row in rest.chunks_exact_mut(cols) {
                row.copy_from_slice(&src[first..first + cols]);
                first = first.wrapping_add_signed(tile.strides[2]);
            }
            return;
        }
        while !rest.is_empty() {
            let n = (cols - col).min(rest.len());
            let (piece, more) = rest.split_at_mut(n);
            let skipped = col.wrapping_mul(tile.strides[3].cast_unsigned());
            copy_run(piece, src, first.wrapping_add(skipped), tile.strides[3]);
            // The next row: a division for each would take longer than the copy of a short one.
            (rest, col, k) = (more, 0, k + 1);
            first = first.wrapping_add_signed(tile.strides[2]);
            if k == rows {
                (j, k) = (j + 1, 0);
                if j == planes {
                    (i, j) = (i + 1, 0);
                }
                first = place(tile.first, tile.strides, [i, j, k, 0]);
            }
        }
    }
    with_width!(tile.size, words(dst, tile, start));
}

/// Whether `n` elements from element number `at` on are in one line along the last axis.
pub(crate) fn is_in_line(tile: &Strided<'_>, at: usize, n: usize) -> bool {
    let line = usize::try_from(tile.shape[3]).unwrap_or(1).max(1);
    at % line + n <= line
}

/// The index in the data of element number `at` of a tile, in row-major order.
pub(crate) fn index_of(tile: &Strided<'_>, at: usize) -> usize {
    let mut rest = at;
    let mut index = tile.first;
    for axis in (0..4).rev() {
        let n = usize::try_from(tile.shape[axis]).unwrap_or(1).max(1);
        index = index.wrapping_add((rest % n).wrapping_mul(tile.strides[axis].cast_unsigned()));
        rest /= n;
    }
    index
}

/// The index of an element.
fn place(first: usize, strides: [isize; 4], at: [usize; 4]) -> usize {
    at.iter().zip(strides).fold(first, |sum, (i, s)| sum.wrapping_add(i.wrapping_mul(s.cast_unsigned())))
}

#[inline]
fn copy_run<T: Copy>(dst: &mut [T], src: &[T], first: usize, stride: isize) {
    match stride {
        1 => dst.copy_from_slice(&src[first..first + dst.len()]),
        0 => dst.fill(src[first]),
        _ => {
            let mut at = first;
            for d in dst {
                *d = src[at];
                at = at.wrapping_add_signed(stride);
            }
        }
    }
}

/// Sets every element to the low bits of a scalar slot.
pub(crate) fn fill(dst: &mut [u8], size: usize, bits: u64) {
    fn words<T: Word>(dst: &mut [u8], bits: u64) {
        bytemuck::cast_slice_mut::<u8, T>(dst).fill(T::from_slot(bits));
    }
    with_width!(size, words(dst, bits));
}

/// Reads one element as the low bits of a scalar slot.
pub(crate) fn element(src: &[u8], size: usize, index: usize) -> u64 {
    fn word<T: Word>(src: &[u8], index: usize) -> u64 {
        bytemuck::cast_slice::<u8, T>(src)[index].to_slot()
    }
    with_width!(size, word(src, index))
}

/// Alternates the elements of `a` and `b`.
pub(crate) fn interleave(dst: &mut [u8], size: usize, a: &[u8], b: &[u8]) {
    fn words<T: Word>(dst: &mut [u8], a: &[u8], b: &[u8]) {
        let pairs = bytemuck::cast_slice::<u8, T>(a).iter().zip(bytemuck::cast_slice::<u8, T>(b));
        for (d, (a, b)) in bytemuck::cast_slice_mut::<u8, T>(dst).chunks_exact_mut(2).zip(pairs) {
            (d[0], d[1]) = (*a, *b);
        }
    }
    with_width!(size, words(dst, a, b));
}

/// Separates the elements with even numbers from those with odd numbers.
pub(crate) fn split(even: &mut [u8], odd: &mut [u8], size: usize, src: &[u8]) {
    fn words<T: Word>(even: &mut [u8], odd: &mut [u8], src: &[u8]) {
        let pairs = bytemuck::cast_slice::<u8, T>(src).chunks_exact(2);
        let halves = bytemuck::cast_slice_mut::<u8, T>(even).iter_mut().zip(bytemuck::cast_slice_mut::<u8, T>(odd));
        for ((e, o), pair) in halves.zip(pairs) {
            (*e, *o) = (pair[0], pair[1]);
        }
    }
    with_width!(size, words(even, odd, src));
}
