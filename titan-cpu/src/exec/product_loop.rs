//! Loops that are one matrix product: see [`crate::plan::product`].

use super::Machine;
use super::matrix::{Operand, conversion, convert, multiply};
use super::pool::bytes_mut;
use super::tile::{Data, Tile};
use crate::ops::words::Strided;
use crate::plan::TileSlot;
use crate::plan::product::{Factor, ProductLoop};
use crate::rep;

/// Elements of k that are converted at a time, if they need it.
const CONVERT_K: usize = 512;

impl<'m> Machine<'_, 'm> {
    /// Does the iterations from `lo` on for which every tile is inside of tensors that the launch does not write, all at
    /// once. Gives the first iteration that is still to be done.
    pub(super) fn product_loop(&mut self, product: &ProductLoop, lo: i64, hi: i64) -> i64 {
        let steps = |factor: &Factor| {
            let extent = self.view(factor.view).extents()[2 + factor.k_axis];
            i64::from(extent / factor.shape[factor.k_axis].max(1))
        };
        let end = hi.min(steps(&product.a)).min(steps(&product.b));
        if lo < 0 || end <= lo || !self.lazy {
            return lo;
        }
        let (Some(a), Some(b)) = (self.panel(&product.a, lo, end), self.panel(&product.b, lo, end)) else { return lo };
        let b = if product.b.k_axis == 0 { b } else { b.transposed() };
        let a = if product.a.k_axis == 1 { a } else { a.transposed() };
        self.accumulate(product, &a, &b);
        end
    }

    /// The part of a tensor that the tiles of iterations `lo .. end` cover.
    fn panel(&self, factor: &Factor, lo: i64, end: i64) -> Option<Strided<'m>> {
        let (k, other) = (factor.k_axis, 1 - factor.k_axis);
        let mut start = [0i64; 4];
        let mut shape = [1i32; 4];
        let unit = i64::from(factor.shape[k]);
        (start[2 + k], shape[2 + k]) = (lo * unit, i32::try_from((end - lo) * unit).ok()?);
        start[2 + other] = i64::from(self.int(factor.at[other])) * i64::from(factor.shape[other]);
        shape[2 + other] = factor.shape[other];
        let view = self.view(factor.view);
        let (data, first) = view.frozen_tile(start, shape)?;
        let strides = view.strides().map(|s| isize::try_from(s).unwrap_or(0));
        Some(Strided { data, first, strides, shape, size: rep::size(view.elem()) })
    }

    fn accumulate(&mut self, product: &ProductLoop, a: &Strided<'m>, b: &Strided<'m>) {
        let mut add = self.own_accumulator(product.acc);
        let Data::Buffer(id) = self.tiles[product.acc as usize].data else { return };
        let info = self.plan.tiles[product.acc as usize];
        let extent = |n: i32| usize::try_from(n).unwrap_or(0);
        let ([m, n], depth) = ([extent(product.step[0]), extent(product.step[1])], extent(a.shape[3]));
        let mut out = self.work.pool.lend(id);
        let mut factors = std::mem::take(&mut self.work.factors);
        let [left, right, sums] = &mut factors;
        let dst = bytes_mut(&mut out, info.len * info.size);
        let elem = |factor: &Factor| self.view(factor.view).elem();
        let convert_a = conversion(elem(&product.a));
        let convert_b = conversion(elem(&product.b));
        let part = if convert_a.is_none() && convert_b.is_none() { depth } else { CONVERT_K };
        for from in (0..depth).step_by(part.max(1)) {
            let k = part.min(depth - from);
            let (a, b) = (a.columns(from, k), b.rows(from, k));
            let as_is = |s: &Strided<'m>| Operand { data: s.data, first: s.first, strides: s.strides };
            let left = convert_a.map_or_else(|| as_is(&a), |f| convert(self.isa, &a, f, left));
            let right = convert_b.map_or_else(|| as_is(&b), |f| convert(self.isa, &b, f, right));
            multiply(info.elem, dst, [m, n, k], add, [left, right], sums);
            add = true;
        }
        self.work.factors = factors;
        self.work.pool.give_back(id, out);
    }

    /// Makes the accumulator a buffer of its own. False if it is zero: then the buffer is to be overwritten.
    fn own_accumulator(&mut self, acc: TileSlot) -> bool {
        if matches!(self.tiles[acc as usize].data, Data::Splat(0)) {
            self.fresh(acc);
            return false;
        }
        self.make_dense(acc);
        let tile = self.tiles[acc as usize];
        let Data::Buffer(id) = tile.data else {
            // In a tensor: a copy is made of it.
            self.tiles[acc as usize] = Tile { dense: false, ..tile };
            self.make_dense(acc);
            return true;
        };
        if !self.work.pool.is_unique(id) || tile.first != 0 {
            self.tiles[acc as usize] = Tile { dense: false, ..tile };
            self.make_dense(acc);
        }
        true
    }
}
