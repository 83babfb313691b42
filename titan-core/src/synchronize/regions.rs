//! The memory to which values refer, and the accesses of operations to it.

use super::slots::Slots;
use super::state::{Bytes, Column, Touch};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::traffic::{On, traffic};
use crate::ir::{
    Access, BarrierTy, BinOp, Family, Kernel, NvOp, Op, OpKind, ParamKind, RegionOp, TtgOp, Ty, Unit, Value,
};

/// The bytes of a barrier.
const MBARRIER: u32 = 8;

/// A region of shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    offset: u32,
    bytes: u32,
    parts: u32,
}

/// The regions of a kernel.
pub(super) struct Regions {
    regions: Vec<Region>,
    by_value: SortedMap<Value, usize>,
    /// The regions that several roles access; mbarriers and counters order these accesses.
    pub(super) joined: SortedSet<usize>,
}

impl Regions {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let (mut regions, mut by_value) = (Vec::new(), SortedMap::new());
        kernel.walk(&mut |_, op| {
            if let OpKind::Region(RegionOp::Place { offset, bytes, parts }) = op.kind {
                by_value.extend(op.results.first().map(|v| (*v, regions.len())));
                regions.push(Region { offset, bytes, parts: parts.max(1) });
                return;
            }
            // A result in shared memory is a part of the memory to which the first operand refers.
            let is_shared = |v: &&Value| {
                matches!(kernel.ty(**v), Ty::Smem(..) | Ty::Barrier(BarrierTy::Region | BarrierTy::Mbarrier))
            };
            let of = op.args.first().and_then(|v| by_value.get(v)).copied();
            by_value.extend(op.results.first().filter(is_shared).copied().zip(of));
        });
        let mut found = Regions { regions, by_value, joined: SortedSet::new() };
        found.joined = found.of_several_roles(kernel);
        found
    }

    /// The region to which a value refers, as a whole or in part.
    pub(super) fn of(&self, value: Value) -> Option<usize> {
        self.by_value.get(&value).copied()
    }

    fn of_several_roles(&self, kernel: &Kernel) -> SortedSet<usize> {
        let (mut once, mut twice) = (SortedSet::new(), SortedSet::new());
        kernel.walk(&mut |_, op| {
            if op.kind != OpKind::Ttg(TtgOp::Roles) {
                return;
            }
            for role in &op.regions {
                let mut named = SortedSet::new();
                kernel.walk_block(*role, &mut |_, op| named.extend(op.args.iter().filter_map(|v| self.of(*v))));
                // Each role is compared with all before it, so that the roles need not be compared in pairs.
                twice.extend(named.intersection(&once).copied());
                once.extend(named);
            }
        });
        twice
    }

    /// The bytes of a tile, of an array of barriers, or all bytes to which a value refers.
    fn bytes(&self, kernel: &Kernel, slots: &Slots<'_>, value: Value) -> Option<Bytes> {
        let region = self.of(value)?;
        let Region { offset, bytes, parts } = *self.regions.get(region)?;
        let (mut part, mut slot, mut picked) = ((0, if parts > 1 { bytes / parts } else { bytes }), None, None);
        let (mut at, mut sized) = (value, false);
        // From a value to that of which it is a part: definitions come before uses, so this ends at the region.
        while let Some(op) = kernel.def_op(at) {
            if let OpKind::Region(RegionOp::Tile { offset, .. }) = op.kind {
                let size = kernel.encoding(at).map(crate::layout::Encoding::bytes);
                // A part of a tile is treated as the whole tile.
                if let (Some(size), false) = (size, sized) {
                    part = (offset, offset.saturating_add(size));
                }
                sized = true;
            }
            if let (OpKind::Nv(NvOp::MbarrierAlloc { at, n }), 1) = (&op.kind, parts) {
                let (at, n) = (*at, *n);
                part = (at, at.saturating_add(n.saturating_mul(MBARRIER)));
            }
            if op.kind == OpKind::Region(RegionOp::At) {
                picked = op.args.get(1).copied();
                slot = op.args.get(1).and_then(|index| slots.of(*index, parts));
            }
            match op.args.first() {
                Some(of) if self.by_value.contains_key(of) => at = *of,
                Some(_) | None => break,
            }
        }
        Some(Bytes::Shared { region, whole: (offset, offset.saturating_add(bytes)), part, slot, index: picked })
    }

    /// The accesses of an operation.
    pub(super) fn touches(&self, kernel: &Kernel, slots: &Slots<'_>, op: &Op) -> Vec<Touch> {
        let shared = |value: &Value, writes: bool| self.bytes(kernel, slots, *value).map(|bytes| (bytes, writes));
        let of = |wanted: &dyn Fn(Ty) -> bool, writes: bool| -> Vec<Touch> {
            op.args.iter().filter(|v| wanted(kernel.ty(**v))).filter_map(|v| shared(v, writes)).collect()
        };
        let mut found = Vec::new();
        for access in traffic(&op.kind).accesses.iter().flatten() {
            match access.on {
                On::Tensor => {
                    found.extend(op.args.first().and_then(|v| output(kernel, *v)).map(|p| (p, access.writes)))
                }
                On::Regions => found.extend(of(&|ty| ty == Ty::Barrier(BarrierTy::Region), access.writes)),
                On::Words => found.extend(of(&|ty| ty == Ty::Barrier(BarrierTy::Mbarrier), access.writes)),
                On::Local => found.extend(of(&|ty| matches!(ty, Ty::Smem(..)), access.writes)),
                // Rings have been lowered.
                On::Stage => {}
            }
        }
        let prints = matches!(op.kind, OpKind::Print(_));
        let offsets = matches!(op.kind, OpKind::Segment | OpKind::RaggedCount { .. } | OpKind::RaggedTile { .. });
        match op.kind.family() {
            // These only declare or select barriers.
            Family::Nv(NvOp::MbarrierAlloc { .. } | NvOp::MbarrierAt) => {}
            // Arrivals and waits write the words of barriers.
            // As writes, so that they conflict with the initialisation of the word. Barriers between the threads of a
            // role are placed for accesses that are not between roles only (`is_ours`).
            Family::Nv(_) if found.is_empty() => found.extend(op.args.iter().filter_map(|v| shared(v, true))),
            Family::Data(_) if prints => found.extend(op.args.iter().filter_map(|v| shared(v, true))),
            Family::Data(_) if offsets => {
                found.extend(op.args.iter().filter_map(|v| output(kernel, *v)).map(|p| (p, false)));
            }
            // All accesses of these operations are in the table.
            Family::Nv(_)
            | Family::Data(_)
            | Family::Flow(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Amd(_) => {}
        }
        found
    }
}

