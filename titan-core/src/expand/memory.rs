//! Shared memory other than rings: buffers for tiles, 4-bit stores, and the scratch word of reports.

use super::{Expand, Made};
use crate::analysis::vector::{self, Packing};
use crate::ir::{Elem, LocalOp, Op, OpKind, RegionOp, TileShape, Ty, Unit, Value};
use crate::layout::Encoding;

impl Expand<'_> {
    /// Lowers a buffer to a region and the tile in it.
    pub(super) fn alloc(&mut self, op: &Op, elem: Elem, shape: TileShape) -> Made<()> {
        let old = op.results[0];
        let Some(encoding) = self.k.encoding(old).cloned() else {
            return Err(self.internal("shared memory without an encoding"));
        };
        let name = self.k.display_name(old);
        let tile = self.buffer((elem, shape), &encoding, &name)?;
        self.b.set_place(tile, self.k.value(old).place);
        self.made[old.index()] = Some(tile);
        Ok(())
    }

    fn buffer(&mut self, (elem, shape): (Elem, TileShape), encoding: &Encoding, name: &str) -> Made<Value> {
        let region = self.region(encoding.bytes(), 1, name)?;
        let tile = self.one(OpKind::Region(RegionOp::Tile { offset: 0, elem, shape }), &[region])?;
        self.b.put_shared(tile, encoding);
        Ok(tile)
    }

    /// Lowers a store. If the two 4-bit halves of a byte are held by different threads, the tile goes through shared memory, and one thread
    /// assembles each byte.
    pub(super) fn store(&mut self, unit: Unit, mut args: Vec<Value>) -> Made<()> {
        let Some((value, place)) = args.split_last() else { return Err(self.internal("a store of nothing")) };
        let (value, k) = (*value, self.b.kernel());
        let (Ty::Tile(elem, shape), Some(layout)) = (k.ty(value), k.layout(value).cloned()) else {
            return Err(self.internal("a store of something that is not a tile"));
        };
        let packing = vector::packing(k, place[0]);
        if elem.bits() < 8 && packing != Packing::Apart {
            let last = layout.rank() - 1;
            let kind = (elem.bits(), vector::is_aligned(k, place[0], &self.laid.aligned), packing);
            let extents = layout.extents().to_vec();
            let together = vector::tile_width(k, kind, unit, (extents[last], place[last + 1]));
            if together.min(layout.vector(last)) < 2 {
                // Bytes begin at even positions: at the first column of the tile, or at the column before it.
                let mut room = extents.clone();
                room[last] = (extents[last] + 1).next_multiple_of(2);
                let axes: Vec<usize> = (0..layout.rank()).collect();
                let buffer = self.buffer((elem, shape), &Encoding::padded(&room, 8, &axes, 16), "pairs")?;
                self.op(OpKind::Local(LocalOp::Store), &[value, buffer])?;
                args.pop();
                args.push(buffer);
            }
        }
        self.op(OpKind::Store(unit), &args).map(drop)
    }

    /// Lowers a print. Several warps share the position of its record through shared memory.
    pub(super) fn print(&mut self, op: &Op) -> Made<()> {
        let mut args = self.all_same(&op.args)?;
        if self.warps > 1 {
            args.push(self.region(16, 1, "print")?);
        }
        self.op(op.kind.clone(), &args).map(drop)
    }
}
