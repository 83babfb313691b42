//! Loads, stores, gathers, scatters and atomics: the layouts of their operands and results.

use super::{Laid, LayOut};
use crate::analysis::boxes::{self, Boxed, NoBox, Part};
use crate::analysis::cluster::Differing;
use crate::analysis::vector::{self, Packing};
use crate::analysis::whole;
use crate::ir::{Const, Kernel, LocalOp, Op, OpKind, TtgOp, Ty, Unit, Value};
use crate::layout::{Bit, Encoding, Layout};
use crate::plan::{wide_through_registers, wide_to_turn};

/// The bits that a thread accesses at once at most.
const VECTOR: u32 = 128;

impl LayOut<'_> {
    pub(super) fn load(&mut self, op: &Op, unit: Unit) -> Laid<()> {
        let old = op.results[0];
        let args = self.all_same(&op.args)?;
        if let Some(encoding) = self.plan.smem_resident[old.index()].clone() {
            let name = self.k.display_name(old);
            let buffer = self.buffer(self.elem(old), &self.extents(old), &encoding, &name)?;
            let shape = self.shape(&self.extents(old))?;
            let source = self.one(OpKind::Ttg(TtgOp::Source(unit, shape)), &args)?;
            let by = self.copied_by(&encoding);
            self.b.put(source, &by);
            self.copy_to_buffer(source, buffer)?;
            self.make(old, buffer);
            return Ok(());
        }
        let layout = self.layout(old);
        let value = self.tile_op(op.kind.clone(), &args, &layout)?;
        self.make(old, value);
        Ok(())
    }

    /// Copies a tile of a tensor to a buffer, asynchronously if possible.
    fn copy_to_buffer(&mut self, source: Value, buffer: Value) -> Laid<()> {
        let asynchronous = copies_itself(self.b.kernel(), source, buffer, self.plan.target.lane_copies().is_some());
        self.op(OpKind::Local(LocalOp::Copy { asynchronous }), &[source, buffer])?;
        if asynchronous {
            self.copied.insert(buffer);
        }
        Ok(())
    }

    /// Waits for all copies to buffers, before control flow diverges: none is in flight in a loop or in a branch.
    pub(super) fn settle_copies(&mut self) -> Laid<()> {
        let copied: Vec<Value> = std::mem::take(&mut self.copied).iter().copied().collect();
        if copied.is_empty() {
            Ok(())
        } else {
            self.op(OpKind::Local(LocalOp::Settle { read: true }), &copied).map(drop)
        }
    }

    /// Waits for the copy to a buffer, before the first read from it.
    pub(super) fn settle_copy(&mut self, buffer: Value) -> Laid<()> {
        let buffer = whole::of(self.b.kernel(), buffer);
        if !self.copied.remove(&buffer) {
            return Ok(());
        }
        self.op(OpKind::Local(LocalOp::Settle { read: true }), &[buffer]).map(drop)
    }

    /// The layout by which threads copy to a buffer. It covers the whole encoding, which may be larger than the tile.
    pub(super) fn copied_by(&self, encoding: &Encoding) -> Layout {
        if let (&[rows, columns], None, 0) =
            (&encoding.extents[..], self.plan.target.lane_copies(), encoding.fast_axis())
        {
            return wide_through_registers([rows, columns], encoding.bits, self.plan.target.lanes, self.warps);
        }
        self.wide(&encoding.extents, encoding.bits)
    }

    pub(super) fn store(&mut self, op: &Op) -> Laid<()> {
        let Some((value, args)) = op.args.split_last() else { return Err(self.internal("a store of nothing")) };
        if self.store_in_slices(op)? {
            return Ok(());
        }
        let layout = self.store_layout(op.args[0], *value);
        let mut args = self.all_same(args)?;
        args.push(self.tile(*value, &layout)?);
        self.op(op.kind.clone(), &args).map(drop)
    }

    /// The layout from which a tile is stored: its own, unless that would write pieces of less than 32 bytes, or 4-bit halves.
    fn store_layout(&self, tensor: Value, old: Value) -> Layout {
        let (layout, bits) = (self.layout(old), self.elem(tensor).bits());
        let last = layout.rank() - 1;
        let wide = self.wide(layout.extents(), bits);
        let short = is_scattered(&layout, bits) && run(&wide) > run(&layout);
        let whole = bits >= 8 || layout.vector(last) >= 2 || wide.vector(last) < 2;
        if !short && whole {
            return layout;
        }
        // If threads hold adjacent elements along another axis, the tile was transposed.
        let is_turned = layout.vector(last) == 1 && (0..last).any(|axis| layout.vector(axis) > 1);
        if is_turned {
            wide_to_turn(layout.extents(), bits, self.plan.target.lanes, self.warps)
        } else if bits >= 8 && self.is_stored_singly(tensor) {
            self.singly(layout.extents())
        } else {
            wide
        }
    }

    /// Whether elements of a tensor are stored one by one: nothing is known about its rows.
    pub(super) fn is_stored_singly(&self, tensor: Value) -> bool {
        !vector::is_aligned(self.k, tensor, &self.plan.aligned_rows())
    }

    /// The layout in which adjacent threads hold adjacent elements.
    pub(super) fn singly(&self, extents: &[u32]) -> Layout {
        self.wide(extents, VECTOR)
    }

    /// The operands of an operation, of which all tiles get the same layout.
    pub(super) fn indexed(&mut self, op: &Op, layout: &Layout) -> Laid<Vec<Value>> {
        let mut args = Vec::new();
        for arg in &op.args {
            args.push(if self.is_tile(*arg) { self.tile(*arg, layout)? } else { self.same(*arg)? });
        }
        Ok(args)
    }

    /// Gathers produce their result in its own layout, scatters and atomics store tiles from their own layout; index tiles get the same
    /// layout.
    pub(super) fn by_index(&mut self, op: &Op) -> Laid<()> {
        let decides = op.results.first().or(op.args.last()).copied();
        let Some(decides) = decides else { return Err(self.internal("an operation without operands")) };
        let layout = self.layout(decides);
        let args = self.indexed(op, &layout)?;
        let results = self.op(op.kind.clone(), &args)?;
        for (old, new) in op.results.iter().zip(results) {
            self.b.put(new, &layout);
            self.make(*old, new);
        }
        Ok(())
    }

    /// Atomic updates that return what they found. If several threads hold an element, the first of them updates it, and the others get
    /// what it found through shared memory:
    ///
    /// ```text
    /// %found = fetch_add %t[%i], %v : tile<1xi32, 0>    meaningless except in the first thread
    /// ttg.local.store %found, %exchange                 the first thread
    /// %old = ttg.local.load %exchange                   all threads
    /// ```
    pub(super) fn fetch_update(&mut self, op: &Op) -> Laid<()> {
        let layout = self.layout(op.results[0]);
        let args = self.indexed(op, &layout)?;
        let results = self.op(op.kind.clone(), &args)?;
        let copied = layout.lane_bits().iter().chain(layout.warp_bits()).any(|bit| *bit == Bit::Copy);
        results.iter().for_each(|new| self.b.put(*new, &layout));
        for (old, new) in op.results.iter().zip(results) {
            let found = if copied { self.of_first_copy(new, &layout)? } else { new };
            self.settle(*old, found)?;
        }
        Ok(())
    }

    /// The tile of which the first thread that holds an element knows it, in all threads.
    fn of_first_copy(&mut self, value: Value, layout: &Layout) -> Laid<Value> {
        let elem = self.b.ty(value).elem();
        let order: Vec<usize> = (0..layout.rank()).collect();
        let encoding = Encoding::padded(layout.extents(), elem.bits().max(8), &order, 0);
        let buffer = self.buffer(elem, layout.extents(), &encoding, "found")?;
        self.write(value, buffer)?;
        self.read(buffer, layout)
    }

    /// A gather of rows, to registers, or to shared memory if only MMAs read it.
    pub(super) fn gathered_rows(&mut self, op: &Op, [rows, width]: [i32; 2]) -> Laid<()> {
        let old = op.results[0];
        let Some(encoding) = self.plan.smem_resident[old.index()].clone() else { return self.by_row(op) };
        let name = self.k.display_name(old);
        let source = self.rows_named(op, TtgOp::SourceRows { rows, width }, encoding.bits)?;
        let buffer = self.buffer(self.elem(old), &self.extents(old), &encoding, &name)?;
        self.copy_to_buffer(source, buffer)?;
        self.make(old, buffer);
        Ok(())
    }

    /// Rows that are selected by indices, as the source of a copy. The indices have the layout by which threads copy, without the last axis.
    pub(super) fn rows_named(&mut self, op: &Op, kind: TtgOp, bits: u32) -> Laid<Value> {
        let by = self.wide(&self.extents(op.results[0]), bits);
        let args = self.indexed(op, &by.without(1))?;
        let source = self.one(OpKind::Ttg(kind), &args)?;
        self.b.put(source, &by);
        Ok(source)
    }

    /// Gathers and scatters of rows: the indices have the layout of the rows, without the last axis.
    pub(super) fn by_row(&mut self, op: &Op) -> Laid<()> {
        let gives = op.results.first().copied();
        let (layout, indices) = match (gives, op.args.split_last()) {
            (Some(result), _) => (self.layout(result), &op.args[..]),
            (None, Some((value, rest))) => {
                let bits = self.k.ty(op.args[0]).elem().bits();
                (if bits < 8 { self.store_layout(op.args[0], *value) } else { self.layout(*value) }, rest)
            }
            (None, None) => return Err(self.internal("an operation without operands")),
        };
        let narrow = layout.without(1);
        let mut args = Vec::new();
        for arg in indices {
            args.push(if self.is_tile(*arg) { self.tile(*arg, &narrow)? } else { self.same(*arg)? });
        }
        if gives.is_none() {
            args.push(self.tile(op.args[op.args.len() - 1], &layout)?);
        }
        let results = self.op(op.kind.clone(), &args)?;
        for (old, new) in op.results.iter().zip(results) {
            self.b.put(new, &layout);
            self.make(*old, new);
        }
        Ok(())
    }

    /// The atomic update of a tile at tile coordinates, from its own layout.
    pub(super) fn atomic_tile(&mut self, op: &Op) -> Laid<()> {
        let Some((value, args)) = op.args.split_last() else { return Err(self.internal("an update by nothing")) };
        let mut args = self.all_same(args)?;
        args.push(self.own(*value)?.1);
        self.op(op.kind.clone(), &args).map(drop)
    }
}

