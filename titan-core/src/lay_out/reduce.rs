//! Reductions and scans.
//!
//! Each warp reduces the elements that it holds of a line. If several warps hold elements of a line, the partial results of all of them
//! pass through shared memory, and every thread that needs the result combines them itself:
//!
//! ```text
//! %part = ttg.local.fold_sum<1, 2> %x : tile<2x64xf32, 4>     two warps hold parts of a row
//! ttg.local.store %part, %scratch                             each warp its own
//! %all = ttg.local.load %scratch : tile<2x64xf32, 5>          every thread has both parts
//! %sum = ttg.local.fold_sum<0, 1> %all : tile<64xf32, 6>
//! ```

use super::{Laid, LayOut};
use crate::ir::{Const, Elem, Fold, LocalOp, Op, OpKind, Pred, ReduceOp, Ty, Value};
use crate::layout::{Bit, Encoding, Layout};
use crate::plan::{is_elementwise, split_warps};

impl LayOut<'_> {
    pub(super) fn plain_reduce(&mut self, op: &Op, f: ReduceOp, axis: u8) -> Laid<()> {
        let elem = self.elem(op.args[0]);
        let (layout, value) = self.own(op.args[0])?;
        let value = self.cast(value, elem.accumulator())?;
        let (out, _) = self.fold(Fold::Plain(f), &[value], &layout, axis, None)?;
        let out = self.cast(out[0], elem)?;
        self.reduced(op.results[0], out)
    }

    /// A reduction by a user-defined function.
    pub(super) fn reduce_with(&mut self, op: &Op, axis: u8) -> Laid<()> {
        let (layout, value) = self.own(op.args[0])?;
        let neutral = self.same(op.args[1])?;
        let (out, _) = self.fold(Fold::With, &[value, neutral], &layout, axis, Some(op))?;
        self.reduced(op.results[0], out[0])
    }

    /// The extremum along an axis, and its index.
    pub(super) fn arg_reduce(&mut self, op: &Op, f: crate::ir::ArgOp, axis: u8) -> Laid<()> {
        let (layout, value) = self.own(op.args[0])?;
        let at = self.index_along(&layout, axis)?;
        let (out, _) = self.fold(Fold::Arg(f), &[value, at], &layout, axis, None)?;
        self.reduced(op.results[0], out[0])?;
        self.reduced(op.results[1], out[1])
    }

    /// The coordinate along an axis of each element of a tile.
    fn index_along(&mut self, layout: &Layout, axis: u8) -> Laid<Value> {
        let mut narrow = layout.clone();
        let mut path = vec![(layout.clone(), None)];
        for other in (0..layout.rank()).rev().filter(|a| *a != usize::from(axis)) {
            narrow = narrow.without(other);
            path.push((narrow.clone(), Some(other)));
        }
        let n = i32::try_from(layout.extents()[usize::from(axis)]).unwrap_or(i32::MAX);
        let mut value = self.tile_op(OpKind::Iota(n), &[], &narrow)?;
        for pair in path.windows(2).rev() {
            let [(wider, _), (_, Some(missing))] = pair else { continue };
            let n = i32::try_from(wider.extents()[*missing]).unwrap_or(i32::MAX);
            let axis = u8::try_from(*missing).unwrap_or(0);
            value = self.tile_op(OpKind::Broadcast { axis, n }, &[value], wider)?;
        }
        Ok(value)
    }

    /// Sets the result of a reduction: a scalar if no axis remains.
    fn reduced(&mut self, old: Value, value: Value) -> Laid<()> {
        if let Ty::Scalar(elem) = self.k.ty(old) {
            let value = if self.steers(old) { self.agreed(value, elem)? } else { value };
            self.make(old, value);
            return Ok(());
        }
        self.settle(old, value)
    }

    /// Reduces tiles along an axis. If the results are tiles, they have the layout without the axis.
    fn fold(
        &mut self,
        f: Fold,
        args: &[Value],
        layout: &Layout,
        axis: u8,
        op: Option<&Op>,
    ) -> Laid<(Vec<Value>, Layout)> {
        let masks = layout.warps_along(usize::from(axis));
        let narrow = layout.without(usize::from(axis));
        let parts = 1u32 << masks.len();
        if parts == 1 {
            let out = self.fold_op(LocalOp::Fold { f, axis, parts }, args, &narrow, op)?;
            return Ok((out, narrow));
        }
        let (own, every) = partial(&narrow, &masks);
        let partial = self.fold_op(LocalOp::Fold { f, axis, parts }, args, &own, op)?;
        let mut all = Vec::new();
        for part in partial {
            let elem = self.b.ty(part).elem();
            let order: Vec<usize> = (0..own.rank()).collect();
            let encoding = Encoding::padded(own.extents(), elem.bits().max(8), &order, 0);
            let buffer = self.buffer(elem, own.extents(), &encoding, "reduction")?;
            self.write(part, buffer)?;
            all.push(self.read(buffer, &every)?);
        }
        if f == Fold::With {
            all.extend(args.last());
        }
        let out = self.fold_op(LocalOp::Fold { f, axis: 0, parts: 1 }, &all, &narrow, op)?;
        Ok((out, narrow))
    }

    fn fold_op(&mut self, fold: LocalOp, args: &[Value], layout: &Layout, op: Option<&Op>) -> Laid<Vec<Value>> {
        let out = match op.and_then(|op| op.regions.first()) {
            Some(region) => vec![self.combined(OpKind::Local(fold), args, *region)?],
            None => self.op(OpKind::Local(fold), args)?,
        };
        for value in &out {
            if matches!(self.b.ty(*value), Ty::Tile(..)) {
                self.b.put(*value, layout);
            }
        }
        Ok(out)
    }

    /// An operation with a copy of the combining region.
    fn combined(&mut self, kind: OpKind, args: &[Value], region: crate::ir::Block) -> Laid<Value> {
        let elem = self.b.ty(args[0]).elem();
        let (body, both) = self.b.begin_combine(elem);
        for (old, new) in self.k.block(region).args.clone().iter().zip(both) {
            self.make(*old, new);
        }
        self.block(region)?;
        self.b.end_combine(kind, args, body).map_err(|e| self.internal(e.to_string()))
    }

    /// Whether a scalar may influence control flow.
    fn steers(&self, old: Value) -> bool {
        self.tree.users(old).iter().any(|id| {
            let op = self.k.op(*id);
            if is_elementwise(&op.kind) {
                return matches!(self.k.ty(op.results[0]), Ty::Scalar(_)) && self.steers(op.results[0]);
            }
            // Any other operation may pass it to control flow.
            !matches!(op.kind, OpKind::Splat(_) | OpKind::Load(..) | OpKind::Store(_))
        })
    }

    /// Replaces a scalar that all threads have computed by the value of the first thread. It is not proved that shuffles give all lanes the
    /// same bits, and with user-defined functions they may not.
    fn agreed(&mut self, value: Value, elem: Elem) -> Laid<Value> {
        let layout = Layout::by_all(self.plan.target.lanes, self.warps);
        let shape = self.shape(&[1])?;
        let one = self.tile_op(OpKind::Splat(shape), &[value], &layout)?;
        let bits = elem.bits().max(8);
        let buffer = self.buffer(elem, &[1], &Encoding::padded(&[1], bits, &[0], 0), "scalar")?;
        self.write(one, buffer)?;
        let read = self.read(buffer, &layout)?;
        // Neither sums nor extrema preserve the bits for all types, so the element is selected by a reduction function that returns
        // its first argument.
        self.only_element(read, elem)
    }

    /// The element of a tile that has only one.
    fn only_element(&mut self, tile: Value, elem: Elem) -> Laid<Value> {
        let fold = LocalOp::Fold { f: Fold::With, axis: 0, parts: 1 };
        let neutral = self.zero(elem);
        let (body, [first, _]) = self.b.begin_combine(elem);
        self.b.terminate(OpKind::Yield, &[first]);
        self.b.end_combine(OpKind::Local(fold), &[tile, neutral], body).map_err(|e| self.internal(e.to_string()))
    }

    /// Traps unless a condition holds for all elements, that is, for their minimum.
    pub(super) fn assert(&mut self, op: &Op) -> Laid<()> {
        let old = op.args[0];
        if !self.is_tile(old) {
            return self.copy(op);
        }
        let (mut layout, value) = self.own(old)?;
        let mut value = self.cast(value, Elem::I32)?;
        for axis in (0..u8::try_from(layout.rank()).unwrap_or(0)).rev() {
            let (out, narrow) = self.fold(Fold::Plain(ReduceOp::Min), &[value], &layout, axis, None)?;
            (value, layout) = (out[0], narrow);
        }
        let value = self.agreed(value, Elem::I32)?;
        let zero = self.b.constant(Const::Int(Elem::I32, 0));
        let holds = self.one(OpKind::Cmp(Pred::Ne), &[value, zero])?;
        self.op(op.kind.clone(), &[holds]).map(drop)
    }

    /// A scan, in a layout in which no two warps share a line.
    pub(super) fn scan(&mut self, op: &Op, axis: u8) -> Laid<()> {
        let layout = self.scan_layout(&self.extents(op.args[0]), usize::from(axis));
        let tile = self.tile(op.args[0], &layout)?;
        let value = match op.regions.first() {
            Some(region) => {
                let neutral = self.same(op.args[1])?;
                let value = self.combined(op.kind.clone(), &[tile, neutral], *region)?;
                self.b.put(value, &layout);
                value
            }
            None => self.tile_op(op.kind.clone(), &[tile], &layout)?,
        };
        self.settle(op.results[0], value)
    }

    /// The layout of a scan: adjacent elements along the axis in each thread, then lanes along the axis, and the remaining bits elsewhere.
    fn scan_layout(&self, extents: &[u32], axis: usize) -> Layout {
        let rank = extents.len();
        let lanes = self.plan.target.lanes;
        let chunk = extents[axis].div_ceil(lanes).next_power_of_two().min(8);
        let along = extents[axis].div_ceil(chunk).next_power_of_two().min(lanes);
        let mut per_thread = vec![1; rank];
        per_thread[axis] = chunk;
        let mut lane = vec![1; rank];
        lane[axis] = along;
        let mut warp = vec![1; rank];
        let (used, spare) = split_warps(self.warps);
        let (mut lanes_left, mut warps_left) = (lanes / along, used);
        for other in (0..rank).filter(|a| *a != axis) {
            let n = extents[other].next_power_of_two().min(lanes_left);
            lane[other] = n;
            lanes_left /= n;
            let n = extents[other].div_ceil(n).next_power_of_two().min(warps_left);
            warp[other] = n;
            warps_left /= n;
        }
        let mut order = vec![axis];
        order.extend((0..rank).filter(|a| *a != axis));
        // The remaining lanes and warps hold copies.
        Layout::blocked(extents, &per_thread, &lane, &warp, &order).with_spare_copies(lanes_left, warps_left * spare)
    }
}

/// The layouts of partial results, whose first axis is the number of the warp within a line: the layout that each warp writes, and the
/// layout that every thread reads.
pub(crate) fn partial(narrow: &Layout, masks: &[u32]) -> (Layout, Layout) {
    let parts = 1u32 << masks.len();
    let every = narrow.batched(parts);
    let mut extents = vec![parts];
    extents.extend(narrow.extents());
    let mut part = 1;
    let own = |(i, bit): (usize, &Bit)| {
        if !masks.contains(&(1 << i)) {
            return *bit;
        }
        part *= 2;
        Bit::Step { axis: 0, by: part / 2 }
    };
    let warps: Vec<Bit> = every.warp_bits().iter().enumerate().map(own).collect();
    (Layout::new(&extents, every.register_bits().to_vec(), every.lane_bits().to_vec(), warps), every)
}
