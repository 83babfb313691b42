//! Stores of accumulators by bulk copies, on machines that have these: in slices of columns, through shared memory.
//!
//! ```text
//! %x0 = ttg.local.slice<1, 64> %x, %0          a slice of 128 bytes per row
//! ttg.local.store %x0, %buffer                  (between the slices: the buffer has been read, for all threads)
//! ttg.fence.proxy ..                            generic stores before the bulk copy
//! %to = ttg.source_tile %c[%m, %n0]
//! ttg.nv.cp_async_bulk_tensor.store %to, %buffer
//! ttg.nv.bulk_group.commit
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
//!     ttg.nv.bulk_group.wait {n = 0, read = true}
//!     ..                                        the slices, with waits as above
//! }
//! ttg.nv.bulk_group.wait {n = 0, read = true}
//! ```
//!
//! The buffers then keep their bytes while the MMAs read rings, which no role shares with them anyway: other roles access the rings. If the
//! role has other regions, which could share bytes with the buffers, and the program does not fit otherwise, the plan says to wait
//! (`Plan::stores_waited`).
//!
//! Deliberately absent: such overlap in kernels without roles, where the buffers would take additional shared memory, and of several
//! stores of a role, which would wait for each other; tiles at arbitrary coordinates; views that fix an axis; tensors that the kernel also
//! accesses in other ways, which would need fences for device memory; barriers between the threads, which are inserted later.

use super::{Laid, LayOut};
use crate::analysis::boxes;
use crate::analysis::number::root;
use crate::analysis::turns::{Turns, walk};
use crate::ir::{
    BinOp, Block, Def, FenceSpace, NvGroup, NvOp, Op, OpId, OpKind, ParamKind, Proxy, Scope, TtgOp, Ty, Unit, Value,
};
use crate::layout::Encoding;
use crate::plan::Method;
use std::collections::BTreeSet;

/// Bytes of a row of a slice: the maximum width of a swizzle.
const ROW: u32 = 128;

/// The maximum extent of a box.
const MOST: u32 = 256;

