//! MMAs, and loops that are one matrix product.

use super::narrow::{Side, few, narrow};
use super::pool::{Buffer, bytes, bytes_mut, reserve};
use super::tile::{Data, Tile};
use super::{Machine, Outcome};
use crate::ops::words::{self, Strided};
use crate::ops::{TileFn, cast};
use crate::plan::TileSlot;
use crate::runtime::product::{Matrix, Multiply};
use crate::simd::Isa;
use bytemuck::Pod;
use titan_core::ir::Elem;

/// The number of products of `i8` that are summed in `f32`, exactly: 2¹⁰ · 2⁷ · 2⁷ = 2²⁴.
const EXACT_K: usize = 1024;

/// An operand of an MMA in the form in which it is multiplied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand<'a> {
    pub(super) data: &'a [u8],
    pub(super) first: usize,
    pub(super) strides: [isize; 4],
}

impl Operand<'_> {
    /// One matrix of a batch.
    fn of_batch(&self, batch: usize) -> Self {
        let skip = batch.wrapping_mul(self.strides[1].cast_unsigned());
        Operand { first: self.first.wrapping_add(skip), ..*self }
    }

    fn matrix<T: Pod>(&self) -> Matrix<'_, T> {
        Matrix { data: bytemuck::cast_slice(self.data), first: self.first, row: self.strides[2], col: self.strides[3] }
    }
}

/// The type in which products are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sums {
    F32,
    F64,
    /// `i32`, which wraps.
    I32,
}

impl Sums {
    /// The type for the element type of the accumulator. Verified kernels have only these three.
    pub(super) fn of(acc: Elem) -> Self {
        match acc {
            Elem::F64 => Sums::F64,
            Elem::I32 => Sums::I32,
            Elem::F32
            | Elem::Tf32
            | Elem::F16
            | Elem::Bf16
            | Elem::E4m3
            | Elem::E5m2
            | Elem::I64
            | Elem::I16
            | Elem::I8
            | Elem::I4
            | Elem::U64
            | Elem::U32
            | Elem::U16
            | Elem::U8
            | Elem::U4
            | Elem::Bool => Sums::F32,
        }
    }
}

