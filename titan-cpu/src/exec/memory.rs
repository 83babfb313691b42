//! Loads, stores, gathers, scatters, atomics: from coordinates to runs of elements.

use super::tile::{Data, Tile};
use super::{Machine, Outcome, trap};
use crate::ops::{ScalarFn, words};
use crate::plan::{MemoryStep, Place, ScalarSlot, TileSlot, dense_strides};
use crate::rep;
use crate::runtime::view::View;
use crate::simd::Isa;
use titan_core::ir::{Loc, Unit};

/// The effect of a tile on the elements that it covers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    /// Stores them; other programs do not access them.
    Own,
    /// Stores them; other programs may store to them too.
    Shared,
    /// Replaces each element by a function of it.
    Update(ScalarFn, bool),
}

impl<'m> Machine<'_, 'm> {
    pub(super) fn memory_step(&mut self, step: &MemoryStep, loc: Loc) -> Outcome<()> {
        match step {
            MemoryStep::Load { to, from, pad } => self.load(*to, from, *pad)?,
            MemoryStep::Store { to, from } => self.store(to, *from, Write::Own)?,
            MemoryStep::AtomicTile { to, from, f, integer_add } => {
                self.store(to, *from, Write::Update(*f, *integer_add))?;
            }
            MemoryStep::Get { to, from, tensor } => {
                let (view, at) = self.element(from, ["get", tensor], loc)?;
                self.set(*to, rep::extend(view.elem(), view.read_one(at)));
            }
            MemoryStep::Set { to, from, tensor } => {
                let (view, at) = self.element(to, ["set", tensor], loc)?;
                view.write_one(at, self.scalar(*from));
            }
            MemoryStep::GatherRows { to, view, rows, col, pad } => self.gather_rows(*to, *view, rows, *col, *pad)?,
            MemoryStep::ScatterRows { view, rows, col, from } => self.scatter_rows(*view, rows, *col, *from)?,
            MemoryStep::Gather { to, view, at, pad } => self.gather(*to, *view, at, *pad)?,
            MemoryStep::Scatter { view, at, from } => self.scatter(*view, at, *from, Write::Shared)?,
            MemoryStep::Atomic { view, at, from, f, integer_add } => {
                self.scatter(*view, at, *from, Write::Update(*f, *integer_add))?;
            }
            MemoryStep::Fetch { to, view, at, from, f } => self.fetch_elements(*to, *view, at, *from, *f)?,
            MemoryStep::CompareExchange { to, view, at, current, new } => {
                self.compare_exchange(*to, *view, at, [*current, *new])?;
            }
        }
        Ok(())
    }

    /// The coordinates of the first element of a tile of this shape.
    pub(super) fn start(&self, place: &Place, shape: [i32; 4]) -> [i64; 4] {
        let mut start = [0; 4];
        let lead = 4 - place.at.len().min(4);
        for (axis, slot) in place.at.iter().enumerate().take(4) {
            let unit = if place.unit == Unit::Tile { i64::from(shape[lead + axis]) } else { 1 };
            start[lead + axis] = i64::from(self.int(*slot)) * unit;
        }
        start
    }

    fn load(&mut self, to: TileSlot, from: &Place, pad: ScalarSlot) -> Outcome<()> {
        let (view, start) = (&self.views[from.view as usize], self.start(from, self.plan.tiles[to as usize].shape));
        if let Some(tile) = self.lazy_tile(to, view, start) {
            self.set_tile(to, tile);
            return Ok(());
        }
        let (view, pad) = (*view, self.scalar(pad));
        self.load_dense(to, &view, start, pad)
    }

    /// The tile of a slot, left in its tensor, if it is completely inside and the launch does not write the tensor.
    pub(super) fn lazy_tile(&self, to: TileSlot, view: &View<'m>, start: [i64; 4]) -> Option<Tile<'m>> {
        let info = &self.plan.tiles[to as usize];
        let (data, first) = if self.lazy { view.frozen_tile(start, info.shape)? } else { return None };
        let strides = view.strides().map(|s| isize::try_from(s).unwrap_or(0));
        let dense = (0..4).all(|axis| info.shape[axis] == 1 || strides[axis] == info.strides[axis]);
        Some(Tile { data: Data::Memory(data), first, strides, dense })
    }

    pub(super) fn load_dense(&mut self, to: TileSlot, view: &View<'_>, start: [i64; 4], pad: u64) -> Outcome<()> {
        let info = &self.plan.tiles[to as usize];
        self.make(to, |m, out| load_tile(view, (start, info.shape, info.size), pad, out, m.isa))
    }

    fn store(&mut self, to: &Place, from: TileSlot, how: Write) -> Outcome<()> {
        self.make_dense(from)?;
        let info = self.plan.tiles[from as usize];
        let (view, start) = (self.view(to.view), self.start(to, info.shape));
        let (inside, strides) = (view.inside(start, info.shape), view.strides());
        let (data, rows) = (self.dense(from), dense_strides(info.shape));
        inside.rows(|[i, j, k]| {
            let at = [start[0] + i, start[1] + j, start[2] + k, start[3] + inside.lo[3]];
            let first = row_start([i, j, k, inside.lo[3]], rows);
            let n = count(inside.lo[3], inside.hi[3]);
            write(&view, view.offset(at), strides[3], &data[first * info.size..(first + n) * info.size], how);
        });
        Ok(())
    }

    /// The position of one element, which must exist.
    fn element(&self, place: &Place, [what, tensor]: [&str; 2], loc: Loc) -> Outcome<(View<'m>, i64)> {
        let mut at = [0i64; 5];
        let lead = 5 - place.at.len().min(5);
        for (to, slot) in at[lead..].iter_mut().zip(&place.at) {
            *to = i64::from(self.int(*slot));
        }
        let whole = self.view(place.view);
        let view = whole.outer(at[0]);
        match view.offset_inside([at[1], at[2], at[3], at[4]]) {
            Some(offset) => Ok((view, offset)),
            None => {
                let extents: Vec<i32> = (0u8..5).take(whole.rank()).map(|axis| whole.extent(axis)).collect();
                trap(loc, format!("`{what}` at {:?} is outside {tensor}, whose extents are {extents:?}", &at[lead..]))
            }
        }
    }
}

