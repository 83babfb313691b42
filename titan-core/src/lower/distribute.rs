//! The tiles that a program computes: linear indices and ragged outputs. Every thread computes them redundantly.

use super::tile::LoweredValue;
use super::{Lower, LowerError, Reg, scalar};
use crate::ir::{BinOp, Elem, Op, Pred};
use crate::lane::{self, IntBin, Ty};

/// The step for one segment: a function of its index, its number of tiles and the state, which returns the next state.
type Step<'s> = dyn FnMut(&mut Lower<'_>, Reg, Reg, &[Reg]) -> Vec<Reg> + 's;

impl Lower<'_> {
    /// Lowers `unflatten`: remainder and quotient, from the last extent on.
    pub(super) fn unflatten(&mut self, op: &Op) {
        let regs = self.scalars(&op.args);
        let mut rest = regs[0];
        for axis in (1..op.results.len()).rev() {
            let n = regs[1 + axis];
            let target = self.target;
            let remainder = scalar::binary(&mut self.b, target, BinOp::Rem, Elem::I32, rest, n);
            rest = scalar::binary(&mut self.b, target, BinOp::Div, Elem::I32, rest, n);
            self.define(op.results[axis], LoweredValue::Scalar(remainder));
        }
        if let Some(first) = op.results.first() {
            self.define(*first, LoweredValue::Scalar(rest));
        }
    }

    /// The same for a box in which the last two coordinates are in grouped order ([`crate::ir::grouped`]).
    pub(super) fn unflatten_grouped(&mut self, op: &Op, rows: i32) {
        self.unflatten(op);
        let ([.., m, n], [.., height, width]) = (&op.results[..], &op.args[..]) else {
            return self.b.fail("a box in grouped order that has fewer than two axes".to_owned());
        };
        let (m, n, height, width) = (*m, *n, *height, *width);
        let [row, column, height, width] = [m, n, height, width].map(|v| self.scalar(v));
        let b = &mut self.b;
        let in_height = b.cmp_u(Pred::Lt, row, height);
        let in_width = b.cmp_u(Pred::Lt, column, width);
        let zero = b.i32(0);
        let (some_rows, some_columns) = (b.cmp_s(Pred::Gt, height, zero), b.cmp_s(Pred::Gt, width, zero));
        let (in_height, in_width) = (b.and(in_height, some_rows), b.and(in_width, some_columns));
        let inside = b.and(in_height, in_width);
        let group = b.i32(rows.max(1));
        let beyond = b.int(IntBin::RemU, row, group);
        let first = b.int(IntBin::Sub, row, beyond);
        let left = b.int(IntBin::Sub, height, first);
        let size = b.int(IntBin::MinS, left, group);
        // Outside of the box the result is not used, but the divisor must not be zero.
        let one = b.i32(1);
        let size = b.int(IntBin::MaxS, size, one);
        let above = b.mul(beyond, width);
        let local = b.add(above, column);
        let (across, down) = (b.int(IntBin::DivU, local, size), b.int(IntBin::RemU, local, size));
        let down = b.add(first, down);
        let row = b.select(inside, down, row);
        let column = b.select(inside, across, column);
        self.define(m, LoweredValue::Scalar(row));
        self.define(n, LoweredValue::Scalar(column));
    }

    /// Lowers the number of tiles of `rows × cols` of all segments.
    pub(super) fn ragged_count(&mut self, op: &Op, rows: i32, cols: i32) -> Result<(), LowerError> {
        let zero = self.b.i32(0);
        let out = self.over_segments(op, [rows, cols], &[zero], &mut |lower, _, tiles, state| {
            vec![lower.saturating_add(state[0], tiles)]
        })?;
        self.define(op.results[0], LoweredValue::Scalar(out[0]));
        Ok(())
    }

    /// Lowers the segment, row tile and column tile of a tile number.
    pub(super) fn ragged_tile(&mut self, op: &Op, rows: i32, cols: i32) -> Result<(), LowerError> {
        let number = self.scalar(op.args[2]);
        let none = self.b.i32(-1);
        let zero = self.b.i32(0);
        // The state is the number that remains, the segment if it was found, and the number within the segment.
        let out = self.over_segments(op, [rows, cols], &[number, none, zero], &mut |lower, e, tiles, state| {
            let b = &mut lower.b;
            let zero = b.i32(0);
            let open = b.cmp_s(Pred::Lt, state[1], zero);
            let low = b.cmp_s(Pred::Ge, state[0], zero);
            let high = b.cmp_s(Pred::Lt, state[0], tiles);
            let inside = b.and(low, high);
            let here = b.and(open, inside);
            let less = b.int(IntBin::Sub, state[0], tiles);
            let rest = b.select(low, less, state[0]);
            vec![rest, b.select(here, e, state[1]), b.select(here, state[0], state[2])]
        })?;
        let found = self.b.cmp_s(Pred::Ge, out[1], zero);
        self.trap_unless(found, "a tile number beyond the segments")?;
        let across = self.columns(op, cols)?;
        let target = self.target;
        let row = scalar::binary(&mut self.b, target, BinOp::Div, Elem::I32, out[2], across);
        let column = scalar::binary(&mut self.b, target, BinOp::Rem, Elem::I32, out[2], across);
        for (result, reg) in op.results.iter().zip([out[1], row, column]) {
            self.define(*result, LoweredValue::Scalar(reg));
        }
        Ok(())
    }

    /// The number of tiles along the columns.
    fn columns(&mut self, op: &Op, cols: i32) -> Result<Reg, LowerError> {
        let view = self.view(op.args[0])?;
        Ok(self.ceil_div(view.extents[1], cols))
    }

    /// The quotient of a non-negative number, rounded up.
    fn ceil_div(&mut self, a: Reg, by: i32) -> Reg {
        let by = self.b.i32(by.max(1));
        let quotient = self.b.int(IntBin::DivU, a, by);
        let remainder = self.b.int(IntBin::RemU, a, by);
        let zero = self.b.i32(0);
        let some = self.b.cmp_u(Pred::Ne, remainder, zero);
        let more = self.b.one(lane::OpKind::FromPred, &[some]);
        self.b.add(quotient, more)
    }

    fn saturating_add(&mut self, a: Reg, b: Reg) -> Reg {
        let a = self.b.widen(a);
        let b = self.b.widen(b);
        let sum = self.b.add(a, b);
        self.saturate(sum)
    }

    fn saturate(&mut self, wide: Reg) -> Reg {
        let most = self.b.i64(i64::from(i32::MAX));
        let low = self.b.int(IntBin::MinS, wide, most);
        self.b.one(lane::OpKind::Truncate(Ty::B32), &[low])
    }

    /// Iterates over the segments with a state. Traps unless all offsets are ascending and in bounds.
    fn over_segments(
        &mut self,
        op: &Op,
        [rows, cols]: [i32; 2],
        init: &[Reg],
        step: &mut Step<'_>,
    ) -> Result<Vec<Reg>, LowerError> {
        let view = self.view(op.args[0])?;
        let offsets = self.view(op.args[1])?;
        let across = self.columns(op, cols)?;
        let zero = self.b.i32(0);
        let one = self.b.i32(1);
        let last = self.b.add_const(offsets.extents[0], -1);
        let good = self.b.pred(true);
        let mut carried = init.to_vec();
        carried.push(good);
        self.touch_view(&offsets, false);
        let (open, e, state) = self.b.begin_for([zero, last, one], &carried);
        let next = self.b.add_const(e, 1);
        let lo = self.get_element(&offsets, &[e]);
        let hi = self.get_element(&offsets, &[next]);
        let a = self.b.cmp_s(Pred::Le, zero, lo);
        let b = self.b.cmp_s(Pred::Le, lo, hi);
        let c = self.b.cmp_s(Pred::Le, hi, view.extents[0]);
        let ab = self.b.and(a, b);
        let ok = self.b.and(ab, c);
        let len = self.b.int(IntBin::Sub, hi, lo);
        let down = self.ceil_div(len, rows);
        let wide = self.b.one(lane::OpKind::MulWide { signed: true }, &[down, across]);
        let tiles = self.saturate(wide);
        let good = state[init.len()];
        let mut after = step(self, e, tiles, &state[..init.len()]);
        after.push(self.b.and(good, ok));
        self.b.terminate(lane::OpKind::Continue(0), &after);
        let mut out = self.b.end(open);
        let good = out.pop().unwrap_or(zero);
        self.trap_unless(good, "the offsets of the segments are not ascending or not within the tensor")?;
        if self.warp_set.role.is_some() {
            // A role continues after the trap, with zero tiles.
            out = out.into_iter().map(|reg| self.b.select(good, reg, zero)).collect();
        }
        Ok(out)
    }
}