/// Multiplies two matrices, summed in elements of type `acc`; rows of the result are `row` elements apart in `dst`.
pub(super) fn multiply(
    acc: Elem,
    (dst, row): (&mut [u8], usize),
    shape: [usize; 3],
    add: bool,
    [a, b]: [Operand<'_>; 2],
    sums: &mut Buffer,
) -> Outcome<()> {
    match Sums::of(acc) {
        Sums::F64 => f64::product((bytemuck::cast_slice_mut(dst), row), shape, add, a.matrix(), b.matrix()),
        Sums::I32 => integer_product((bytemuck::cast_slice_mut(dst), row), shape, add, a.matrix(), b.matrix(), sums)?,
        Sums::F32 => f32::product((bytemuck::cast_slice_mut(dst), row), shape, add, a.matrix(), b.matrix()),
    }
    Ok(())
}

impl Machine<'_, '_> {
    pub(super) fn mma(&mut self, to: TileSlot, a: TileSlot, b: TileSlot, c: TileSlot, last_use: bool) -> Outcome<()> {
        let add = self.accumulator(to, c, last_use)?;
        let Data::Buffer(id) = self.tiles[to as usize].data else { return Ok(()) };
        let mut out = self.work.pool.lend(id);
        let (mut factors, mut few_rows) =
            (std::mem::take(&mut self.work.factors), std::mem::take(&mut self.work.narrow));
        let [left, right, sums] = &mut factors;
        let (info, depth) = (self.plan.tiles[to as usize], self.plan.tiles[a as usize].shape[3]);
        let extent = |n: i32| usize::try_from(n).unwrap_or(0);
        let [m, n, k] = [extent(info.shape[2]), extent(info.shape[3]), extent(depth)];
        let dst = bytes_mut(&mut out, info.len * info.size);
        let sides = |batch: usize| -> Option<[Side<'_>; 2]> {
            let side = |tile: TileSlot, is_right: bool| {
                let mut whole = self.strided(tile)?;
                whole.first = whole.first.wrapping_add(batch.wrapping_mul(whole.strides[1].cast_unsigned()));
                Side::of(whole, self.plan.tiles[tile as usize].elem, is_right)
            };
            (Sums::of(info.elem) == Sums::F32).then(|| Some([side(a, false)?, side(b, true)?]))?
        };
        let mut converted = None;
        for (batch, dst) in dst.chunks_exact_mut(m * n * info.size).enumerate() {
            if let Some([left, right]) = sides(batch)
                && let Some(few) = few([&left, &right])
            {
                let dst = bytemuck::cast_slice_mut(dst);
                narrow(self.isa, (dst, n), add, [&left, &right], few, &mut few_rows)?;
                continue;
            }
            let (a, b) = match converted {
                Some(both) => both,
                None => (self.factor(a, left)?, self.factor(b, right)?),
            };
            converted = Some((a, b));
            multiply(info.elem, (dst, n), [m, n, k], add, [a.of_batch(batch), b.of_batch(batch)], sums)?;
        }
        (self.work.factors, self.work.narrow) = (factors, few_rows);
        self.work.pool.give_back(id, out);
        Ok(())
    }

    /// Gives `to` a buffer with the accumulator, unless that is zero: then the result is false, and the buffer must be
    /// overwritten. If this is the accumulator's last use, its buffer is reused.
    pub(super) fn accumulator(&mut self, to: TileSlot, c: TileSlot, last_use: bool) -> Outcome<bool> {
        if matches!(self.tiles[c as usize].data, Data::Splat(0)) {
            self.fresh(to)?;
            return Ok(false);
        }
        self.make_dense(c)?;
        let info = self.plan.tiles[c as usize];
        let tile = self.tiles[c as usize];
        if let (Data::Buffer(id), true) = (tile.data, last_use)
            && self.work.pool.is_unique(id)
            && tile.first == 0
            && self.work.pool.get(id).len() == info.len * info.size
        {
            self.tiles[c as usize] = Tile::default();
            self.set_tile(to, tile);
            return Ok(true);
        }
        self.make(to, |m, out| out.copy_from_slice(m.dense(c)))?;
        Ok(true)
    }

    /// An operand of an MMA: unchanged if its elements can be multiplied; otherwise converted into `buffer`.
    fn factor<'a>(&'a self, tile: TileSlot, buffer: &'a mut Buffer) -> Outcome<Operand<'a>> {
        let info = &self.plan.tiles[tile as usize];
        match (self.strided(tile), conversion(info.elem)) {
            (Some(s), None) => Ok(Operand { data: s.data, first: s.first, strides: s.strides }),
            (Some(s), Some(f)) => convert(self.isa, &s, f, buffer),
            (None, f) => {
                let bits = match self.tiles[tile as usize].data {
                    Data::Splat(bits) => bits,
                    Data::Nothing | Data::Buffer(_) | Data::Memory(_) => 0,
                };
                splat(self.isa, info.size, bits, f, buffer)
            }
        }
    }
}

/// The conversion of elements to the type in which they are multiplied, if one is needed.
pub(super) fn conversion(elem: Elem) -> Option<TileFn> {
    match elem {
        Elem::F64 | Elem::F32 | Elem::Tf32 => None,
        Elem::F16
        | Elem::Bf16
        | Elem::E4m3
        | Elem::E5m2
        | Elem::I64
        | Elem::I32
        | Elem::I16
        | Elem::I8
        | Elem::I4
        | Elem::U64
        | Elem::U32
        | Elem::U16
        | Elem::U8
        | Elem::U4
        | Elem::Bool => Some(cast::cast(elem, Elem::F32).tile),
    }
}

/// Converts a strided tile to `f32`. If the axes of a whole buffer are only permuted, its elements keep their positions.
pub(super) fn convert<'a>(isa: Isa, tile: &Strided<'_>, f: TileFn, buffer: &'a mut Buffer) -> Outcome<Operand<'a>> {
    let len: usize = tile.shape.iter().map(|n| usize::try_from(*n).unwrap_or(0)).product();
    let size = tile.size;
    let compact = tile.first == 0 && tile.data.len() == len * size && is_permuted(tile);
    let strides = if compact {
        reserve(buffer, len * 4)?;
        f(isa, bytes_mut(buffer, len * 4), [tile.data, &[], &[]]);
        tile.strides
    } else if tile.strides[3] == 1 {
        reserve(buffer, len * 4)?;
        convert_rows(isa, tile, f, bytes_mut(buffer, len * 4));
        crate::plan::dense_strides(tile.shape)
    } else if tile.strides[2] == 1 {
        // Column by column: the result is the transposed tile, row by row.
        reserve(buffer, len * 4)?;
        convert_rows(isa, &tile.transposed(), f, bytes_mut(buffer, len * 4));
        let mut strides = crate::plan::dense_strides(tile.transposed().shape);
        strides.swap(2, 3);
        strides
    } else {
        // Room for the result, and behind it for the dense source.
        let room = (len * 4).next_multiple_of(64);
        reserve(buffer, room + len * size)?;
        let (dst, rest) = bytemuck::cast_slice_mut::<_, u8>(buffer).split_at_mut(room);
        words::gather_run(&mut rest[..len * size], tile, 0);
        f(isa, &mut dst[..len * 4], [&rest[..len * size], &[], &[]]);
        crate::plan::dense_strides(tile.shape)
    };
    Ok(Operand { data: &bytemuck::cast_slice(buffer)[..len * 4], first: 0, strides })
}

/// Converts rows whose elements are contiguous.
fn convert_rows(isa: Isa, tile: &Strided<'_>, f: TileFn, dst: &mut [u8]) {
    let cols = usize::try_from(tile.shape[3]).unwrap_or(1).max(1);
    for (row, dst) in dst.chunks_exact_mut(cols * 4).enumerate() {
        let first = words::index_of(tile, row * cols) * tile.size;
        f(isa, dst, [&tile.data[first..first + cols * tile.size], &[], &[]]);
    }
}

/// Whether the strides are those of a dense tile with its axes in another order.
fn is_permuted(tile: &Strided<'_>) -> bool {
    let mut axes: Vec<(isize, isize)> =
        tile.strides.iter().zip(tile.shape).filter(|(_, n)| *n > 1).map(|(s, n)| (*s, n as isize)).collect();
    axes.sort_unstable();
    let mut want = 1;
    axes.iter().all(|(stride, n)| {
        let fits = *stride == want;
        want *= n;
        fits
    })
}

fn splat(isa: Isa, size: usize, bits: u64, f: Option<TileFn>, buffer: &mut Buffer) -> Outcome<Operand<'_>> {
    let mut word = [0u64; 2];
    let (source, result) = word.split_at_mut(1);
    let source = &mut bytemuck::cast_slice_mut(source)[..size];
    words::fill(source, size, bits);
    let width = if f.is_some() { 4 } else { size };
    reserve(buffer, 8)?;
    let dst = bytes_mut(buffer, width);
    match f {
        Some(f) => {
            let result = &mut bytemuck::cast_slice_mut(result)[..4];
            f(isa, result, [source, &[], &[]]);
            dst.copy_from_slice(result);
        }
        None => dst.copy_from_slice(source),
    }
    Ok(Operand { data: bytes(buffer, width), first: 0, strides: [0; 4] })
}

