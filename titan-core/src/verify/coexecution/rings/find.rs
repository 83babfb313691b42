//! The claims of a barrier program, and its accesses to rings.

use super::super::events::Events;
use super::pairs::Side;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::traffic::{On, traffic};
use crate::ir::{
    BarrierTy, Block, Claim, Class, Completion, Kernel, LocalOp, NvOp, Op, OpId, OpKind, Pipe, RegionOp, TtgOp, Ty,
    Value,
};

/// The completion condition of a claim that a stage is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) struct FilledBy {
    /// The event for which each thread of the role arrives; `None` if only one thread arrives, with the bytes of bulk copies.
    pub(in crate::verify) threads: Option<Arrival>,
    /// Whether one thread starts bulk copies whose bytes the barrier expects.
    pub(in crate::verify) bulk: bool,
}

/// The event for which each thread arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) enum Arrival {
    /// The completion of its asynchronous copies.
    Copies,
    /// Its earlier synchronous accesses.
    Stores,
    /// Its earlier accesses, after a wait for all its copies.
    All,
}

/// The time by which an access is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum When {
    /// With its operation.
    Now,
    /// When a group of this class has been waited for.
    Group(Class),
    /// When a phase of a barrier is complete.
    Phase,
}

/// An access to a slot.
#[derive(Clone, Copy, Debug)]
pub(in crate::verify) struct Access {
    pub(in crate::verify) region: Value,
    /// The index of the slot.
    pub(in crate::verify) slot: Value,
    pub(in crate::verify) writes: bool,
    pub(in crate::verify) when: When,
    /// The bytes that are accessed, by their number among those that are accessed in a part of the region.
    pub(in crate::verify) piece: u8,
    /// Whether all of these bytes are written.
    pub(in crate::verify) whole: bool,
    /// Whether this marks the stage as one without contents: it stores a constant other than 0 to a word beside the ring.
    pub(in crate::verify) poisons: bool,
}

/// The ranges of bytes that operations access in a part of a region. A set of them is a mask of their numbers.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Pieces {
    /// The number of the first one.
    first: u8,
    bytes: Vec<(u64, u64)>,
}

impl Pieces {
    /// The ranges that overlap one of them.
    pub(in crate::verify) fn overlapping(&self, piece: u8) -> u64 {
        let Some(own) = self.range(piece) else { return u64::MAX };
        self.set(|other| own.0 < other.1 && other.0 < own.1)
    }

    /// Whether these ranges together have all bytes of one of them.
    pub(in crate::verify) fn cover(&self, all: u64, piece: u8) -> bool {
        let Some((mut next, end)) = self.range(piece) else { return false };
        // The ranges are in ascending order.
        for (number, (first, last)) in (self.first..).zip(&self.bytes) {
            if all >> number & 1 == 1 && *first <= next {
                next = next.max(*last);
            }
        }
        next >= end
    }

    fn range(&self, piece: u8) -> Option<(u64, u64)> {
        self.bytes.get(usize::from(piece.checked_sub(self.first)?)).copied()
    }

    fn set(&self, holds: impl Fn(&(u64, u64)) -> bool) -> u64 {
        (self.first..).zip(&self.bytes).filter(|(_, b)| holds(b)).fold(0, |set, (n, _)| set | 1 << n)
    }
}

/// The numbers of pieces of the region of a ring, and of those of a region with words beside it.
pub(super) const OF_RING: u8 = 56;
const OF_WORDS: u8 = 8;

