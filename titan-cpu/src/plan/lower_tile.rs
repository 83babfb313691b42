//! Tile operations that are not elementwise.

use super::lower::{Frame, Lower, Result};
use super::{Combine, Restride, Slot, Step, TileStep};
use crate::ops::{reduce, scan};
use titan_core::ir::{Op, OpId, OpKind, Ty, Value};

impl Lower<'_> {
    pub(super) fn tile_op(&mut self, frame: &mut Frame, id: OpId, op: &Op) -> Result<()> {
        if self.join_reduction(frame, id, op)? || self.join_broadcast(frame, id, op)? {
            return Ok(());
        }
        if self.one_element(frame, op)? {
            return Ok(());
        }
        let mut tiles = Vec::new();
        for arg in &op.args {
            tiles.push(self.any(frame, *arg)?);
        }
        match (&op.kind, &tiles[..], &op.results[..]) {
            (OpKind::Iota(_), [], [result]) => {
                let to = self.new_tile(*result)?;
                self.push(frame, Step::Tile(TileStep::Iota { to }), &[], &[Slot::Tile(to)]);
            }
            (
                OpKind::Reshape(_) | OpKind::Broadcast { .. } | OpKind::Permute(_) | OpKind::Cut { .. },
                [Slot::Tile(from)],
                [result],
            ) => {
                let how = self.restride(op)?;
                let to = self.new_tile(*result)?;
                self.push(frame, Step::Tile(TileStep::Restride { to, from: *from, how }), &tiles, &[Slot::Tile(to)]);
            }
            (OpKind::Interleave, [Slot::Tile(a), Slot::Tile(b)], [result]) => {
                let to = self.new_tile(*result)?;
                self.push(frame, Step::Tile(TileStep::Interleave { to, from: [*a, *b] }), &tiles, &[Slot::Tile(to)]);
            }
            (OpKind::Concat(axis), [Slot::Tile(a), Slot::Tile(b)], [result]) => {
                let rank = self.kernel.ty(*result).tile_shape().map_or(0, |s| s.rank());
                let (to, axis) = (self.new_tile(*result)?, (4 - rank + usize::from(*axis)).min(3));
                self.push(frame, Step::Tile(TileStep::Concat { to, from: [*a, *b], axis }), &tiles, &[Slot::Tile(to)]);
            }
            (OpKind::Split, [Slot::Tile(from)], [even, odd]) => {
                let to = [self.new_tile(*even)?, self.new_tile(*odd)?];
                self.push(frame, Step::Tile(TileStep::Split { to, from: *from }), &tiles, &to.map(Slot::Tile));
            }
            (OpKind::Mma, [Slot::Tile(a), Slot::Tile(b), Slot::Tile(c)], [result]) => {
                let to = self.new_tile(*result)?;
                self.push(frame, Step::Tile(TileStep::Mma { to, a: *a, b: *b, c: *c }), &tiles, &[Slot::Tile(to)]);
            }
            _ => return self.reduction(frame, op, &tiles),
        }
        Ok(())
    }

    /// Tiles of one element are scalars: rearranging one has no effect, and repeating it is a splat.
    fn one_element(&mut self, frame: &mut Frame, op: &Op) -> Result<bool> {
        let ([arg], [result]) = (&op.args[..], &op.results[..]) else { return Ok(false) };
        let (from, to) = (self.kernel.ty(*arg), self.kernel.ty(*result));
        let from_one = matches!(from, Ty::Scalar(_)) || self.is_one(from);
        let is_view = matches!(
            op.kind,
            OpKind::Splat(_) | OpKind::Reshape(_) | OpKind::Permute(_) | OpKind::Broadcast { .. } | OpKind::Cut { .. }
        );
        if !is_view || !from_one {
            return Ok(false);
        }
        let scalar = self.one(frame, *arg)?;
        if self.is_one(to) {
            self.alias(*result, Slot::Scalar(scalar));
        } else {
            let tile = self.new_tile(*result)?;
            self.push(frame, Step::Tile(TileStep::Splat { to: tile, from: scalar }), &[], &[Slot::Tile(tile)]);
        }
        Ok(true)
    }

    pub(super) fn new_tile(&mut self, result: Value) -> Result<u32> {
        match self.define(result)? {
            Slot::Tile(tile) => Ok(tile),
            Slot::Scalar(_) | Slot::View(_) => self.wrong("a tile is wanted here"),
        }
    }

    fn restride(&self, op: &Op) -> Result<Restride> {
        let rank = |v: &Value| self.kernel.ty(*v).tile_shape().map_or(0, |s| s.rank());
        let (from, to) = (rank(&op.args[0]), rank(&op.results[0]));
        match (&op.kind, from) {
            (OpKind::Reshape(_), _) => Ok(Restride::Reshape),
            (OpKind::Broadcast { axis, .. }, _) if usize::from(*axis) < to => {
                Ok(Restride::Broadcast(4 - to + usize::from(*axis)))
            }
            (OpKind::Permute(perm), 1..=4) => {
                let mut order = [0, 1, 2, 3];
                for (i, p) in perm[..from].iter().enumerate() {
                    order[4 - from + i] = (4 - from + usize::from(*p)).min(3);
                }
                Ok(Restride::Permute(order))
            }
            (OpKind::Cut { axis, from: first, .. }, 1..=4) => {
                let axis = (4 - from + usize::from(*axis)).min(3);
                Ok(Restride::Cut { axis, from: usize::try_from(*first).unwrap_or(0) })
            }
            _ => self.wrong("an axis that does not exist"),
        }
    }

    fn reduction(&mut self, frame: &mut Frame, op: &Op, args: &[Slot]) -> Result<()> {
        let (Some(Slot::Tile(from)), Some(Ty::Tile(elem, shape))) =
            (args.first().copied(), op.args.first().map(|v| self.kernel.ty(*v)))
        else {
            return self.wrong("a reduction of a tile is wanted here");
        };
        let axis = |axis: u8| (4 - shape.rank() + usize::from(axis)).min(3);
        let unsupported = "a reduction that its element type does not have";
        match (&op.kind, args, &op.results[..]) {
            (OpKind::Reduce(r, a), [_], [result]) => {
                let Some(f) = reduce::reduce(*r, elem) else { return self.wrong(unsupported) };
                let to = self.define(*result)?;
                self.push(frame, Step::Tile(TileStep::Reduce { to, from, axis: axis(*a), f }), args, &[to]);
            }
            (OpKind::ArgReduce(r, a), [_], [value, index]) => {
                let Some(f) = scan::arg_reduce(*r, elem) else { return self.wrong(unsupported) };
                let (to, index) = (self.define(*value)?, self.define(*index)?);
                self.push(
                    frame,
                    Step::Tile(TileStep::ArgReduce { to, index, from, axis: axis(*a), f }),
                    args,
                    &[to, index],
                );
            }
            (OpKind::Scan(r, a), [_], [result]) => {
                let Some(f) = scan::scan(*r, elem) else { return self.wrong(unsupported) };
                let to = self.new_tile(*result)?;
                self.push(frame, Step::Tile(TileStep::Scan { to, from, axis: axis(*a), f }), args, &[Slot::Tile(to)]);
            }
            (OpKind::ReduceWith(a), [_, Slot::Scalar(init)], [result]) => {
                let f = self.combine(frame, op, *init)?;
                let to = self.define(*result)?;
                self.push(frame, Step::Tile(TileStep::ReduceWith { to, from, axis: axis(*a), f }), args, &[to]);
            }
            (OpKind::ScanWith(a), [_, Slot::Scalar(init)], [result]) => {
                let f = self.combine(frame, op, *init)?;
                let to = self.new_tile(*result)?;
                self.push(
                    frame,
                    Step::Tile(TileStep::ScanWith { to, from, axis: axis(*a), f }),
                    args,
                    &[Slot::Tile(to)],
                );
            }
            _ => return self.wrong("an operation with the wrong operands"),
        }
        Ok(())
    }

    /// The block of a reduction by closure.
    fn combine(&mut self, frame: &mut Frame, op: &Op, init: u32) -> Result<Combine> {
        self.close_all(frame)?;
        let ([region], loc) = (&op.regions[..], self.loc) else {
            return self.wrong("a reduction without its function");
        };
        let result = self.scalar_slot(0);
        self.regions.push(super::lower::Region::Other { results: vec![Slot::Scalar(result)] });
        let block = self.block(*region)?;
        self.regions.pop();
        self.loc = loc;
        let args = self.kernel.block(*region).args.clone();
        let [a, b] = args[..] else { return self.wrong("a reduction function of other than two arguments") };
        Ok(Combine { block, args: [self.scalar(a)?, self.scalar(b)?], result, init })
    }
}