/// The number of adjacent elements along the last axis that the threads of a warp hold together.
fn run(layout: &Layout) -> u32 {
    let last = layout.rank() - 1;
    layout.vector(last) << layout.lanes_along(last).len()
}

/// Whether the threads of a warp would store pieces of less than 32 bytes.
pub(super) fn is_scattered(layout: &Layout, bits: u32) -> bool {
    let copied = layout.lane_bits().iter().chain(layout.warp_bits()).any(|b| *b == Bit::Copy);
    run(layout) * bits < 256 && !copied
}

/// Whether a tile can be copied to shared memory asynchronously (`cp.async`): in pieces of 4, 8 or 16 bytes, and only if elements outside
/// of the tensor are to be zero.
pub(crate) fn copies_itself(k: &Kernel, source: Value, buffer: Value, copy_async: bool) -> bool {
    let (Some(op), Some(by), Some(encoding)) = (named(k, source), k.layout(source), k.encoding(buffer)) else {
        return false;
    };
    let (Some(Ty::Tensor(elem, rank)), Some(aligned)) = (op.args.first().map(|v| k.ty(*v)), k.laid_out.as_ref()) else {
        return false;
    };
    let extents: Vec<u32> = k.ty(source).tile_shape().map(Into::into).unwrap_or_default();
    let aligned = vector::is_aligned(k, op.args[0], &aligned.aligned);
    let zero = op.args.last().and_then(|pad| k.constant(*pad)).is_some_and(|c| match c {
        Const::Int(_, v) => v == 0,
        Const::Float(_, v) => v.to_bits() == 0,
    });
    let column = op.args[usize::from(rank)];
    // Only whole bytes can be copied asynchronously.
    let kind = (elem.bits(), aligned, Packing::Pairs);
    let together = by.vector(by.rank() - 1).min(encoding.vector()).max(1);
    let (width, wanted, whole) = if let OpKind::Ttg(TtgOp::Source(unit, _)) = op.kind {
        let extent = extents.last().copied().unwrap_or(1);
        (vector::tile_width(k, kind, unit, (extent, column)), together, true)
    } else {
        let n = vector::width(kind, vector::divisor(k, column));
        (n.min(together), n.min(together).max(1), encoding.extents == extents)
    };
    let bytes = wanted * elem.bits() / 8;
    let fits = width >= wanted && matches!(bytes, 4 | 8 | 16) && encoding.fast_axis() + 1 == by.rank();
    copy_async && zero && whole && fits && elem.bits() >= 8
}

