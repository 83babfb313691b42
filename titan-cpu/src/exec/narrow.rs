//! Matrix products in which one factor has few rows, or few columns that are not zeros.
//!
//! The tile of few rows may be larger than they are: what is beyond its tensor, or was padded, is zeros. Their products are zeros, or NaN
//! where an element of the other factor is not finite, so that one row of zeros stands for all of them.

use super::Outcome;
use super::matrix::conversion;
use super::pool::{Buffer, bytes, bytes_mut, reserve};
use crate::ops::TileFn;
use crate::ops::narrow::{MOST, Row, products};
use crate::ops::words::{self, Strided};
use crate::simd::Isa;
use titan_core::ir::Elem;

/// A factor as rows along `k`: the left one, or the transposed right one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    pub(super) rows: Strided<'a>,
    pub(super) elem: Elem,
    /// The number of rows of the tile, of which those behind `rows` are zeros.
    pub(super) tile: usize,
}

impl<'a> Side<'a> {
    /// The rows of a factor's tile, without the zeros at its end: a matrix of `tile` of them along k, which is the right factor's first axis.
    pub(super) fn of(mut rows: Strided<'a>, elem: Elem, is_right: bool) -> Option<Side<'a>> {
        if is_right {
            rows = rows.transposed();
        }
        let extent = |n: i32| usize::try_from(n).unwrap_or(0);
        let (tile, k, size) = (extent(rows.shape[2]), extent(rows.shape[3]), rows.size);
        let is_zero = |row: usize| {
            let first = rows.first.wrapping_add(row.wrapping_mul(rows.strides[2].cast_unsigned()));
            let part =
                |at: usize, n: usize| rows.data.get(at.wrapping_mul(size)..at.wrapping_add(n).wrapping_mul(size));
            let zeros = |part: Option<&[u8]>| part.is_some_and(|part| part.iter().fold(0, |any, byte| any | byte) == 0);
            if rows.strides[3] == 1 {
                return zeros(part(first, k));
            }
            (0..k).all(|at| zeros(part(first.wrapping_add(at.wrapping_mul(rows.strides[3].cast_unsigned())), 1)))
        };
        let zeros = (0..tile).rev().take_while(|row| is_zero(*row)).count();
        rows.shape = [1, 1, i32::try_from(tile - zeros).ok()?, rows.shape[3]];
        Some(Side { rows, elem, tile })
    }

    fn count(&self) -> usize {
        usize::try_from(self.rows.shape[2]).unwrap_or(0)
    }

    fn is_few(&self) -> bool {
        self.count() <= MOST
    }
}

/// Which factor has few rows, if the other one has rows without gaps: 0 for the left one.
pub(super) fn few(sides: [&Side<'_>; 2]) -> Option<usize> {
    let fits = |i: usize| sides[i].is_few() && sides[1 - i].rows.strides[3] == 1;
    let order = if sides[0].count() <= sides[1].count() { [0, 1] } else { [1, 0] };
    order.into_iter().find(|i| fits(*i))
}

/// `dst = a · b`, or `dst += a · b`, where the factors have zeros behind their rows; `few` of them has few rows. A row of `dst` has `row`
/// elements.
pub(super) fn narrow(
    isa: Isa,
    (dst, row): (&mut [f32], usize),
    add: bool,
    sides: [&Side<'_>; 2],
    few: usize,
    buffers: &mut [Buffer; 3],
) -> Outcome<()> {
    let (own, many) = (sides[few], sides[1 - few]);
    let k = usize::try_from(own.rows.shape[3]).unwrap_or(0);
    let [dense, wide, sums] = buffers;
    // Behind the few is a row of zeros, which stands for all rows of zeros of the tile.
    let rows = own.count();
    reserve(dense, (rows + 1) * k * 4)?;
    widened(isa, own, bytes_mut(dense, (rows + 1) * k * 4), wide)?;
    let (few_rows, zeros): (&[f32], &[f32]) = bytemuck::cast_slice(bytes(dense, (rows + 1) * k * 4)).split_at(rows * k);
    let (n, convert) = (many.count(), conversion(many.elem));
    reserve(sums, (rows + 1) * n * 4)?;
    reserve(wide, k * 4)?;
    let sums: &mut [f32] = bytemuck::cast_slice_mut(bytes_mut(sums, (rows + 1) * n * 4));
    let mut of_row = [0f32; MOST + 1];
    for j in 0..n {
        let row = typed(isa, many, (j, k), convert, wide);
        products(isa, few_rows, row, &mut of_row[..rows]);
        // Sums with an element that is not finite are not finite. So if one is, the products with zeros are zeros.
        if own.tile > rows && !of_row[..rows].iter().any(|sum| sum.is_finite()) {
            products(isa, zeros, row, &mut of_row[rows..=rows]);
        } else {
            of_row[rows] = 0.0;
        }
        of_row[..=rows].iter().enumerate().for_each(|(i, sum)| sums[i * n + j] = *sum);
    }
    // What the rows behind the many, which are zeros, give with a row of the few.
    let beyond = |i: usize| {
        let finite = i >= own.count() || few_rows[i * k..(i + 1) * k].iter().all(|x| x.is_finite());
        if finite { 0.0 } else { f32::NAN }
    };
    for i in 0..own.tile {
        let sums = &sums[i.min(rows) * n..][..n];
        let beyond = beyond(i);
        let set = |d: &mut f32, sum: f32| *d = if add { *d + sum } else { sum };
        if few == 0 {
            let (inside, rest) = dst[i * row..][..row].split_at_mut(n);
            inside.iter_mut().zip(sums).for_each(|(d, sum)| set(d, *sum));
            rest.iter_mut().for_each(|d| set(d, beyond));
        } else {
            let all = sums.iter().copied().chain(std::iter::repeat_n(beyond, many.tile - n));
            dst[i..].iter_mut().step_by(row).zip(all).for_each(|(d, sum)| set(d, sum));
        }
    }
    Ok(())
}

/// Writes the rows of a side in `f32`, one after the other, and zeros behind them.
fn widened(isa: Isa, side: &Side<'_>, dst: &mut [u8], buffer: &mut Buffer) -> Outcome<()> {
    let len = side.count() * usize::try_from(side.rows.shape[3]).unwrap_or(0);
    let (rows, zeros) = dst.split_at_mut(len * 4);
    zeros.fill(0);
    match conversion(side.elem) {
        None => words::gather_run(rows, &side.rows, 0),
        Some(f) => {
            reserve(buffer, len * side.rows.size)?;
            let given = bytes_mut(buffer, len * side.rows.size);
            words::gather_run(given, &side.rows, 0);
            f(isa, rows, [given, &[], &[]]);
        }
    }
    Ok(())
}

/// Row `j` of a side, with elements that are widened in registers; others are widened to `buffer`.
fn typed<'a>(
    isa: Isa,
    side: &Side<'a>,
    (j, k): (usize, usize),
    convert: Option<TileFn>,
    buffer: &'a mut Buffer,
) -> Row<'a> {
    let size = side.rows.size;
    let first = side.rows.first.wrapping_add(j.wrapping_mul(side.rows.strides[2].cast_unsigned())) * size;
    let row = &side.rows.data[first..first + k * size];
    match (side.elem, convert) {
        (Elem::F16, _) => Row::F16(bytemuck::cast_slice(row)),
        (Elem::Bf16, _) => Row::Bf16(bytemuck::cast_slice(row)),
        (_, None) => Row::F32(bytemuck::cast_slice(row)),
        (_, Some(f)) => {
            let wide = bytes_mut(buffer, k * 4);
            f(isa, wide, [row, &[], &[]]);
            Row::F32(bytemuck::cast_slice(wide))
        }
    }
}
