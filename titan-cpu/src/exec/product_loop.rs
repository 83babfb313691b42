//! Loops that are one matrix product: see [`crate::plan::product`].
//!
//! Consecutive programs of the grid often differ only in the rows of `a`. Then the product is computed for several of them at
//! once, which makes the packing of the matrix product pay off, and kept until each takes its part. A kept product is identified by
//! the addresses and strides of its operands, which nothing in the launch writes, so a wrong guess about what the programs
//! will need costs only time.

use super::edge::Edge;
use super::matrix::{Operand, Sums, conversion, convert, multiply};
use super::narrow::{Side, few, narrow};
use super::pool::{Buffer, bytes, bytes_mut, reserve};
use super::tile::{Data, Tile};
use super::{Machine, Outcome};
use crate::ops::words::Strided;
use crate::plan::TileSlot;
use crate::plan::product::{Factor, Origin, ProductLoop};
use crate::rep;
use crate::runtime::view::View;

/// The number of elements along k that are converted at a time, if they need conversion.
const CONVERT_K: usize = 256;
/// The number of rows of a product for several programs.
const ROWS: usize = 512;

/// A product for several programs, and the operands by which it is identified.
#[derive(Debug, Default)]
pub(super) struct Kept {
    key: Option<Key>,
    /// The rows of all programs.
    sums: Buffer,
}

/// The operands of a kept product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    /// The address and strides of the first program's rows.
    a: (usize, [isize; 4]),
    b: (usize, [isize; 4]),
    /// The rows of all programs, columns, k.
    extents: [i32; 3],
    /// The number of rows of the tile of one program.
    tile: i32,
    programs: usize,
}

/// The part of a tensor that is a factor of a product, without its extent along k.
#[derive(Clone, Debug)]
pub(super) struct Strip<'m> {
    pub(super) view: View<'m>,
    /// The first element along the other axis, and the extent of the tile.
    pub(super) first: i64,
    pub(super) tile: i32,
    pub(super) k_axis: usize,
    /// Whether the tiles have zeros outside of the tensor.
    pub(super) zeros: bool,
    pub(super) is_transposed: bool,
}

/// A run of iterations that is computed at once.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The number of iterations.
    pub(super) count: i64,
    /// The range of elements along k.
    k: std::ops::Range<i64>,
}

impl Run {
    /// Of `most` iterations from element `from` along k, those whose tiles are inside along k, and one more if both factors
    /// end in it, because there zeros are multiplied with zeros.
    pub(super) fn of(strips: [&Strip<'_>; 2], unit: i32, from: i64, most: i64) -> Option<Self> {
        let unit = i64::from(unit.max(1));
        let [a, b] = strips.map(|strip| i64::from(strip.view.extents()[2 + strip.k_axis]));
        let whole = (a.min(b) - from).div_euclid(unit);
        let partial = a == b && (a - from) % unit != 0 && whole < most && strips.iter().all(|strip| strip.zeros);
        let end = from + whole.min(most) * unit;
        let run =
            if partial { Run { count: whole + 1, k: from..a } } else { Run { count: whole.min(most), k: from..end } };
        (from >= 0 && run.count > 0 && !run.k.is_empty()).then_some(run)
    }
}

/// The address of a panel's first element, and its strides.
fn place(panel: &Strided<'_>) -> (usize, [isize; 4]) {
    (panel.data.as_ptr().addr().wrapping_add(panel.first.wrapping_mul(panel.size)), panel.strides)
}

/// The part of a tensor that the tiles of a run cover, for this number of programs, each of which has some, as a factor of a product.
fn panel<'m>(strip: &Strip<'m>, run: &Run, programs: usize) -> Option<Strided<'m>> {
    let (k, other) = (strip.k_axis, 1 - strip.k_axis);
    let (tile, extent) = (i64::from(strip.tile), i64::from(strip.view.extents()[2 + other]));
    let programs = i64::try_from(programs).ok()?;
    let count = (extent - strip.first).min(tile * programs);
    let is_clipped = count < tile * programs;
    if strip.first < 0 || count <= tile * (programs - 1) || is_clipped && !strip.zeros {
        return None;
    }
    let mut start = [0i64; 4];
    let mut shape = [1i32; 4];
    (start[2 + k], shape[2 + k]) = (run.k.start, i32::try_from(run.k.end - run.k.start).ok()?);
    (start[2 + other], shape[2 + other]) = (strip.first, i32::try_from(count).ok()?);
    let (data, first) = strip.view.frozen_tile(start, shape)?;
    let strides = strip.view.strides().map(|s| isize::try_from(s).unwrap_or(0));
    let panel = Strided { data, first, strides, shape, size: rep::size(strip.view.elem()) };
    Some(if strip.is_transposed { panel.transposed() } else { panel })
}

