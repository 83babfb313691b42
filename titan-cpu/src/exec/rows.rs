//! Gathers and scatters, of rows and of single elements.

use super::memory::{Write, count, write};
use super::{Machine, Outcome};
use crate::ops::{ScalarFn, words};
use crate::plan::{ScalarSlot, Slot, TileInfo, TileSlot, ViewSlot};
use crate::runtime::view::View;
use crate::simd::Isa;

/// The coordinates of the start of a row on four axes, and the view in which they are valid.
fn row_start<'v>(view: &View<'v>, row: [i64; 4], col: i64) -> (View<'v>, [i64; 4]) {
    (view.outer(row[0]), [row[1], row[2], row[3], col])
}

/// Fills a dense tile with rows of a tensor from a column on, with padding outside of it.
pub(super) fn fill_rows(
    view: &View<'_>,
    info: &TileInfo,
    (col, pad): (i64, u64),
    out: &mut [u8],
    isa: Isa,
    row_at: impl Fn(usize) -> [i64; 4],
) {
    let width = usize::try_from(info.shape[3]).unwrap_or(1);
    for (i, row) in out.chunks_exact_mut(width * info.size).enumerate() {
        let (view, mut at) = row_start(view, row_at(i), col);
        let inside = view.inside(at, [1, 1, 1, info.shape[3]]);
        if !inside.is_all([1, 1, 1, info.shape[3]]) {
            words::fill(row, info.size, pad);
        }
        if !inside.is_empty() {
            at[3] += inside.lo[3];
            let (lo, hi) = (count(0, inside.lo[3]) * info.size, count(0, inside.hi[3]) * info.size);
            view.read_run(view.offset(at), view.strides()[3], &mut row[lo..hi], isa);
        }
    }
}

impl Machine<'_, '_> {
    /// The coordinates of row `i` on the axes before the column.
    pub(super) fn row(&self, rows: &[Slot], i: usize) -> [i64; 4] {
        let mut at = [0; 4];
        let lead = 4usize.saturating_sub(rows.len());
        for (axis, index) in rows.iter().enumerate().take(4) {
            at[lead + axis] = match index {
                Slot::Scalar(scalar) => i64::from(self.int(*scalar)),
                Slot::Tile(tile) => self.lane(*tile, i),
                Slot::View(_) => -1,
            };
        }
        at
    }

    /// Element `i` of a dense `i32` tile.
    fn lane(&self, tile: TileSlot, i: usize) -> i64 {
        bytemuck::cast_slice::<u8, i32>(self.dense(tile)).get(i).copied().unwrap_or(-1).into()
    }

    pub(super) fn dense_rows(&mut self, rows: &[Slot]) -> Outcome<()> {
        for row in rows {
            if let Slot::Tile(tile) = row {
                self.make_dense(*tile)?;
            }
        }
        Ok(())
    }

    pub(super) fn gather_rows(
        &mut self,
        to: TileSlot,
        view: ViewSlot,
        rows: &[Slot],
        col: ScalarSlot,
        pad: ScalarSlot,
    ) -> Outcome<()> {
        self.dense_rows(rows)?;
        let (info, view) = (self.plan.tiles[to as usize], self.view(view));
        let (col, pad) = (i64::from(self.int(col)), self.scalar(pad));
        self.make(to, |m, out| fill_rows(&view, &info, (col, pad), out, m.isa, |i| m.row(rows, i)))
    }

    pub(super) fn scatter_rows(
        &mut self,
        view: ViewSlot,
        rows: &[Slot],
        col: ScalarSlot,
        from: TileSlot,
    ) -> Outcome<()> {
        self.dense_rows(rows)?;
        self.make_dense(from)?;
        let (info, view) = (self.plan.tiles[from as usize], self.view(view));
        let col = i64::from(self.int(col));
        let width = usize::try_from(info.shape[3]).unwrap_or(1);
        for (i, row) in self.dense(from).chunks_exact(width * info.size).enumerate() {
            let (view, mut at) = row_start(&view, self.row(rows, i), col);
            let inside = view.inside(at, [1, 1, 1, info.shape[3]]);
            if !inside.is_empty() {
                at[3] += inside.lo[3];
                let (lo, hi) = (count(0, inside.lo[3]) * info.size, count(0, inside.hi[3]) * info.size);
                write(&view, view.offset(at), view.strides()[3], &row[lo..hi], Write::Shared);
            }
        }
        Ok(())
    }

