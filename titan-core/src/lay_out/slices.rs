//! Stores of accumulators of warpgroups in slices of columns, through shared memory, which takes less of it than the whole tile would.
//!
//! Where the tensor has a map, bulk copies store the slices:
//!
//! ```text
//! %x0 = ttg.local.slice<1, 64> %x, %0          a slice of 128 bytes per row
//! ttg.local.store %x0, %buffer                  (between the slices: the buffer has been read, for all threads)
//! ttg.fence.proxy ..                            generic stores before the bulk copy
//! %to = ttg.source_tile %c[%m, %n0]
//! ttg.nv.cp_async_bulk_tensor.store %to, %buffer
//! ```
//!
//! Two buffers alternate, so that a slice is written while the previous one is copied. At the end, all copies are waited for, since a later
//! store may write the same tile.
//!
//! The tensor may be a part of a parameter, such as the rows of a group: the copy stops at the part's end ([`crate::analysis::boxes`]).
//!
//! A role that computes one tile after the other, each in its own part of the output, does not wait there: the copies of a tile are in
//! flight while the next one is computed. Their buffers are waited for before the first slice of the next tile, and behind the last tile,
//! since they are gone with the program:
//!
//! ```text
//! for %i = 0 to %n step 1 distributed {
//!     ..                                        MMAs, while the slices of the previous tile are copied
//!     ttg.local.settle {read = true}            all slices of the previous tile have been read
//!     ..                                        the slices, with waits as above
//! }
//! ttg.local.settle {read = true}
//! ```
//!
//! Several stores of a tile use the same buffers, if their slices have the same size, and one wait before the first of them serves all.
//!
//! The buffers then keep their bytes while the MMAs read rings, which no role shares with them anyway: other roles access the rings. If the
//! role has other regions, which could share bytes with the buffers, and the program does not fit otherwise, the plan says to wait
//! (`Plan::stores_waited`).
//!
//! Where nothing is known about the tensor's rows, threads store the slices: each thread of a warp one element of a row, so that a warp
//! writes adjacent elements although no two of them can be written at once.
//!
//! ```text
//! %x0 = ttg.local.slice<1, 64> %x, %0          a slice of 128 bytes per row
//! ttg.local.store %x0, %buffer
//! %y0 = ttg.local.load %buffer                  (between the two: all threads have written)
//! store_tile %c[%m, %n0], %y0
//! ```
//!
//! Deliberately absent: such overlap in kernels without roles, where the buffers would take additional shared memory, and of stores in
//! different branches, no one of which is the first; tiles at arbitrary coordinates; views that fix an axis; tensors that the kernel also
//! accesses in other ways, which would need fences for device memory; barriers between the threads, which are inserted later.

use super::memory::is_scattered;
use super::{Laid, LayOut};
use crate::analysis::boxes;
use crate::analysis::number::root;
use crate::analysis::turns::{Turns, tile_loop};
use crate::collections::SortedSet;
use crate::ir::{
    BinOp, Block, Def, Elem, FenceSpace, LocalOp, NvOp, Op, OpId, OpKind, ParamKind, Proxy, Scope, TtgOp, Ty, Unit,
    Value,
};
use crate::layout::{Encoding, Layout};
use crate::plan::Method;

/// Bytes of a row of a slice: the maximum width of a swizzle.
const ROW: u32 = 128;

/// The maximum extent of a box.
const MOST: u32 = 256;

/// A tile that is stored in slices.
struct Sliced {
    /// The tile, in its own layout.
    value: Value,
    tensor: Value,
    row: Value,
    /// The column of the first slice, in units of slices.
    first: Value,
    elem: Elem,
    slice: [u32; 2],
    encoding: Encoding,
    /// The number of slices.
    number: u32,
}

/// The buffers that alternate for slices of one size.
struct Buffers {
    elem: Elem,
    slice: [u32; 2],
    /// One or two.
    all: Vec<Value>,
    /// The number of slices written to them so far.
    written: u32,
}

/// The bulk stores of a tile that may be in flight while its role computes the next tile.
pub(super) struct OverTiles {
    /// The loop over tiles.
    looped: OpId,
    buffers: Vec<Buffers>,
}

