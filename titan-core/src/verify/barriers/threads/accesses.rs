//! The accesses of operations to memory that the threads of a role share, and which of them conflict.
//!
//! Memory is named by what does not depend on where the code is: bytes of shared memory by their addresses, parts of rings by their region, and
//! elements of outputs by the values that number a tile. So an access is a number, and a set of accesses is a set of bits.
//!
//! Accesses of tiles in slots of a ring, to the same ring, never conflict here: the co-execution compares them, since it knows their times
//! ([`crate::verify::coexecution::rings::touches`]). Arrivals and waits at the words of barriers and counters do not conflict with each
//! other, but with their initialisation.
//!
//! Deliberately absent: the order of accesses (`order`), and which bytes of a tile a part of it has: it counts as all of them.

use super::bits::Bits;
use crate::analysis::number::tensor_of;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::traffic::{On, traffic};
use crate::ir::{
    Access as Mode, BarrierTy, BinOp, Class, Completion, Def, Family, Kernel, LocalOp, NvOp, Op, OpId, OpKind,
    ParamKind, RegionOp, TileShape, TtgOp, Ty, Unit, Value,
};
use crate::verify::coexecution::rings::find::{bytes_in_part, is_opaque, picked, region_of};
use crate::verify::roles::threads;

/// The bytes of a barrier.
const WORD: u64 = 8;

/// The tile of a two-dimensional output, if its column is a constant, or a sum of a value and a constant: the output or view, the row and the
/// extents, which are comparable only if they are equal; the value; and the constant.
pub(super) type Column = ((Value, Value, TileShape), Option<Value>, i64);

/// The memory of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Bytes of a region: its value, the first byte and the end, as addresses.
    Region(Value, u64, u64),
    /// A tile in a slot of a ring, as all bytes of its region.
    Slot(Value, u64, u64),
    /// The words of barriers or counters, at which threads arrive or wait.
    Words(u64, u64),
    /// An output, by its parameter.
    Output(usize, Option<Column>),
}

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Access {
    pub(super) place: Place,
    pub(super) writes: bool,
    /// Whether all bytes of the place are accessed.
    pub(super) whole: bool,
    /// Whether it must access what has been written before.
    pub(super) needs: bool,
}

/// When an access is known to be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Done {
    /// With its operation.
    Now,
    /// When its group has been waited for.
    Group(Class),
    /// When a phase of a barrier is complete, which only claims say.
    Phase,
}

/// What is known about the tile of an access to an output: in `order`, a fact is an access with one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum When {
    /// Its values are those of now.
    Now,
    /// It is of this iteration of the loop over tiles, in which its values may have changed.
    Tile,
    /// It is of another iteration of the loop over tiles, whose tiles have other elements.
    OtherTile,
    /// Nothing is known.
    Ever,
}

pub(super) const WHENS: [When; 4] = [When::Now, When::Tile, When::OtherTile, When::Ever];

/// The number of a fact: an access, and what is known about its tile. Memory other than outputs has addresses, so that all is known.
pub(super) const fn fact(access: usize, when: When) -> usize {
    4 * access + when as usize
}

/// The access and the knowledge of a fact.
pub(super) fn parts(fact: usize) -> (usize, When) {
    (fact / 4, WHENS[fact % 4])
}

/// All accesses of a kernel.
#[derive(Default)]
pub(super) struct Accesses {
    pub(super) all: Vec<Access>,
    numbers: SortedMap<Access, usize>,
    /// The accesses of each operation, and when they are complete.
    of: SortedMap<OpId, (Vec<usize>, Option<Done>)>,
    /// The facts with which each access conflicts.
    conflicts: Vec<Bits>,
    /// The regions of rings about which several roles make claims.
    pub(super) joined: SortedSet<Value>,
}