/// The column of tiles of a two-dimensional output that contains the tile of a tensor.
fn column(kernel: &Kernel, tile: Value) -> Option<Column> {
    let op = kernel.def_op(tile)?;
    let (OpKind::Ttg(TtgOp::Source(Unit::Tile, shape)), [tensor, row, column, _]) = (&op.kind, &op.args[..]) else {
        return None;
    };
    let of = (*tensor, *row, *shape);
    if let Some(number) = kernel.int_constant(*column) {
        return Some(Column { of, base: None, number });
    }
    let sum = kernel.def_op(*column).filter(|op| op.kind == OpKind::Binary(BinOp::Add))?;
    Some(Column { of, base: sum.args.first().copied(), number: kernel.int_constant(*sum.args.get(1)?)? })
}

/// The output that a value is, or is a view of.
pub(super) fn output(kernel: &Kernel, value: Value) -> Option<Bytes> {
    let mut at = value;
    while matches!(kernel.ty(at), Ty::Tensor(..) | Ty::Source(..)) {
        match kernel.def_op(at) {
            Some(op) => at = *op.args.first()?,
            None => {
                let param = kernel.sig.params.get(at.index())?;
                let written = matches!(param.kind, ParamKind::Tensor { access: Access::Mut, .. });
                return written.then_some(Bytes::Tensor(at.index(), column(kernel, value)));
            }
        }
    }
    None
}
