//! The bytes of an access, and whether two accesses may overlap.

use crate::analysis::number::root;
use crate::ir::traffic::{On, traffic};
use crate::ir::{BarrierTy, BinOp, FenceSpace, Kernel, NvOp, Op, OpKind, Proxy, RegionOp, Stated, Ty, Value};

/// The size of an mbarrier in bytes (PTX ISA, "mbarrier").
const WORD: u64 = 8;

/// A part of a region, selected by an index: `((base + add) mod modulus) xor flip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) region: Value,
    pub(super) base: Value,
    add: i64,
    modulus: Option<i64>,
    flip: i64,
    /// The offset of the region, and the size of each of its parts, in bytes.
    start: u64,
    stride: u64,
    /// The accessed bytes of the part: the first one and the end.
    within: (u64, u64),
}

impl Pick {
    fn new(kernel: &Kernel, (region, index): (Value, Value), (start, stride): (u64, u64)) -> Pick {
        let within = (0, stride);
        let mut pick = Pick { region, base: index, add: 0, modulus: None, flip: 0, start, stride, within };
        while let Some((op, a, c)) = by_constant(kernel, pick.base) {
            match op {
                BinOp::Add => pick.add = pick.add.saturating_add(c),
                BinOp::Sub => pick.add = pick.add.saturating_sub(c),
                // A remainder of a remainder by the same number is one remainder.
                BinOp::Rem if c > 0 && (pick.modulus == Some(c) || pick.modulus.is_none() && pick.add == 0) => {
                    pick.modulus = Some(c)
                }
                BinOp::Xor if pick.modulus.is_none() && pick.add == 0 => pick.flip ^= c,
                BinOp::Rem
                | BinOp::Xor
                | BinOp::Mul
                | BinOp::Div
                | BinOp::And
                | BinOp::Or
                | BinOp::Shl
                | BinOp::Shr
                | BinOp::Min
                | BinOp::Max
                | BinOp::MulHi
                | BinOp::Powf => break,
            }
            pick.base = a;
        }
        pick
    }

    /// Whether it is the part of a region that an index selects, in the same iteration.
    pub(super) fn is_of(&self, kernel: &Kernel, (region, index): (Value, Value)) -> bool {
        let part = Pick::new(kernel, (region, index), (self.start, self.stride));
        self.region == region && Pick { within: self.within, ..part } == *self
    }

    /// Whether both are evaluated in the same iteration and select different parts.
    fn differs(&self, other: &Pick) -> bool {
        if self.region != other.region || self.base != other.base || self.modulus != other.modulus {
            return false;
        }
        let (add, flip) = (self.add.wrapping_sub(other.add), self.flip ^ other.flip);
        let apart = self.modulus.map_or(add, |n| add.rem_euclid(n));
        (apart != 0 && flip == 0) || (add == 0 && flip != 0)
    }

    /// Whether a range of shared memory is disjoint from the accessed bytes of all parts: it is inside of one part, beside these bytes.
    fn is_beside(&self, (first, end): (u64, u64)) -> bool {
        let Some((from, last)) = first.checked_sub(self.start).zip(end.checked_sub(self.start + 1)) else {
            return false;
        };
        let (stride, (lo, hi)) = (self.stride.max(1), self.within);
        from / stride == last / stride && (last % stride < lo || from % stride >= hi)
    }

    /// Whether both access disjoint bytes of their parts, whichever parts these are.
    fn is_beside_part(&self, other: &Pick) -> bool {
        let ((lo, hi), (l, h)) = (self.within, other.within);
        self.region == other.region && (hi <= l || h <= lo)
    }
}

/// A binary operation with a constant as its second operand.
fn by_constant(kernel: &Kernel, value: Value) -> Option<(BinOp, Value, i64)> {
    let op = kernel.def_op(value)?;
    let (OpKind::Binary(binary), [a, b]) = (&op.kind, &op.args[..]) else { return None };
    let commutes = matches!(binary, BinOp::Add | BinOp::Xor);
    let right = kernel.int_constant(*b).map(|c| (*binary, *a, c));
    right.or_else(|| kernel.int_constant(*a).filter(|_| commutes).map(|c| (*binary, *b, c)))
}

