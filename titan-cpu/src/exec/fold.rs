//! Reductions and scans.

use super::pool::{Buffer, bytes, bytes_mut, reserve};
use super::{Machine, Outcome};
use crate::ops::reduce::ReduceFn;
use crate::ops::scan::ArgReduceFn;
use crate::ops::words;
use crate::plan::{Combine, Slot, TileSlot};
use crate::rep;
use titan_core::ir::Elem;

impl Machine<'_, '_> {
    /// Calls `f` with the bytes of a result, which is a tile or one scalar of type `elem`.
    fn make_result(
        &mut self,
        to: Slot,
        elem: Elem,
        f: impl FnOnce(&mut Self, &mut [u8]) -> Outcome<()>,
    ) -> Outcome<()> {
        match to {
            Slot::Tile(tile) => self.make(tile, f)?,
            Slot::Scalar(scalar) => {
                let mut word = [0u64];
                let size = rep::size(elem);
                f(self, &mut bytemuck::cast_slice_mut(&mut word)[..size])?;
                let bits = words::element(&bytemuck::cast_slice(&word)[..size], size, 0);
                self.set(scalar, rep::extend(elem, bits));
                Ok(())
            }
            Slot::View(_) => Ok(()),
        }
    }

    pub(super) fn reduce(&mut self, to: Slot, from: TileSlot, axis: usize, f: ReduceFn) -> Outcome<()> {
        self.make_dense(from)?;
        let (extents, elem) = (self.extents(from, axis), self.plan.tiles[from as usize].elem);
        self.make_result(to, elem, |m, out| {
            f(m.isa, out, m.dense(from), extents);
            Ok(())
        })
    }

    pub(super) fn arg_reduce(
        &mut self,
        to: Slot,
        index: Slot,
        from: TileSlot,
        axis: usize,
        f: ArgReduceFn,
    ) -> Outcome<()> {
        self.make_dense(from)?;
        let (extents, elem) = (self.extents(from, axis), self.plan.tiles[from as usize].elem);
        self.make_result(to, elem, |m, values| {
            m.make_result(index, Elem::I32, |m, indices| {
                f(values, indices, m.dense(from), extents);
                Ok(())
            })
        })
    }

    /// One call of a combining function.
    fn combine(&mut self, f: &Combine, a: u64, b: u64) -> Outcome<u64> {
        self.set(f.args[0], a);
        self.set(f.args[1], b);
        self.block(f.block)?;
        Ok(self.scalar(f.result))
    }

    /// Copies a tile's elements to a buffer outside of the pool, because the combining function needs the machine.
    fn copy_out(&mut self, from: TileSlot) -> Outcome<Buffer> {
        self.make_dense(from)?;
        let mut copy = std::mem::take(&mut self.work.factors[2]);
        let data = self.dense(from);
        reserve(&mut copy, data.len())?;
        bytes_mut(&mut copy, data.len()).copy_from_slice(data);
        Ok(copy)
    }

    pub(super) fn reduce_with(&mut self, to: Slot, from: TileSlot, axis: usize, f: &Combine) -> Outcome<()> {
        let ([_, n, inner], info) = (self.extents(from, axis), self.plan.tiles[from as usize]);
        let src = self.copy_out(from)?;
        let data = bytes(&src, info.len * info.size);
        let init = self.scalar(f.init);
        let done = self.make_result(to, info.elem, |m, out| {
            for (i, d) in out.chunks_exact_mut(info.size).enumerate() {
                let first = i / inner * n * inner + i % inner;
                let bits = (0..n).try_fold(init, |acc, k| {
                    let x = words::element(data, info.size, first + k * inner);
                    m.combine(f, acc, rep::extend(info.elem, x))
                })?;
                words::fill(d, info.size, bits);
            }
            Ok(())
        });
        self.work.factors[2] = src;
        done
    }

    pub(super) fn scan_with(&mut self, to: TileSlot, from: TileSlot, axis: usize, f: &Combine) -> Outcome<()> {
        let ([outer, n, inner], info) = (self.extents(from, axis), self.plan.tiles[from as usize]);
        let src = self.copy_out(from)?;
        let data = bytes(&src, info.len * info.size);
        let init = self.scalar(f.init);
        let done = self.make(to, |m, out| {
            for i in 0..outer * inner {
                let first = i / inner * n * inner + i % inner;
                let mut acc = init;
                for at in (0..n).map(|k| first + k * inner) {
                    acc = m.combine(f, acc, rep::extend(info.elem, words::element(data, info.size, at)))?;
                    words::fill(&mut out[at * info.size..(at + 1) * info.size], info.size, acc);
                }
            }
            Ok(())
        });
        self.work.factors[2] = src;
        done?
    }
}
