//! Tile steps that create or rearrange tiles.

use super::tile::{Data, Tile};
use super::{Machine, Outcome};
use crate::ops::words;
use crate::plan::{Node, Restride, TileSlot, TileStep, dense_strides};

impl Machine<'_, '_> {
    pub(super) fn tile_step(&mut self, step: &TileStep, node: &Node) -> Outcome<()> {
        match step {
            TileStep::Iota { to } => self.make(*to, |_, out| {
                for (d, i) in bytemuck::cast_slice_mut::<u8, i32>(out).iter_mut().zip(0..) {
                    *d = i;
                }
            })?,
            TileStep::Splat { to, from } => {
                let data = Data::Splat(self.scalar(*from));
                self.set_tile(*to, Tile { data, first: 0, strides: [0; 4], dense: false });
            }
            TileStep::Extract { to, from, elem } => {
                let bits = match self.tiles[*from as usize].data {
                    Data::Splat(bits) => bits,
                    Data::Nothing | Data::Buffer(_) | Data::Memory(_) => {
                        words::element(self.dense(*from), crate::rep::size(*elem), 0)
                    }
                };
                self.set(*to, crate::rep::extend(*elem, bits));
            }
            TileStep::Restride { to, from, how } => self.restride(*to, *from, *how)?,
            TileStep::Interleave { to, from: [a, b] } => {
                self.make_dense(*a)?;
                self.make_dense(*b)?;
                let size = self.plan.tiles[*to as usize].size;
                self.make(*to, |m, out| words::interleave(out, size, m.dense(*a), m.dense(*b)))?;
            }
            TileStep::Split { to, from } => self.split(*to, *from)?,
            TileStep::Concat { to, from: [a, b], axis } => {
                self.make_dense(*a)?;
                self.make_dense(*b)?;
                let size = self.plan.tiles[*to as usize].size;
                // What is adjacent in each of the two: the elements from the axis on.
                let adjacent = [*a, *b].map(|tile| self.extents(tile, *axis)[1..].iter().product::<usize>() * size);
                self.make(*to, |m, out| {
                    let lines = m.dense(*a).chunks_exact(adjacent[0]).zip(m.dense(*b).chunks_exact(adjacent[1]));
                    for (line, (a, b)) in out.chunks_exact_mut(adjacent[0] + adjacent[1]).zip(lines) {
                        line[..a.len()].copy_from_slice(a);
                        line[a.len()..].copy_from_slice(b);
                    }
                })?;
            }
            TileStep::Reduce { to, from, axis, f } => self.reduce(*to, *from, *axis, *f)?,
            TileStep::ArgReduce { to, index, from, axis, f } => self.arg_reduce(*to, *index, *from, *axis, *f)?,
            TileStep::Scan { to, from, axis, f } => {
                self.make_dense(*from)?;
                let extents = self.extents(*from, *axis);
                self.make(*to, |m, out| f(m.isa, out, m.dense(*from), extents))?;
            }
            TileStep::ReduceWith { to, from, axis, f } => self.reduce_with(*to, *from, *axis, f)?,
            TileStep::ScanWith { to, from, axis, f } => self.scan_with(*to, *from, *axis, f)?,
            TileStep::Mma { to, a, b, c } => self.mma(*to, *a, *b, *c, node.kills.contains(c))?,
        }
        Ok(())
    }

    fn split(&mut self, [even, odd]: [TileSlot; 2], from: TileSlot) -> Outcome<()> {
        self.make_dense(from)?;
        let info = self.plan.tiles[even as usize];
        self.make(even, |m, even| {
            let bytes = info.len * info.size;
            m.make(odd, |m, odd| words::split(&mut even[..bytes], &mut odd[..bytes], info.size, m.dense(from)))
        })?
    }

    /// Gives a tile another shape. Only a reshape of a tile that is not dense copies.
    fn restride(&mut self, to: TileSlot, from: TileSlot, how: Restride) -> Outcome<()> {
        let reshaped = matches!(how, Restride::Reshape);
        let splat = matches!(self.tiles[from as usize].data, Data::Splat(_));
        if reshaped && !splat {
            self.make_dense(from)?;
        }
        let (old, new) = (self.plan.tiles[from as usize], self.plan.tiles[to as usize]);
        let mut tile = self.share(from);
        let strides = tile.strides;
        tile.strides = match how {
            Restride::Reshape if splat => strides,
            Restride::Reshape => dense_strides(new.shape),
            // The axes before the new one move up, into leading axes that had an extent of 1.
            Restride::Broadcast(axis) => {
                let mut broadcast = strides;
                broadcast[..axis].copy_from_slice(&strides[1..=axis]);
                broadcast[axis] = 0;
                broadcast
            }
            Restride::Permute(order) => order.map(|axis| strides[axis]),
            Restride::Cut { axis, from } => {
                let skipped = strides[axis].wrapping_mul(from.cast_signed());
                tile.first = tile.first.wrapping_add_signed(skipped);
                strides
            }
        };
        tile.dense = tile.dense
            && match how {
                Restride::Reshape => true,
                Restride::Broadcast(axis) => new.shape[axis] == 1,
                // The order of axes of extent 1 does not matter.
                Restride::Permute(order) => order.iter().filter(|a| old.shape[**a] != 1).is_sorted(),
                // The elements of a part are adjacent if the part is the whole, or a range of the outermost axis.
                Restride::Cut { axis, .. } => old.shape == new.shape || old.shape[..axis].iter().all(|n| *n == 1),
            };
        self.set_tile(to, tile);
        Ok(())
    }

    /// The extents `[outer, n, inner]` of a tile for an axis.
    pub(super) fn extents(&self, tile: TileSlot, axis: usize) -> [usize; 3] {
        let shape = self.plan.tiles[tile as usize].shape.map(|n| usize::try_from(n).unwrap_or(1));
        [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()]
    }
}