/// The memory of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A byte range of shared memory.
    Shared { first: u64, end: u64, pick: Option<Pick> },
    /// A tensor; `None` if it is unknown which.
    Tensor(Option<usize>),
}

/// An access of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) place: Place,
    pub(super) proxy: Proxy,
    pub(super) writes: bool,
    /// Whether it accesses the word of an mbarrier.
    pub(super) word: bool,
}

impl Touched {
    pub(super) fn space(&self) -> FenceSpace {
        match self.place {
            Place::Shared { .. } => FenceSpace::Shared,
            Place::Tensor(_) => FenceSpace::Global,
        }
    }

    /// Whether both may access the same byte. `loose` says that they may be in different iterations.
    pub(super) fn overlaps(&self, other: &Touched, loose: bool) -> bool {
        match (self.place, other.place) {
            (Place::Shared { first, end, pick }, Place::Shared { first: f, end: e, pick: p }) => {
                let apart = match (pick, p) {
                    (Some(a), Some(b)) => !loose && a.differs(&b) || a.is_beside_part(&b),
                    (Some(a), None) => a.is_beside((f, e)),
                    (None, Some(b)) => b.is_beside((first, end)),
                    (None, None) => false,
                };
                first < e && f < end && !apart
            }
            (Place::Tensor(a), Place::Tensor(b)) => a.zip(b).is_none_or(|(a, b)| a == b),
            (_, _) => false,
        }
    }

    /// The part of a region that it accesses.
    pub(super) fn pick(&self) -> Option<Pick> {
        match self.place {
            Place::Shared { pick, .. } => pick,
            Place::Tensor(_) => None,
        }
    }
}

/// The accesses of an operation, in a fixed order.
pub(super) fn touched(kernel: &Kernel, op: &Op) -> Vec<Touched> {
    let mut found = Vec::new();
    for access in traffic(&op.kind).accesses.into_iter().flatten() {
        let one = |place: Place, writes: bool, word: bool| Touched { place, proxy: access.proxy, writes, word };
        match access.on {
            On::Regions => {
                let regions = op.args.iter().filter(|v| kernel.ty(**v) == Ty::Barrier(BarrierTy::Region));
                for (i, region) in regions.enumerate() {
                    let place = region_of(kernel, *region, bytes_of(&op.kind));
                    let writes = if let OpKind::Region(RegionOp::Call(call)) = &op.kind {
                        call.touch(i).writes()
                    } else {
                        access.writes
                    };
                    found.push(one(place, writes, false));
                }
            }
            On::Words => found.extend(op.args.first().map(|v| one(words_of(kernel, *v), access.writes, true))),
            On::Tensor => {
                let tensor = op.args.first().and_then(|v| tensor_of(kernel, *v));
                found.push(one(Place::Tensor(tensor), access.writes, false));
            }
            On::Local => {
                let tiles = op.args.iter().filter(|v| matches!(kernel.ty(**v), Ty::Smem(..)));
                found.extend(tiles.map(|v| one(tile_of(kernel, *v), access.writes, false)));
            }
            // The fences for stages are those of the barrier program to which rings are lowered.
            On::Stage => {}
        }
    }
    found
}

/// The number of bytes that a copy accesses in its region.
fn bytes_of(kind: &OpKind) -> u64 {
    // A copy that states no size may access all bytes.
    if let Stated::Copies { bytes, .. } = kind.stated() { u64::from(bytes) } else { u64::MAX }
}

/// The parameter that a tensor, or the source of a copy, belongs to.
fn tensor_of(kernel: &Kernel, value: Value) -> Option<usize> {
    let mut at = value;
    while matches!(kernel.ty(at), Ty::Source(..)) {
        at = *kernel.def_op(at)?.args.first()?;
    }
    root(kernel, at)
}