/// Fills a dense tile from a tensor, with padding outside of it.
fn load_tile(view: &View<'_>, (start, shape, size): ([i64; 4], [i32; 4], usize), pad: u64, out: &mut [u8], isa: Isa) {
    let inside = view.inside(start, shape);
    if !inside.is_all(shape) {
        words::fill(out, size, pad);
    }
    let rows = dense_strides(shape);
    let stride = view.strides()[3];
    inside.rows(|[i, j, k]| {
        let at = [start[0] + i, start[1] + j, start[2] + k, start[3] + inside.lo[3]];
        let first = row_start([i, j, k, inside.lo[3]], rows);
        let n = count(inside.lo[3], inside.hi[3]);
        view.read_run(view.offset(at), stride, &mut out[first * size..(first + n) * size], isa);
    });
}

/// Writes a run of elements.
pub(super) fn write(view: &View<'_>, first: i64, stride: i64, data: &[u8], how: Write) {
    match how {
        Write::Own => view.write_run(first, stride, data),
        Write::Shared => view.write_shared(first, stride, data),
        Write::Update(f, integer_add) => view.update_shared(first, stride, data, f, integer_add),
    }
}

/// The index of a tile's element in the dense tile.
pub(super) fn row_start(at: [i64; 4], strides: [isize; 4]) -> usize {
    let index = at.iter().zip(strides).fold(0i64, |sum, (i, s)| sum + i * i64::try_from(s).unwrap_or(0));
    usize::try_from(index).unwrap_or(0)
}

pub(super) fn count(lo: i64, hi: i64) -> usize {
    usize::try_from(hi - lo).unwrap_or(0)
}