/// The claims and accesses of a program.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Claims {
    /// The ring of each region to which a claim refers.
    pub(in crate::verify) ring_of: SortedMap<Value, Pipe>,
    /// Regions with a word for each slot of a ring, with that ring, as far as known.
    pub(in crate::verify) companions: SortedMap<Value, Pipe>,
    /// Staging rings: a role stores from them the contents that it has written itself.
    pub(in crate::verify) staging: SortedSet<Pipe>,
    /// The accesses of operations to slots.
    pub(in crate::verify) accesses: SortedMap<OpId, Vec<Access>>,
    /// Operations that access the memory of a ring not as tiles of a slot.
    pub(in crate::verify) slotless: SortedSet<OpId>,
    /// Rings whose memory an operation accesses through another region, or opaque code as a whole.
    pub(in crate::verify) under: SortedMap<OpId, SortedSet<Pipe>>,
    pub(in crate::verify) filled_by: SortedMap<OpId, FilledBy>,
    /// The rings whose claims state the number of the round; those of the others state its parity.
    pub(in crate::verify) counted: SortedSet<Pipe>,
    /// The rings between roles, whose barriers order accesses in different rounds.
    pub(in crate::verify) joined: SortedSet<Pipe>,
    /// The bytes that are accessed in a part of each region.
    pub(in crate::verify) pieces: SortedMap<Value, Pieces>,
    /// For each claim that a stage is filled, on each path, the bytes that are written for it; none if it is marked as one without contents.
    pub(in crate::verify) fills: SortedSet<(Pipe, OpId, u64)>,
    /// The bytes of stages that operations read.
    pub(in crate::verify) reads: SortedSet<(Pipe, Value, u8, OpId)>,
    /// Releases that no barrier of the lanes of each warp precedes.
    pub(in crate::verify) unmet: SortedSet<OpId>,
    /// Claims and accesses, and the loops and branches around them.
    pub(in crate::verify) events: SortedSet<OpId>,
    /// The values that are defined in the regions of an operation.
    pub(in crate::verify) inside: SortedMap<OpId, SortedSet<Value>>,
    /// The clocks that advance in the regions of an operation.
    pub(in crate::verify) moved: SortedMap<OpId, SortedSet<Side>>,
}

impl Claims {
    pub(in crate::verify) fn of(kernel: &Kernel) -> Claims {
        let mut all = Claims::default();
        let mut next = SortedSet::new();
        let mut rings = SortedSet::new();
        kernel.walk(&mut |_, op| {
            if let (OpKind::Ttg(TtgOp::Claim(claim, pipe)), Some(region)) = (&op.kind, op.args.first()) {
                all.ring_of.insert(*region, *pipe);
                rings.insert(*pipe);
                if *claim == Claim::Next {
                    next.insert(*pipe);
                }
            }
        });
        // Where no role takes the next stage as a reader, the role that fills the ring also stores from it.
        all.staging = rings.difference(&next).copied().collect();
        let mut events = SortedSet::new();
        let places = places(kernel);
        all.pieces = all.pieces(kernel);
        kernel.walk(&mut |id, op| {
            let under = all.rings_under(kernel, op, &places);
            if !under.is_empty() {
                all.under.insert(id, under);
                events.insert(id);
            }
            let grouped = matches!(
                op.kind,
                OpKind::Nv(NvOp::Commit { .. } | NvOp::WaitGroup { .. } | NvOp::BarrierSync { .. } | NvOp::WarpSync)
                    | OpKind::Print(_)
            );
            events.extend(Some(id).filter(|_| grouped && !rings.is_empty()));
            if all.is_slotless(kernel, op) {
                all.slotless.insert(id);
            }
            let accesses = all.accesses_of(kernel, op);
            // More pieces than a mask has bits: the access has no number, and cannot be followed.
            if accesses.iter().any(|a| a.piece >= OF_RING + OF_WORDS) {
                all.slotless.insert(id);
            }
            if matches!(op.kind, OpKind::Ttg(TtgOp::Claim(..))) || !accesses.is_empty() {
                events.insert(id);
            }
            if !accesses.is_empty() {
                all.accesses.insert(id, accesses);
            }
        });
        all.events = Events::around(kernel, events);
        all.blocks(kernel, kernel.body);
        all
    }

    /// The ranges of bytes that are accessed in a part of each region.
    fn pieces(&self, kernel: &Kernel) -> SortedMap<Value, Pieces> {
        let mut ranges: SortedMap<Value, SortedSet<(u64, u64)>> = SortedMap::new();
        kernel.walk(&mut |_, op| {
            if traffic(&op.kind).accesses.into_iter().flatten().any(|a| a.on == On::Local) {
                let tiles = op.args.iter().filter(|v| matches!(kernel.ty(**v), Ty::Smem(..)));
                for (tile, (region, _)) in tiles.filter_map(|tile| Some((tile, picked(kernel, *tile)?))) {
                    ranges.entry(region).or_default().insert(bytes_in_part(kernel, *tile));
                }
            }
        });
        let numbered = |(region, bytes): (Value, SortedSet<(u64, u64)>)| {
            let (first, most) = if self.ring_of.contains_key(&region) { (0, OF_RING) } else { (OF_RING, OF_WORDS) };
            // Numbers of a ring and of words beside it do not overlap, so that one mask of a stage has both.
            (region, Pieces { first, bytes: bytes.into_iter().take(most.into()).collect() })
        };
        ranges.into_iter().map(numbered).collect()
    }