/// The boxes by which a tile is copied to shared memory, one for each panel of its encoding; or the reason why there are none.
pub(crate) fn by_map(k: &Kernel, source: Value, encoding: &Encoding) -> Result<Boxed, NoBox> {
    let op = k.def_op(source).ok_or(NoBox::NoTensor)?;
    let aligned = k.laid_out.as_deref().map_or(&[][..], |laid| &laid.aligned);
    boxes::of_op(k, op, encoding, aligned)
}

/// The same for one of `parts` equal parts of the tile along its first axis.
pub(crate) fn part_by_map(k: &Kernel, source: Value, encoding: &Encoding, parts: u32) -> Result<Boxed, NoBox> {
    let mut boxed = by_map(k, source, encoding)?;
    if parts > 1 {
        if boxed.part != Part::Whole {
            return Err(NoBox::PartShared);
        }
        let rows = boxed.extents.get_mut(first_axis(k, source)).ok_or(NoBox::NoTensor)?;
        *rows /= parts;
    }
    Ok(boxed)
}

/// The axis of the tensor parameter that corresponds to the first axis of a source's tile.
pub(crate) fn first_axis(k: &Kernel, source: Value) -> usize {
    let mut at = 0;
    let mut tensor = k.def_op(source).and_then(|op| op.args.first().copied());
    while let Some(view) = tensor.and_then(|v| k.def_op(v)) {
        if let OpKind::Index(axis) = view.kind {
            at += usize::from(usize::from(axis) <= at);
        }
        tensor = view.args.first().copied();
    }
    at
}

