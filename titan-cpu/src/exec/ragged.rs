//! Properties of programs and tensors, views, segments, ragged outputs.

use super::{Machine, Outcome, trap};
use crate::plan::{FactStep, ScalarSlot, ViewSlot};
use crate::rep;
use crate::runtime::view::View;
use titan_core::ir::{Elem, Loc, grouped};

impl Machine<'_, '_> {
    /// Whether no offset is less than the one before it: then no two segments share a row.
    fn is_in_order(&mut self, offsets: ViewSlot) -> bool {
        let view = self.view(offsets);
        let Some(key) = view.constant() else { return false };
        if let Some((known, in_order)) = self.ordered
            && known == key
        {
            return in_order;
        }
        let at = |e: i32| {
            view.offset_inside([0, 0, 0, i64::from(e)])
                .map(|offset| rep::extend(Elem::I32, view.read_one(offset)).cast_signed())
        };
        let in_order = (1..view.extent(0)).all(|e| at(e - 1) <= at(e));
        self.ordered = Some((key, in_order));
        in_order
    }

    #[expect(clippy::cast_possible_wrap, reason = "a launch checks that grid extents are `i32`s")]
    pub(super) fn fact(&mut self, step: &FactStep, loc: Loc) -> Outcome<()> {
        match step {
            FactStep::ProgramId { to, axis } => self.set_int(*to, self.program[*axis] as i32),
            FactStep::NumPrograms { to, axis } => self.set_int(*to, self.grid[*axis] as i32),
            FactStep::Dim { to, view, axis } => self.set_int(*to, self.view(*view).extent(*axis)),
            FactStep::Present { to, view } => {
                let present = self.view(*view).is_given();
                self.set(*to, present.into());
            }
            FactStep::Unflatten { to, index, extents, group } => {
                self.unflatten(to, *index, extents);
                if let Some(rows) = group {
                    self.regroup(to, extents, *rows);
                }
            }
            FactStep::Index { to, from, axis, at } => {
                self.views[*to as usize] = self.view(*from).index(*axis, self.int(*at));
            }
            FactStep::Slice { to, from, axis, range: [lo, hi] } => {
                self.views[*to as usize] = self.view(*from).slice(*axis, self.int(*lo), self.int(*hi));
            }
            FactStep::Segment { to, from, offsets, at } => {
                let (view, e) = (self.view(*from), self.int(*at));
                let (lo, hi) = segment(&self.view(*offsets), e, view.extent(0), loc)?;
                let part = view.slice(0, lo, hi);
                let own = !view.is_writable() || self.is_in_order(*offsets);
                self.views[*to as usize] = if own { part } else { part.contended() };
            }
            FactStep::RaggedCount { to, view, offsets, tile } => {
                let mut count = 0i32;
                let cols = cdiv(self.view(*view).extent(1), tile[1]);
                self.segments(*view, *offsets, loc, |_, len| {
                    count = count.saturating_add(cdiv(len, tile[0]).saturating_mul(cols));
                    false
                })?;
                self.set_int(*to, count);
            }
            FactStep::RaggedTile { to, view, offsets, number, tile } => {
                let cols = cdiv(self.view(*view).extent(1), tile[1]);
                let number = self.int(*number);
                let (mut rest, mut found) = (number, None);
                self.segments(*view, *offsets, loc, |e, len| {
                    let tiles = cdiv(len, tile[0]).saturating_mul(cols);
                    let here = (0..tiles).contains(&rest);
                    if here {
                        found = Some([e, rest / cols, rest % cols]);
                    }
                    rest = rest.saturating_sub(tiles);
                    here
                })?;
                let Some(place) = found else { return trap(loc, format!("there is no tile {number} in the segments")) };
                to.iter().zip(place).for_each(|(to, value)| self.set_int(*to, value));
            }
        }
        Ok(())
    }

    fn unflatten(&mut self, to: &[ScalarSlot], index: ScalarSlot, extents: &[ScalarSlot]) {
        let mut rest = self.int(index);
        for (to, extent) in to.iter().zip(extents).skip(1).rev() {
            // Division as the language defines it: by zero it is zero, and the remainder is the dividend.
            let n = self.int(*extent);
            let (quotient, remainder) = if n == 0 { (0, rest) } else { (rest.wrapping_div(n), rest.wrapping_rem(n)) };
            self.set_int(*to, remainder);
            rest = quotient;
        }
        if let Some(first) = to.first() {
            self.set_int(*first, rest);
        }
    }

    /// Reorders the last two coordinates by groups of rows.
    fn regroup(&mut self, to: &[ScalarSlot], extents: &[ScalarSlot], rows: i32) {
        if let ([.., m, n], [.., height, width]) = (to, extents) {
            let [row, column] = grouped([self.int(*m), self.int(*n)], [self.int(*height), self.int(*width)], rows);
            self.set_int(*m, row);
            self.set_int(*n, column);
        }
    }

    /// Calls `f` with each segment's number and length, until it returns true.
    fn segments(&self, view: u32, offsets: u32, loc: Loc, mut f: impl FnMut(i32, i32) -> bool) -> Outcome<()> {
        let (view, offsets) = (self.view(view), self.view(offsets));
        for e in 0..offsets.extent(0).saturating_sub(1) {
            let (lo, hi) = segment(&offsets, e, view.extent(0), loc)?;
            if f(e, hi - lo) {
                break;
            }
        }
        Ok(())
    }
}

/// `off[e]` and `off[e + 1]`, if they are in order and inside.
fn segment(offsets: &View<'_>, e: i32, extent: i32, loc: Loc) -> Outcome<(i32, i32)> {
    let at = |e: i64| {
        let offset = offsets.offset_inside([0, 0, 0, e])?;
        #[expect(clippy::cast_possible_truncation, reason = "the low half is the `i32`")]
        Some(offsets.read_one(offset) as i32)
    };
    let (Some(lo), Some(hi)) = (at(i64::from(e)), at(i64::from(e) + 1)) else {
        return trap(loc, format!("segment {e} of {} offsets", offsets.extent(0)));
    };
    if 0 <= lo && lo <= hi && hi <= extent {
        return Ok((lo, hi));
    }
    trap(loc, format!("segment {e} is {lo} .. {hi}, which is not a range of an axis of {extent}"))
}

/// The quotient rounded up, for a divisor of at least 1.
fn cdiv(a: i32, b: i32) -> i32 {
    let b = b.max(1);
    a / b + i32::from(a % b > 0)
}