impl LayOut<'_> {
    /// Stores an accumulator in slices. Returns false, and does nothing, if that is impossible or gains nothing.
    pub(super) fn store_in_slices(&mut self, op: &Op) -> Laid<bool> {
        if let Some(columns) = self.slices_to_copy(op) {
            let tiles = self.loop_over_tiles();
            let sliced = self.sliced(op, columns)?;
            return self.copy_slices(&sliced, tiles).map(|()| true);
        }
        if let Some(columns) = self.slices_for_threads(op) {
            let sliced = self.sliced(op, columns)?;
            return self.store_slices(&sliced).map(|()| true);
        }
        Ok(false)
    }

    /// The operands of a store in slices of so many columns.
    fn sliced(&mut self, op: &Op, columns: u32) -> Laid<Sliced> {
        let [tensor, row, column, old] = op.args[..] else { return Err(self.internal("a store of no matrix")) };
        let (layout, value) = self.own(old)?;
        let (extents, elem) = (layout.extents().to_vec(), self.elem(old));
        let (tensor, row, column) = (self.same(tensor)?, self.same(row)?, self.same(column)?);
        let (number, slice) = (extents[1] / columns, [extents[0], columns]);
        let encoding = Encoding::swizzled(&slice, elem.bits(), &[0, 1]);
        let by = self.index(number);
        let first = self.one(OpKind::Binary(BinOp::Mul), &[column, by])?;
        Ok(Sliced { value, tensor, row, first, elem, slice, encoding, number })
    }

    /// Takes the buffers for a tile from those that are in use, and adds what is missing.
    fn buffers(&mut self, sliced: &Sliced, used: &mut Vec<Buffers>) -> Laid<Buffers> {
        let Sliced { elem, slice, ref encoding, .. } = *sliced;
        let known = used.iter().position(|b| (b.elem, b.slice) == (elem, slice));
        let new = Buffers { elem, slice, all: Vec::new(), written: 0 };
        let mut buffers = known.map_or(new, |at| used.swap_remove(at));
        while buffers.all.len() < 2.min(buffers.written + sliced.number) as usize {
            buffers.all.push(self.buffer(elem, &slice, encoding, "slice")?);
        }
        Ok(buffers)
    }

    /// Writes a slice to the next buffer; gives the buffer, and the column of the slice in units of slices.
    fn write_slice(&mut self, sliced: &Sliced, i: u32, buffers: &mut Buffers) -> Laid<(Value, Value)> {
        let columns = sliced.slice[1];
        let buffer = buffers.all[buffers.written as usize % buffers.all.len()];
        buffers.written += 1;
        let at = self.index(i * columns);
        let part = self.part_at(sliced.value, 1, columns, at)?;
        self.write(part, buffer)?;
        let step = self.index(i);
        Ok((buffer, self.one(OpKind::Binary(BinOp::Add), &[sliced.first, step])?))
    }

    /// Threads store the slices, each of a warp one element of a row.
    fn store_slices(&mut self, sliced: &Sliced) -> Laid<()> {
        let layout = self.singly(&sliced.slice);
        let mut buffers = self.buffers(sliced, &mut Vec::new())?;
        for i in 0..sliced.number {
            let (buffer, place) = self.write_slice(sliced, i, &mut buffers)?;
            let part = self.read(buffer, &layout)?;
            self.op(OpKind::Store(Unit::Tile), &[sliced.tensor, sliced.row, place, part])?;
        }
        Ok(())
    }

    /// Bulk copies store the slices. They are waited for here, unless they are those of a loop over tiles.
    fn copy_slices(&mut self, sliced: &Sliced, tiles: Option<OpId>) -> Laid<()> {
        let (shape, pad) = (self.shape(&sliced.slice)?, self.zero(sliced.elem));
        let by = self.copied_by(&sliced.encoding);
        let mut used = match self.over_tiles.take() {
            Some(over) if Some(over.looped) == tiles => over.buffers,
            Some(_) | None => Vec::new(),
        };
        if tiles.is_some() && used.is_empty() {
            // The stores of the previous tile must have read the buffers.
            self.settle_stores(&[], true)?;
        }
        let mut buffers = self.buffers(sliced, &mut used)?;
        for i in 0..sliced.number {
            // The store of the slice before the previous one must have read this buffer; only the previous store, of another buffer, may
            // still be reading.
            if buffers.written >= 2 {
                let next = buffers.all[buffers.written as usize % buffers.all.len()];
                self.settle_stores(&[next], true)?;
            }
            let (buffer, place) = self.write_slice(sliced, i, &mut buffers)?;
            let fence =
                TtgOp::Fence { from: Proxy::Generic, to: Proxy::Async, scope: Scope::Cta, space: FenceSpace::Shared };
            self.op(OpKind::Ttg(fence), &[])?;
            let source = OpKind::Ttg(TtgOp::Source(Unit::Tile, shape));
            let to = self.one(source, &[sliced.tensor, sliced.row, place, pad])?;
            self.b.put(to, &by);
            self.op(OpKind::Nv(NvOp::BulkStore { tensor: true, bytes: sliced.encoding.bytes() }), &[to, buffer])?;
        }
        used.push(buffers);
        self.over_tiles = tiles.map(|looped| OverTiles { looped, buffers: used });
        if tiles.is_none() { self.settle_stores(&[], false) } else { Ok(()) }
    }

    /// The loop over tiles in which a role stores tiles, if it may compute the next tile while the stores are in flight: for each tile it
    /// executes all of its bulk stores or none, and each of them stores another part of its tensor.
    fn loop_over_tiles(&self) -> Option<OpId> {
        if self.plan.stores_waited {
            return None;
        }
        let id = self.at?;
        let role = self.role_of(id).filter(|_| !self.k.roles.is_empty())?;
        let looped = tile_loop(self.k, role).ok()?.looped;
        let mut inside = self.tree.around(id).take_while(|around| *around != looped);
        let once = self.tree.around(id).any(|around| around == looped)
            && inside.all(|around| self.k.op(around).kind == OpKind::If);
        let (mut together, turns) = (true, Turns::new(self.k));
        self.k.walk_block(role, &mut |store, op| {
            if matches!(op.kind, OpKind::Store(_)) && self.slices_to_copy(op).is_some() {
                let param = op.args.first().and_then(|tensor| root(self.k, *tensor));
                let beside = self.tree.block_of(store) == self.tree.block_of(id);
                together &= beside && param.is_some_and(|param| turns.divides(param));
            }
        });
        (once && together).then_some(looped)
    }

    /// Waits for bulk stores behind the loop in whose iterations they are not all waited for.
    pub(super) fn wait_behind(&mut self, looped: Option<OpId>) -> Laid<()> {
        let ended = self.over_tiles.take_if(|over| Some(over.looped) == looped);
        if ended.is_none() {
            return Ok(());
        }
        self.settle_stores(&[], true)
    }

    /// Waits for the bulk stores from some buffers, or for all if there are none.
    fn settle_stores(&mut self, buffers: &[Value], read: bool) -> Laid<()> {
        self.op(OpKind::Local(LocalOp::Settle { read }), buffers).map(drop)
    }

    /// The region of the role that contains an operation.
    fn role_of(&self, id: OpId) -> Option<Block> {
        let roles = |id: &OpId| self.k.op(*id).kind == OpKind::Ttg(TtgOp::Roles);
        let inside = std::iter::once(id).chain(self.tree.around(id)).take_while(|id| !roles(id)).last()?;
        self.tree.block_of(inside)
    }

    /// The parameter that a tensor is, or is a part of, and all accesses to the parameter; `None` if it is another view of it, or the view of
    /// a tensor without a map.
    fn accesses(&self, tensor: Value) -> Option<(usize, Vec<OpId>)> {
        let view = self.k.def_op(tensor).filter(|view| boxes::cut(view).is_some());
        let whole = view.map_or(tensor, |view| view.args[0]);
        let (Def::Param(param), Ok(_)) = (self.k.value(whole).def, boxes::of_view(self.k, tensor)) else { return None };
        let (mut all, mut tensors) = (Vec::new(), vec![whole]);
        while let Some(of) = tensors.pop() {
            for id in self.tree.users(of) {
                let op = self.k.op(*id);
                if op.args.first() == Some(&of) && boxes::cut(op).is_some() {
                    tensors.extend(&op.results);
                } else if !matches!(op.kind, OpKind::Dim(_) | OpKind::RaggedCount { .. } | OpKind::RaggedTile { .. })
                    || op.args.get(1) == Some(&of)
                {
                    // What names another view of the tensor counts as an access, so that such tensors are stored to by threads.
                    all.push(*id);
                }
            }
        }
        Some((param, all))
    }

    /// The number of columns of a slice, if bulk copies can store the slices: every warp must hold elements in each slice, and the role must
    /// not access the tensor otherwise.
    fn slices_to_copy(&self, op: &Op) -> Option<u32> {
        let [tensor, _, _, old] = op.args[..] else { return None };
        let layout = self.plan.layout(old)?;
        // On machines with MMAs of warpgroups, a kernel whose MMAs are all of warps is compiled for older machines too, so that it needs no
        // code of this form.
        let of_warps =
            self.plan.target.group_atoms.is_empty() && self.made_by(layout, |m| matches!(m, Method::Atom(_)));
        if self.plan.target.box_copies().is_none() || !(of_warps || self.is_of_groups(layout)) {
            return None;
        }
        let (param, accesses) = self.accesses(tensor)?;
        let ParamKind::Tensor { elem, optional: false, .. } = self.k.sig.params.get(param)?.kind else { return None };
        let aligned = self.plan.aligned && *self.plan.vectored.get(param)?;
        // Several roles that store to a tensor store different elements.
        let regions: SortedSet<Option<Block>> = accesses.iter().map(|id| self.role_of(*id)).collect();
        let alone = accesses.iter().all(|id| matches!(self.k.op(*id).kind, OpKind::Store(_)))
            && regions.len() == accesses.len();
        let whole = matches!(self.k.ty(old), Ty::Tile(..)) && elem.bits() >= 16;
        let few = layout.extents().first().is_some_and(|rows| *rows <= MOST);
        if aligned && alone && whole && few { self.columns(op, layout) } else { None }
    }

    /// The number of columns of a slice, if threads are to store the slices: where they would write only a few adjacent elements of an
    /// accumulator, in a row about which nothing is known.
    fn slices_for_threads(&self, op: &Op) -> Option<u32> {
        let [tensor, _, _, old] = op.args[..] else { return None };
        let (layout, bits) = (self.plan.layout(old)?, self.elem(old).bits());
        let scattered = bits >= 8 && self.is_stored_singly(tensor) && is_scattered(layout, bits);
        if scattered && self.is_of_groups(layout) { self.columns(op, layout) } else { None }
    }

    /// The number of columns of a slice of 128 bytes per row, if a matrix in this layout consists of such slices.
    fn columns(&self, op: &Op, layout: &Layout) -> Option<u32> {
        let ([tensor, ..], [_, all]) = (&op.args[..], layout.extents()) else { return None };
        let elem = self.elem(*tensor);
        let columns = ROW * 8 / elem.bits();
        let whole = op.kind == OpKind::Store(Unit::Tile) && op.args.last().is_some_and(|tile| self.elem(*tile) == elem);
        let slices = all.is_multiple_of(columns) && columns.is_multiple_of(*layout.atom().get(1)?);
        (whole && slices).then_some(columns)
    }

    /// Whether a layout is that of an accumulator of warpgroups, of which every warp holds elements in each column.
    fn is_of_groups(&self, layout: &Layout) -> bool {
        self.made_by(layout, |method| matches!(method, Method::Group(_))) && layout.warps_along(1).is_empty()
    }

    /// Whether an MMA of such a method has an accumulator in this layout.
    fn made_by(&self, layout: &Layout, method: impl Fn(&Method) -> bool) -> bool {
        self.plan.mmas.values().any(|mma| mma.acc == *layout && method(&mma.method))
    }
}