    /// The accesses of an operation to slots: the tiles among its operands.
    fn accesses_of(&self, kernel: &Kernel, op: &Op) -> Vec<Access> {
        let Some(own) = traffic(&op.kind).accesses.into_iter().flatten().find(|a| a.on == On::Local) else {
            return Vec::new();
        };
        let when = match op.kind.completion() {
            Completion::Immediate => When::Now,
            Completion::Prefix(class) => When::Group(class),
            Completion::Phase => When::Phase,
        };
        let access = |tile: Value| {
            let (region, slot) = picked(kernel, tile)?;
            let bytes = bytes_in_part(kernel, tile);
            let pieces = self.pieces.get(&region)?;
            // The number stands for exactly these bytes. Ranges that overlap have different numbers, and `overlapping`
            // says which.
            let number = pieces.bytes.iter().position(|own| *own == bytes);
            let piece = number.and_then(|n| Some(pieces.first + u8::try_from(n).ok()?)).unwrap_or(u8::MAX);
            let poisons = own.writes && !self.ring_of.contains_key(&region) && stores_a_mark(kernel, op);
            Some(Access { region, slot, writes: own.writes, when, piece, whole: is_whole(kernel, tile), poisons })
        };
        let tiles = op.args.iter().filter(|v| matches!(kernel.ty(**v), Ty::Smem(..)));
        tiles.filter_map(|tile| access(*tile)).collect()
    }

    /// Whether an operation accesses the memory of a ring not as tiles of a slot: without naming a slot, or a slot as a region, of which no
    /// claim tells when it is accessed. Opaque code that accesses the whole region is not meant: the ring must be idle then (`rings_under`).
    fn is_slotless(&self, kernel: &Kernel, op: &Op) -> bool {
        let raw = accesses_regions(&op.kind);
        let is_part = |v: &&Value| kernel.ty(**v) == Ty::Barrier(BarrierTy::Region) && picked(kernel, **v).is_some();
        let mut parts = op.args.iter().filter(is_part).filter_map(|v| region_of(kernel, *v));
        if raw && parts.any(|region| self.ring_of.contains_key(&region)) {
            return true;
        }
        let names = matches!(op.kind, OpKind::Region(_) | OpKind::Ttg(TtgOp::Claim(..)));
        let of_ring = |v: &Value| region_of(kernel, *v).is_some_and(|region| self.ring_of.contains_key(&region));
        !names && !is_view(kernel, op) && op.args.iter().any(|v| of_ring(v) && picked(kernel, *v).is_none())
    }

    /// The rings whose memory an operation accesses through another region that overlaps them, or as whole regions.
    fn rings_under(&self, kernel: &Kernel, op: &Op, places: &SortedMap<Value, (u64, u64)>) -> SortedSet<Pipe> {
        let opaque = is_opaque(&op.kind);
        let declares = matches!(op.kind, OpKind::Nv(NvOp::MbarrierAlloc { .. } | NvOp::MbarrierAt));
        let names = declares || matches!(op.kind, OpKind::Region(_) | OpKind::Ttg(TtgOp::Claim(..))) && !opaque;
        let touched = op.args.iter().filter(|_| !names).filter_map(|v| region_of(kernel, *v));
        let under = touched.filter(|region| opaque || !self.ring_of.contains_key(region));
        under
            .filter_map(|region| places.get(&region))
            .flat_map(|(first, end)| {
                // By addresses, as regions may share bytes.
                let meets = move |(f, e): &(u64, u64)| f < end && first < e;
                self.ring_of.iter().filter(move |(ring, _)| places.get(ring).is_some_and(meets)).map(|(_, p)| *p)
            })
            .collect()
    }

    /// Records the values defined and the clocks advanced in a block; returns both.
    fn blocks(&mut self, kernel: &Kernel, block: Block) -> (SortedSet<Value>, SortedSet<Side>) {
        let mut made: SortedSet<Value> = kernel.block(block).args.iter().copied().collect();
        let mut moved = SortedSet::new();
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            made.extend(&op.results);
            if let OpKind::Ttg(TtgOp::Claim(claim, pipe)) = op.kind {
                match claim {
                    Claim::Acquired => drop(moved.insert((pipe, true))),
                    Claim::Next => drop(moved.insert((pipe, false))),
                    Claim::Filled | Claim::Ready | Claim::Released => {}
                }
            }
            if op.regions.is_empty() {
                continue;
            }
            let (mut inner, mut moving) = (SortedSet::new(), SortedSet::new());
            for region in &op.regions {
                // Blocks are nested finitely deep. What is inside of an operation is inside of those around it, too.
                let (values, sides) = self.blocks(kernel, *region);
                inner.extend(values);
                moving.extend(sides);
            }
            made.extend(&inner);
            moved.extend(&moving);
            self.inside.insert(*id, inner);
            self.moved.insert(*id, moving);
        }
        (made, moved)
    }
}