impl<'m> Machine<'_, 'm> {
    /// Computes the iterations from `lo` on whose tiles are all inside of tensors that the launch does not write, or beyond
    /// their edge with zeros, at once. Returns the first iteration that remains.
    pub(super) fn product_loop(&mut self, product: &ProductLoop, lo: i64, hi: i64) -> Outcome<i64> {
        let (Some(a), Some(b)) = (self.strip(&product.a), self.strip(&product.b)) else { return Ok(lo) };
        let unit = i64::from(product.step[2].max(1));
        Ok(match Run::of([&a, &b], product.step[2], lo * unit, hi - lo) {
            Some(run) if self.product(product, [&a, &b], &run)? => lo + run.count,
            Some(_) | None => lo,
        })
    }

    /// The part of a tensor from which a factor's tiles are loaded.
    fn strip(&self, factor: &Factor) -> Option<Strip<'m>> {
        let Origin::Tensor { view, at, pad } = factor.origin else { return None };
        let (other, k_axis) = (1 - factor.k_axis, factor.k_axis);
        let (tile, is_transposed) = (factor.shape[other], factor.is_transposed);
        let (view, first) = (self.view(view), i64::from(self.int(at[other])) * i64::from(tile));
        Some(Strip { view, first, tile, k_axis, zeros: self.scalar(pad) == 0, is_transposed })
    }

    /// Adds a run of iterations to the accumulator; returns false if they cannot be computed at once.
    pub(super) fn product(&mut self, product: &ProductLoop, [a, b]: [&Strip<'m>; 2], run: &Run) -> Outcome<bool> {
        if !self.lazy {
            return Ok(false);
        }
        let (Some(left), Some(right)) = (panel(a, run, 1), panel(b, run, 1)) else { return Ok(false) };
        if !self.take_kept(product, &left, &right)? {
            match self.several(product, a, run) {
                Some((programs, rows)) => {
                    self.keep(product, &rows, &right, programs)?;
                    self.take_kept(product, &left, &right)?;
                }
                None => self.accumulate(product, &left, &right)?,
            }
        }
        Ok(true)
    }

    /// The number of programs for which the product should be computed at once, if for several, and their rows of `a`.
    fn several(&self, product: &ProductLoop, a: &Strip<'m>, run: &Run) -> Option<(usize, Strided<'m>)> {
        let zero = matches!(self.tiles[product.acc as usize].data, Data::Splat(0));
        if !product.by_program || !zero {
            return None;
        }
        let rows = usize::try_from(product.step[0]).ok()?.max(1);
        let in_row = usize::try_from(self.grid[0].saturating_sub(self.program[0])).ok()?;
        let most = self.following.min(in_row).min(ROWS / rows);
        (2..=most).rev().find_map(|programs| Some((programs, panel(a, run, programs)?)))
    }

    fn keep(&mut self, product: &ProductLoop, rows: &Strided<'m>, b: &Strided<'m>, programs: usize) -> Outcome<()> {
        let info = self.plan.tiles[product.acc as usize];
        let mut kept = std::mem::take(&mut self.work.kept);
        reserve(&mut kept.sums, programs * info.len * info.size)?;
        self.sum(product, bytes_mut(&mut kept.sums, programs * info.len * info.size), false, rows, b)?;
        let extents = [rows.shape[2], b.shape[3], rows.shape[3]];
        kept.key = Some(Key { a: place(rows), b: place(b), extents, tile: product.step[0], programs });
        self.work.kept = kept;
        Ok(())
    }

    /// Takes the accumulator from the kept product, if that contains it; returns whether it does.
    fn take_kept(&mut self, product: &ProductLoop, a: &Strided<'m>, b: &Strided<'m>) -> Outcome<bool> {
        let Some(key) = self.work.kept.key else { return Ok(false) };
        let zero = matches!(self.tiles[product.acc as usize].data, Data::Splat(0));
        let (address, strides) = place(a);
        let [rows, cols, depth] = key.extents;
        let same = zero
            && key.b == place(b)
            && key.a.1 == strides
            && [cols, depth, key.tile] == [b.shape[3], a.shape[3], product.step[0]];
        let tile = usize::try_from(key.tile).unwrap_or(0);
        let step = strides[2].wrapping_mul(tile.cast_signed()).wrapping_mul(a.size.cast_signed());
        let ours = |program: &usize| {
            let is_there = key.a.0.wrapping_add_signed(step.wrapping_mul(program.cast_signed())) == address;
            let inside = usize::try_from(rows).unwrap_or(0).saturating_sub(program * tile).min(tile);
            is_there && usize::try_from(a.shape[2]) == Ok(inside)
        };
        let Some(program) = (0..key.programs).find(ours).filter(|_| same) else { return Ok(false) };
        let info = self.plan.tiles[product.acc as usize];
        let size = info.len * info.size;
        self.make(product.acc, |machine, out| {
            let all = bytes(&machine.work.kept.sums, key.programs * size);
            out.copy_from_slice(&all[program * size..(program + 1) * size]);
        })?;
        Ok(true)
    }

    fn accumulate(&mut self, product: &ProductLoop, a: &Strided<'m>, b: &Strided<'m>) -> Outcome<()> {
        let add = self.own_accumulator(product.acc)?;
        let Data::Buffer(id) = self.tiles[product.acc as usize].data else { return Ok(()) };
        let info = self.plan.tiles[product.acc as usize];
        let mut out = self.work.pool.lend(id);
        self.sum(product, bytes_mut(&mut out, info.len * info.size), add, a, b)?;
        self.work.pool.give_back(id, out);
        Ok(())
    }

    /// `dst = a · b`, or `dst += a · b`, where the factors have zeros beyond their extents.
    fn sum(
        &mut self,
        product: &ProductLoop,
        dst: &mut [u8],
        mut add: bool,
        a: &Strided<'m>,
        b: &Strided<'m>,
    ) -> Outcome<()> {
        let extent = |n: i32| usize::try_from(n).unwrap_or(0);
        let [m, n, depth] = [extent(a.shape[2]), extent(b.shape[3]), extent(a.shape[3])];
        let mut factors = std::mem::take(&mut self.work.factors);
        let [left, right, sums] = &mut factors;
        let info = &self.plan.tiles[product.acc as usize];
        let row = extent(info.shape[3]);
        let edge = Edge { acc: info.elem, size: info.size, row, inside: [m, n] };
        let sides = self.sides(product, [a, b], [dst.len() / (row * info.size).max(1), row]);
        if let Some(few) = sides.as_ref().and_then(|[a, b]| few([a, b]))
            && let Some([a, b]) = &sides
        {
            let dst = bytemuck::cast_slice_mut(dst);
            narrow(self.isa, (dst, row), add, [a, b], few, &mut self.work.narrow)?;
            self.work.factors = factors;
            return Ok(());
        }
        if !add {
            edge.clear(dst);
        }
        let [convert_a, convert_b] = product.elems.map(conversion);
        let part = if convert_a.is_none() && convert_b.is_none() { depth } else { CONVERT_K };
        for from in (0..depth).step_by(part.max(1)) {
            let k = part.min(depth - from);
            let (a, b) = (a.columns(from, k), b.rows(from, k));
            let as_is = |s: &Strided<'m>| Operand { data: s.data, first: s.first, strides: s.strides };
            let left = convert_a.map_or_else(|| Ok(as_is(&a)), |f| convert(self.isa, &a, f, left))?;
            let right = convert_b.map_or_else(|| Ok(as_is(&b)), |f| convert(self.isa, &b, f, right))?;
            multiply(info.elem, (dst, row), [m, n, k], add, [left, right], sums)?;
            edge.add(dst, k, [left, right], sums)?;
            add = true;
        }
        self.work.factors = factors;
        Ok(())
    }

    /// The factors as rows along k, if they are multiplied in `f32`. `tile` has the rows and columns of the accumulator.
    fn sides<'a>(&self, product: &ProductLoop, [a, b]: [&Strided<'a>; 2], tile: [usize; 2]) -> Option<[Side<'a>; 2]> {
        let sums = Sums::of(self.plan.tiles[product.acc as usize].elem) == Sums::F32;
        let of = |rows: Strided<'a>, i: usize| Side { rows, elem: product.elems[i], tile: tile[i] };
        sums.then(|| [of(*a, 0), of(b.transposed(), 1)])
    }

    /// Gives the accumulator its own buffer; returns false if it is zero: then the buffer must be overwritten.
    fn own_accumulator(&mut self, acc: TileSlot) -> Outcome<bool> {
        if matches!(self.tiles[acc as usize].data, Data::Splat(0)) {
            self.fresh(acc)?;
            return Ok(false);
        }
        self.make_dense(acc)?;
        let tile = self.tiles[acc as usize];
        let own = match tile.data {
            Data::Buffer(id) => self.work.pool.is_unique(id) && tile.first == 0,
            Data::Memory(_) | Data::Splat(_) | Data::Nothing => false,
        };
        if !own {
            self.tiles[acc as usize] = Tile { dense: false, ..tile };
            self.make_dense(acc)?;
        }
        Ok(true)
    }

    /// Drops kept products, because memory may change between launches.
    pub(super) fn forget_products(&mut self) {
        self.work.kept.key = None;
    }
}