/// The byte range of a tile in shared memory. A part of a tile is treated as the whole tile.
fn tile_of(kernel: &Kernel, value: Value) -> Place {
    let mut at = value;
    while let Some(op) = kernel.def_op(at) {
        let Some(of) = op.args.first() else { break };
        if let OpKind::Region(RegionOp::Tile { offset, .. }) = op.kind {
            let size = kernel.encoding(at).map_or(u64::MAX, |e| u64::from(e.bytes()));
            return match region_of(kernel, *of, u64::MAX) {
                Place::Shared { first, end, pick: None } => {
                    let first = first.saturating_add(u64::from(offset));
                    Place::Shared { first, end: end.min(first.saturating_add(size)), pick: None }
                }
                // The part of the region is unknown, so the tile may be anywhere in the region, at a known offset in its part.
                Place::Shared { first, end, pick: Some(part) } => {
                    let lo = u64::from(offset);
                    let hi = lo.saturating_add(size);
                    let within = if hi <= part.stride { (lo, hi) } else { part.within };
                    Place::Shared { first, end, pick: Some(Pick { within, ..part }) }
                }
                Place::Tensor(_) => ANYWHERE,
            };
        }
        at = *of;
    }
    ANYWHERE
}

const ANYWHERE: Place = Place::Shared { first: 0, end: u64::MAX, pick: None };

fn region_of(kernel: &Kernel, value: Value, most: u64) -> Place {
    let from = |first: u64, bytes: u64| Place::Shared { first, end: first.saturating_add(bytes.min(most)), pick: None };
    let Some(op) = kernel.def_op(value) else { return ANYWHERE };
    match (&op.kind, &op.args[..]) {
        (OpKind::Region(RegionOp::Place { offset, bytes, .. }), _) => from(u64::from(*offset), u64::from(*bytes)),
        (OpKind::Region(RegionOp::At), [region, index]) => {
            let Some(OpKind::Region(RegionOp::Place { offset, bytes, parts })) =
                kernel.def_op(*region).map(|o| &o.kind)
            else {
                return ANYWHERE;
            };
            let (offset, bytes, parts) = (u64::from(*offset), u64::from(*bytes), u64::from(*parts).max(1));
            match kernel.int_constant(*index).and_then(|i| u64::try_from(i).ok()).or((parts == 1).then_some(0)) {
                Some(i) => from(offset.saturating_add(i.saturating_mul(bytes / parts)), bytes / parts),
                None => {
                    let pick = Pick::new(kernel, (*region, *index), (offset, bytes / parts));
                    Place::Shared { first: offset, end: offset + bytes, pick: Some(pick) }
                }
            }
        }
        (_, _) => ANYWHERE,
    }
}

fn words_of(kernel: &Kernel, value: Value) -> Place {
    let Some(op) = kernel.def_op(value) else { return ANYWHERE };
    match (&op.kind, &op.args[..]) {
        (OpKind::Nv(NvOp::MbarrierAlloc { at, n }), [region]) => match region_of(kernel, *region, u64::MAX) {
            Place::Shared { first, pick: None, .. } => {
                let first = first.saturating_add(u64::from(*at));
                Place::Shared { first, end: first.saturating_add(WORD * u64::from(*n)), pick: None }
            }
            Place::Shared { .. } | Place::Tensor(_) => ANYWHERE,
        },
        (OpKind::Nv(NvOp::MbarrierAt), [alloc, index]) => {
            match (words_of(kernel, *alloc), kernel.int_constant(*index).and_then(|i| u64::try_from(i).ok())) {
                (Place::Shared { first, .. }, Some(i)) => {
                    let first = first.saturating_add(WORD.saturating_mul(i));
                    Place::Shared { first, end: first.saturating_add(WORD), pick: None }
                }
                (whole, _) => whole,
            }
        }
        (_, _) => ANYWHERE,
    }
}