/// Whether the rows of an encoding can be divided into `parts` equal parts, each of which begins where the swizzle repeats.
fn is_divisible(encoding: &Encoding, parts: u32) -> bool {
    let rows = encoding.extents.first().copied().unwrap_or(1);
    parts == 1 || encoding.extents.len() > 1 && rows.is_multiple_of(8 * parts)
}

/// The number of parts in which a tile is copied. If all programs of a cluster copy the same tile, each copies one part to all of them;
/// otherwise the number is 1, also for tiles of parts of a tensor.
pub(crate) fn parts(k: &Kernel, differing: &Differing, source: Value, encoding: &Encoding) -> u32 {
    let cluster = k.laid_out.as_deref().map_or(1, |laid| laid.cluster);
    let shared = cluster > 1 && k.def_op(source).is_some_and(|op| !differing.any(&op.args));
    let divided = is_divisible(encoding, cluster) && part_by_map(k, source, encoding, cluster).is_ok();
    if shared && divided { cluster } else { 1 }
}

/// The operation that defines the source of a copy.
fn named(k: &Kernel, source: Value) -> Option<&Op> {
    let op = k.def_op(source)?;
    if op.kind == OpKind::Local(LocalOp::Guard) { named(k, *op.args.first()?) } else { Some(op) }
}