    /// The element selected by the indices of lane `i`, if it exists.
    fn lane_element(&self, view: &View<'_>, at: &[TileSlot], i: usize) -> Option<i64> {
        let mut all = [0; 5];
        let lead = 5 - at.len().min(5);
        for (to, tile) in all[lead..].iter_mut().zip(at) {
            *to = self.lane(*tile, i);
        }
        let [outer, inner @ ..] = all;
        view.outer(outer).offset_inside(inner)
    }

    pub(super) fn gather(&mut self, to: TileSlot, view: ViewSlot, at: &[TileSlot], pad: ScalarSlot) -> Outcome<()> {
        at.iter().try_for_each(|tile| self.make_dense(*tile))?;
        let (info, view, pad) = (self.plan.tiles[to as usize], self.view(view), self.scalar(pad));
        self.make(to, |m, out| {
            for (i, d) in out.chunks_exact_mut(info.size).enumerate() {
                match m.lane_element(&view, at, i) {
                    Some(offset) => view.read_run(offset, 1, d, m.isa),
                    None => words::fill(d, info.size, pad),
                }
            }
        })
    }

    pub(super) fn scatter(&mut self, view: ViewSlot, at: &[TileSlot], from: TileSlot, how: Write) -> Outcome<()> {
        at.iter().try_for_each(|tile| self.make_dense(*tile))?;
        self.make_dense(from)?;
        let (info, view) = (self.plan.tiles[from as usize], self.view(view));
        for (i, d) in self.dense(from).chunks_exact(info.size).enumerate() {
            if let Some(offset) = self.lane_element(&view, at, i) {
                write(&view, offset, 1, d, how);
            }
        }
        Ok(())
    }

    /// Updates one element for each lane, in the order of the lanes, and returns what they were; zero where there is no element.
    pub(super) fn fetch_elements(
        &mut self,
        to: TileSlot,
        view: ViewSlot,
        at: &[TileSlot],
        from: TileSlot,
        f: ScalarFn,
    ) -> Outcome<()> {
        at.iter().try_for_each(|tile| self.make_dense(*tile))?;
        self.make_dense(from)?;
        let (info, view) = (self.plan.tiles[from as usize], self.view(view));
        self.make(to, |m, out| {
            let lanes = out.chunks_exact_mut(info.size).zip(m.dense(from).chunks_exact(info.size));
            for (i, (old, operand)) in lanes.enumerate() {
                match m.lane_element(&view, at, i) {
                    Some(offset) => view.fetch_shared(offset, operand, f, old),
                    None => old.fill(0),
                }
            }
        })
    }

    /// Exchanges one element for each lane that has the expected bits. The results are what the elements were, and which have been exchanged.
    pub(super) fn compare_exchange(
        &mut self,
        [to, done]: [TileSlot; 2],
        view: ViewSlot,
        at: &[TileSlot],
        [current, new]: [TileSlot; 2],
    ) -> Outcome<()> {
        at.iter().chain([&current, &new]).try_for_each(|tile| self.make_dense(*tile))?;
        let (info, view) = (self.plan.tiles[new as usize], self.view(view));
        let exchanged = self.make(to, |m, out| {
            let operands = m.dense(current).chunks_exact(info.size).zip(m.dense(new).chunks_exact(info.size));
            let mut exchanged = Vec::with_capacity(info.len);
            for (i, (old, (current, new))) in out.chunks_exact_mut(info.size).zip(operands).enumerate() {
                if let Some(offset) = m.lane_element(&view, at, i) {
                    view.compare_exchange_shared(offset, [current, new], old);
                    exchanged.push(old == current);
                } else {
                    old.fill(0);
                    exchanged.push(false);
                }
            }
            exchanged
        })?;
        self.make(done, |_, out| {
            for (to, exchanged) in out.iter_mut().zip(exchanged) {
                *to = exchanged.into();
            }
        })
    }
}