/// A product of `i8` matrices that were converted to `f32`, summed in wrapping `i32`.
fn integer_product(
    (dst, row): (&mut [i32], usize),
    [m, n, k]: [usize; 3],
    add: bool,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    sums: &mut Buffer,
) -> Outcome<()> {
    if !add {
        dst.chunks_mut(row.max(1)).take(m).for_each(|d| d[..n].fill(0));
    }
    reserve(sums, m * n * 4)?;
    let sums: &mut [f32] = bytemuck::cast_slice_mut(bytes_mut(sums, m * n * 4));
    for from in (0..k).step_by(EXACT_K) {
        let part = EXACT_K.min(k - from);
        let at = |first: usize, stride: isize| first.wrapping_add(from.wrapping_mul(stride.cast_unsigned()));
        let (a, b) = (Matrix { first: at(a.first, a.col), ..a }, Matrix { first: at(b.first, b.row), ..b });
        f32::product((sums, n), [m, n, part], false, a, b);
        for (dst, sums) in dst.chunks_mut(row.max(1)).zip(sums.chunks_exact(n)) {
            for (d, s) in dst.iter_mut().zip(sums) {
                #[expect(clippy::cast_possible_truncation, reason = "an integer of at most 2^24")]
                let sum = *s as i32;
                *d = d.wrapping_add(sum);
            }
        }
    }
    Ok(())
}