impl Accesses {
    pub(super) fn new(kernel: &Kernel) -> Accesses {
        let mut all = Accesses::default();
        let look = Look { kernel };
        kernel.walk(&mut |id, op| {
            let own = look.accesses(op);
            if own.is_empty() {
                return;
            }
            let done = match op.kind.completion() {
                Completion::Immediate => Done::Now,
                Completion::Prefix(class) => Done::Group(class),
                Completion::Phase => Done::Phase,
            };
            // Equal accesses of several operations have one number, so that a set of accesses has one bit for all of
            // them.
            let numbers = own.into_iter().map(|access| all.number(access)).collect();
            all.of.insert(id, (numbers, Some(done)));
        });
        // Once for each pair, and not again at each node: in the analysis, a conflict is an intersection of two sets of
        // bits.
        let conflicts = |new: &Access| {
            let mut bits = Bits::new(4 * all.all.len());
            for (number, old) in all.all.iter().enumerate() {
                WHENS
                    .into_iter()
                    .filter(|when| conflict(new, old, *when))
                    .for_each(|when| bits.insert(fact(number, when)));
            }
            bits
        };
        all.conflicts = all.all.iter().map(conflicts).collect();
        all.joined = joined(kernel);
        all
    }

    fn number(&mut self, access: Access) -> usize {
        *self.numbers.entry(access).or_insert_with(|| {
            self.all.push(access);
            self.all.len() - 1
        })
    }

    /// The accesses of an operation, and when they are complete.
    pub(super) fn of(&self, id: OpId) -> (&[usize], Done) {
        self.of.get(&id).map_or((&[], Done::Now), |(all, done)| (all, done.unwrap_or(Done::Now)))
    }

    /// The facts with which an access conflicts.
    pub(super) fn conflicts(&self, access: usize) -> &Bits {
        &self.conflicts[access]
    }

    /// Whether the tile of an access matters, and may be another one in another iteration.
    pub(super) fn output(&self, access: usize) -> Option<usize> {
        if let Place::Output(param, _) = self.all[access].place { Some(param) } else { None }
    }
}

/// The regions of rings about which several roles make claims.
fn joined(kernel: &Kernel) -> SortedSet<Value> {
    let mut claimed: SortedMap<Value, SortedSet<usize>> = SortedMap::new();
    for (role, (_, block)) in threads(kernel).iter().enumerate() {
        kernel.walk_block(*block, &mut |_, op| {
            let region = op.args.first().filter(|_| matches!(op.kind, OpKind::Ttg(TtgOp::Claim(..))));
            if let Some(region) = region {
                claimed.entry(*region).or_default().insert(role);
            }
        });
    }
    // A ring of one role has no reader that would wait at its end for what is still in flight.
    claimed.into_iter().filter(|(_, roles)| roles.len() > 1).map(|(region, _)| region).collect()
}

/// Whether a new access and an earlier one may be to the same bytes, and one of them writes.
fn conflict(new: &Access, old: &Access, when: When) -> bool {
    // Reads in any order see the same.
    if !(new.writes || old.writes) {
        return false;
    }
    match (new.place, old.place) {
        (Place::Slot(ring, ..), Place::Slot(other, ..)) if ring == other => false,
        (Place::Words(..), Place::Words(..)) => false,
        (Place::Output(a, new), Place::Output(b, old)) => {
            let other_column = |(x, y): (Column, Column)| x.0 == y.0 && x.1 == y.1 && x.2 != y.2;
            // Only what is known at both accesses may be compared: equal bases name one number while the values are
            // those of now, and other tiles of a loop over tiles are other elements whatever their columns. In all
            // other cases they are taken to overlap.
            let apart = match when {
                When::Now => new.zip(old).is_some_and(other_column),
                When::OtherTile => true,
                When::Tile | When::Ever => false,
            };
            a == b && !apart
        }
        (Place::Output(..), _) | (_, Place::Output(..)) => false,
        (
            Place::Region(_, first, end) | Place::Slot(_, first, end) | Place::Words(first, end),
            Place::Region(_, start, last) | Place::Slot(_, start, last) | Place::Words(start, last),
        ) => first < last && start < end,
    }
}

struct Look<'k> {
    kernel: &'k Kernel,
}