impl LayOut<'_> {
    /// Stores an accumulator in slices. Returns false, and does nothing, if that is impossible.
    pub(super) fn store_in_slices(&mut self, op: &Op) -> Laid<bool> {
        let Some(columns) = self.slices(op) else { return Ok(false) };
        let [tensor, row, column, old] = op.args[..] else { return Ok(false) };
        let OpKind::Store(unit @ Unit::Tile) = op.kind else { return Ok(false) };
        let (layout, value) = self.own(old)?;
        let (extents, elem) = (layout.extents().to_vec(), self.elem(old));
        let (tensor, row, column) = (self.same(tensor)?, self.same(row)?, self.same(column)?);
        let number = extents[1] / columns;
        let slice = [extents[0], columns];
        let encoding = Encoding::swizzled(&slice, elem.bits(), &[0, 1]);
        let mut buffers = Vec::new();
        for _ in 0..number.min(2) {
            buffers.push(self.buffer(elem, &slice, &encoding, "slice")?);
        }
        // The coordinate of the first slice, in units of slices.
        let by = self.index(number);
        let tiles = self.loop_over_tiles(op);
        let first = self.one(OpKind::Binary(BinOp::Mul), &[column, by])?;
        let (shape, pad) = (self.shape(&slice)?, self.zero(elem));
        if tiles.is_some() {
            // The stores of the previous tile must have read the buffers.
            self.wait_stores(0, true)?;
        }
        for i in 0..number {
            let buffer = buffers[(i % 2) as usize];
            // The store of the slice before the previous one must have read this buffer; only the previous store, of the other buffer, may
            // still be reading.
            if i >= 2 {
                self.wait_stores(1, true)?;
            }
            let at = self.index(i * columns);
            let part = self.part_at(value, 1, columns, at)?;
            self.write(part, buffer)?;
            let fence =
                TtgOp::Fence { from: Proxy::Generic, to: Proxy::Async, scope: Scope::Cta, space: FenceSpace::Shared };
            self.op(OpKind::Ttg(fence), &[])?;
            let step = self.index(i);
            let place = self.one(OpKind::Binary(BinOp::Add), &[first, step])?;
            let to = self.one(OpKind::Ttg(TtgOp::Source(unit, shape)), &[tensor, row, place, pad])?;
            let by = self.copied_by(&encoding);
            self.b.put(to, &by);
            self.op(OpKind::Nv(NvOp::BulkStore { tensor: true, bytes: encoding.bytes() }), &[to, buffer])?;
            let n = self.stores;
            self.stores += 1;
            self.op(OpKind::Nv(NvOp::Commit { group: NvGroup::BulkStore, n }), &[])?;
        }
        match tiles {
            Some(_) => self.waited_behind = tiles,
            None => self.wait_stores(0, false)?,
        }
        Ok(true)
    }

    /// The loop over tiles in which a role stores a tile, if it may compute the next tile while the store is in flight.
    fn loop_over_tiles(&self, store: &Op) -> Option<OpId> {
        if self.plan.stores_waited {
            return None;
        }
        let (id, param) = (self.at?, root(self.k, *store.args.first()?)?);
        let role = self.role_of(id).filter(|_| !self.k.roles.is_empty())?;
        let looped = walk(self.k, role).ok()?.looped;
        let mut inside = self.tree.around(id).take_while(|around| *around != looped);
        let once = self.tree.around(id).any(|around| around == looped)
            && inside.all(|around| self.k.op(around).kind == OpKind::If);
        let mut stores = 0;
        self.k.walk_block(role, &mut |_, op| stores += u32::from(matches!(op.kind, OpKind::Store(_))));
        (once && stores == 1 && Turns::new(self.k).divides(param)).then_some(looped)
    }

    /// Waits for bulk stores behind the loop in whose iterations they are not all waited for.
    pub(super) fn wait_behind(&mut self, looped: Option<OpId>) -> Laid<()> {
        if looped.is_some() && self.waited_behind == looped {
            self.waited_behind = None;
            self.wait_stores(0, true)?;
        }
        Ok(())
    }

    fn wait_stores(&mut self, n: u32, read: bool) -> Laid<()> {
        self.op(OpKind::Nv(NvOp::WaitGroup { group: NvGroup::BulkStore, n, read }), &[]).map(drop)
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

    /// The number of columns of a slice, if a store qualifies: the tile must have the layout of an accumulator, of which every warp holds
    /// elements in each slice, and the role must not access the tensor otherwise.
    fn slices(&self, op: &Op) -> Option<u32> {
        let [tensor, _, _, old] = op.args[..] else { return None };
        let layout = self.plan.layout(old)?;
        // On machines with MMAs of warpgroups, a kernel whose MMAs are all of warps is compiled for older machines too, so that it needs no
        // code of this form.
        let of_warps = self.plan.target.group_atoms.is_empty();
        let by_instructions = |mma: &crate::plan::MmaPlan| match mma.method {
            Method::Group(_) => mma.acc == *layout && layout.warps_along(1).is_empty(),
            Method::Atom(_) => of_warps && mma.acc == *layout,
            Method::MulAdd => false,
        };
        if !self.plan.target.bulk_tensor || !self.plan.mmas.values().any(by_instructions) {
            return None;
        }
        let (param, accesses) = self.accesses(tensor)?;
        let ParamKind::Tensor { elem, optional: false, .. } = self.k.sig.params.get(param)?.kind else { return None };
        let aligned = self.plan.aligned && *self.plan.vectored.get(param)?;
        // Several roles that store to a tensor store different elements.
        let regions: BTreeSet<Option<Block>> = accesses.iter().map(|id| self.role_of(*id)).collect();
        let alone = accesses.iter().all(|id| matches!(self.k.op(*id).kind, OpKind::Store(_)))
            && regions.len() == accesses.len();
        let [rows, all] = layout.extents() else { return None };
        let columns = ROW * 8 / elem.bits();
        let whole = matches!(self.k.ty(old), Ty::Tile(..)) && elem.bits() >= 16 && elem == self.elem(old);
        let shared = all.is_multiple_of(columns) && columns.is_multiple_of(*layout.atom().get(1)?);
        (aligned && alone && whole && *rows <= MOST && shared).then_some(columns)
    }
}