/// Whether an operation is opaque code, which accesses regions as a whole.
pub(in crate::verify) fn is_opaque(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Region(_)) && accesses_regions(kind)
}

/// Whether an operation accesses the memory of regions, or of parts of them, and not tiles in them.
fn accesses_regions(kind: &OpKind) -> bool {
    traffic(kind).accesses.into_iter().flatten().any(|a| a.on == On::Regions)
}

/// The byte ranges of the regions.
pub(in crate::verify) fn places(kernel: &Kernel) -> SortedMap<Value, (u64, u64)> {
    let mut places = SortedMap::new();
    kernel.walk(&mut |_, op| {
        if let (OpKind::Region(RegionOp::Place { offset, bytes, .. }), [region]) = (&op.kind, &op.results[..]) {
            let first = u64::from(*offset);
            places.insert(*region, (first, first + u64::from(*bytes)));
        }
    });
    places
}

/// Whether an operation only declares or selects a part of shared memory, and accesses nothing.
pub(in crate::verify) fn is_view(kernel: &Kernel, op: &Op) -> bool {
    op.results.iter().any(|v| matches!(kernel.ty(*v), Ty::Smem(..)))
}

/// The region to which a value refers, as a whole or in part.
pub(in crate::verify) fn region_of(kernel: &Kernel, value: Value) -> Option<Value> {
    let mut at = value;
    // Each round goes from a value to one from which it was made; values are defined before they are used, so this ends
    // at the region.
    while matches!(kernel.ty(at), Ty::Smem(..) | Ty::Barrier(BarrierTy::Region | BarrierTy::Mbarrier)) {
        let op = kernel.def_op(at)?;
        if matches!(op.kind, OpKind::Region(RegionOp::Place { .. })) {
            return Some(at);
        }
        at = *op.args.first()?;
    }
    None
}

/// The region and the index that select a tile in shared memory.
pub(in crate::verify) fn picked(kernel: &Kernel, tile: Value) -> Option<(Value, Value)> {
    let mut at = tile;
    loop {
        let op = kernel.def_op(at)?;
        if op.kind == OpKind::Region(RegionOp::At) {
            return Some((op.args[0], op.args[1]));
        }
        at = *op.args.first()?;
    }
}

/// The bytes that a tile occupies in its part of a region: the first one and the end. A part of a tile is treated as the whole tile.
pub(in crate::verify) fn bytes_in_part(kernel: &Kernel, tile: Value) -> (u64, u64) {
    let mut at = tile;
    while let Some(op) = kernel.def_op(at) {
        if let OpKind::Region(RegionOp::Tile { offset, .. }) = op.kind {
            let bytes = kernel.encoding(at).map_or(u64::from(u32::MAX), |e| u64::from(e.bytes()));
            return (u64::from(offset), u64::from(offset) + bytes);
        }
        let Some(of) = op.args.first() else { break };
        at = *of;
    }
    (0, u64::MAX)
}

/// Whether an access to a tile, or to a part of one, is to all bytes of the tile as its encoding places it.
fn is_whole(kernel: &Kernel, tile: Value) -> bool {
    let mut at = tile;
    while let Some(op) = kernel.def_op(at) {
        if let OpKind::Local(LocalOp::Slice { .. }) = op.kind {
            let own = kernel.ty(at).tile_shape().map(Vec::<u32>::from);
            return own.is_some() && own == kernel.encoding(at).map(|e| e.extents.clone());
        }
        if matches!(op.kind, OpKind::Region(RegionOp::Tile { .. })) {
            return true;
        }
        let Some(of) = op.args.first() else { break };
        at = *of;
    }
    false
}

/// Whether an operation stores a constant other than 0.
fn stores_a_mark(kernel: &Kernel, op: &Op) -> bool {
    let stored = op.args.first().filter(|_| op.kind == OpKind::Local(LocalOp::Store));
    let splat = stored.and_then(|v| kernel.def_op(*v)).filter(|op| matches!(op.kind, OpKind::Splat(_)));
    splat.and_then(|op| kernel.int_constant(*op.args.first()?)).is_some_and(|mark| mark != 0)
}