impl Look<'_> {
    fn accesses(&self, op: &Op) -> Vec<Access> {
        let mut found = Vec::new();
        let opaque = is_opaque(&op.kind) && !matches!(op.kind, OpKind::Region(RegionOp::Read));
        for access in traffic(&op.kind).accesses.iter().flatten() {
            let wanted = |ty: Ty| match access.on {
                On::Regions => ty == Ty::Barrier(BarrierTy::Region),
                On::Words => ty == Ty::Barrier(BarrierTy::Mbarrier),
                On::Local => matches!(ty, Ty::Smem(..)),
                // `output` finds these. Rings have been lowered.
                On::Tensor | On::Stage => false,
            };
            let places = op.args.iter().filter(|v| wanted(self.kernel.ty(**v))).filter_map(|v| self.shared(*v));
            // Opaque code need not read what it is declared to read.
            // Of opaque code it is known what it may read, and not what it must.
            let needs = access.reads && !opaque;
            found.extend(places.map(|(place, whole)| Access { place, writes: access.writes, whole, needs }));
            if access.on == On::Tensor {
                found.extend(op.args.first().and_then(|v| self.output(*v, access.writes)));
            }
        }
        let offsets = matches!(op.kind, OpKind::Segment | OpKind::RaggedCount { .. } | OpKind::RaggedTile { .. });
        if offsets {
            found.extend(op.args.iter().filter_map(|v| self.output(*v, false)));
        }
        self.besides(op, &mut found);
        found
    }

    /// The accesses that the table does not have: those of arrivals and waits to words, and those of a print to the region that its warps
    /// share.
    fn besides(&self, op: &Op, found: &mut Vec<Access>) {
        // As a write: an arrival changes the word, so that it conflicts with the initialisation of the word, but with
        // no other arrival (`conflict`).
        let used = |writes: bool| Access { place: Place::Words(0, 0), writes, whole: false, needs: false };
        match op.kind.family() {
            // These only declare or select barriers.
            Family::Nv(NvOp::MbarrierAlloc { .. } | NvOp::MbarrierAt) => {}
            // Their words are in the table.
            Family::Nv(NvOp::MbarrierInit { .. } | NvOp::MbarrierInval | NvOp::SequenceInit) => {}
            Family::Nv(NvOp::SequenceStore | NvOp::SequenceWait) => {
                found.extend(op.args.first().and_then(|v| self.words(*v)).map(|place| Access { place, ..used(true) }));
            }
            Family::Nv(_) => {
                let barriers = op.args.iter().filter(|v| self.kernel.ty(**v) == Ty::Barrier(BarrierTy::Mbarrier));
                found.extend(barriers.filter_map(|v| self.words(*v)).map(|place| Access { place, ..used(true) }));
            }
            Family::Data(_) if matches!(op.kind, OpKind::Print(_)) => {
                let regions = op.args.iter().filter(|v| self.kernel.ty(**v) == Ty::Barrier(BarrierTy::Region));
                let places = regions.filter_map(|v| self.shared(*v));
                found.extend(places.map(|(place, whole)| Access { place, writes: true, whole, needs: false }));
            }
            // All accesses of these operations are in the table.
            Family::Data(_)
            | Family::Flow(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Amd(_) => {}
        }
    }

    /// The bytes of a region.
    fn region(&self, region: Value) -> Option<(u64, u64, u64)> {
        let OpKind::Region(RegionOp::Place { offset, bytes, parts }) = self.kernel.def_op(region)?.kind else {
            return None;
        };
        let first = u64::from(offset);
        Some((first, first + u64::from(bytes), u64::from(bytes) / u64::from(parts.max(1))))
    }

    /// The shared memory to which a value refers: a tile, a region or a part of one, or the words of barriers. Whether it is all of it.
    fn shared(&self, value: Value) -> Option<(Place, bool)> {
        let region = region_of(self.kernel, value)?;
        let (first, end, part) = self.region(region)?;
        match self.kernel.ty(value) {
            Ty::Smem(..) if picked(self.kernel, value).is_some() => Some((Place::Slot(region, first, end), false)),
            Ty::Smem(..) => {
                let (from, to) = bytes_in_part(self.kernel, value);
                let place = Place::Region(region, first.saturating_add(from), first.saturating_add(to));
                Some((place, !self.is_slice(value)))
            }
            Ty::Barrier(BarrierTy::Mbarrier) => {
                // The words are initialised: this is no arrival.
                let (first, end) = self.alloc(value, first)?;
                Some((Place::Region(region, first, end), true))
            }
            Ty::Barrier(BarrierTy::Region) => Some(match self.index(value) {
                None => (Place::Region(region, first, end), true),
                // A constant index names the bytes of one part. Any other may name each of them, so that the access is
                // to all, and to none as a whole.
                Some(Some(index)) => {
                    let from = first.saturating_add(part.saturating_mul(index));
                    (Place::Region(region, from, from.saturating_add(part)), true)
                }
                Some(None) => (Place::Region(region, first, end), false),
            }),
            Ty::Scalar(_)
            | Ty::Tile(..)
            | Ty::Tensor(..)
            | Ty::Source(..)
            | Ty::Compute(..)
            | Ty::Acc(..)
            | Ty::Token(..)
            | Ty::Barrier(_) => None,
        }
    }

    /// Whether a tile is a part of another one.
    fn is_slice(&self, tile: Value) -> bool {
        let mut at = tile;
        // Towards the region, from a value to that of which it is a part: definitions come before uses, so this ends.
        while let Some(op) = self.kernel.def_op(at).filter(|op| !matches!(op.kind, OpKind::Region(_))) {
            if matches!(op.kind, OpKind::Local(LocalOp::Slice { .. })) {
                let own = self.kernel.ty(at).tile_shape().map(Vec::<u32>::from);
                return own != self.kernel.encoding(at).map(|e| e.extents.clone());
            }
            let Some(of) = op.args.first() else { return true };
            at = *of;
        }
        false
    }

    /// The index of a part of a region; `None` for a whole region, and none in it if it is not a constant.
    fn index(&self, part: Value) -> Option<Option<u64>> {
        let op = self.kernel.def_op(part).filter(|op| op.kind == OpKind::Region(RegionOp::At))?;
        Some(op.args.get(1).and_then(|i| self.kernel.int_constant(*i)).and_then(|i| u64::try_from(i).ok()))
    }

    /// The words of the barriers of an `alloc`, in a region that begins here.
    fn alloc(&self, barrier: Value, region: u64) -> Option<(u64, u64)> {
        let mut at = barrier;
        loop {
            let op = self.kernel.def_op(at)?;
            if let OpKind::Nv(NvOp::MbarrierAlloc { at, n }) = op.kind {
                let first = region + u64::from(at);
                return Some((first, first + WORD * u64::from(n)));
            }
            at = *op.args.first()?;
        }
    }

    /// The words at which threads arrive or wait: barriers, or counters.
    fn words(&self, value: Value) -> Option<Place> {
        let (first, end, _) = self.region(region_of(self.kernel, value)?)?;
        let (first, end) = self.alloc(value, first).unwrap_or((first, end));
        Some(Place::Words(first, end))
    }

    /// The access to an output that a value is, or is a view or a tile of.
    fn output(&self, value: Value, writes: bool) -> Option<Access> {
        let mut at = tensor_of(self.kernel, value)?;
        if !matches!(self.kernel.ty(at), Ty::Tensor(..)) {
            return None;
        }
        // Views of views lead to a parameter, each defined before the next.
        let param = loop {
            match self.kernel.value(at).def {
                Def::Param(param) => break param,
                Def::Result(op, _) => at = *self.kernel.op(op).args.first()?,
                // Tensors are not carried.
                Def::BlockArg(..) => return None,
            }
        };
        let written = matches!(
            self.kernel.sig.params.get(param).map(|p| &p.kind),
            Some(ParamKind::Tensor { access: Mode::Mut, .. })
        );
        let place = Place::Output(param, self.column(value));
        // Inputs are written by nothing, so that no access to one conflicts.
        written.then_some(Access { place, writes, whole: false, needs: false })
    }

    fn column(&self, tile: Value) -> Option<Column> {
        let op = self.kernel.def_op(tile)?;
        let (OpKind::Ttg(TtgOp::Source(Unit::Tile, shape)), [tensor, row, column, _]) = (&op.kind, &op.args[..]) else {
            return None;
        };
        let of = (*tensor, *row, *shape);
        if let Some(number) = self.kernel.int_constant(*column) {
            return Some((of, None, number));
        }
        let sum = self.kernel.def_op(*column).filter(|op| op.kind == OpKind::Binary(BinOp::Add))?;
        let [base, by] = sum.args[..] else { return None };
        Some((of, Some(base), self.kernel.int_constant(by)?))
    }
}
