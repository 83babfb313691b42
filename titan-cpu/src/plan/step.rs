//! The steps of programs, in families; the slots that a step sets, and the blocks inside of it.

use super::group::Group;
use super::rings::RingStep;
use super::{BlockId, Combine, ForLoop, Moves, Place, Restride, RowIndex, ScalarSlot, Slot, TileSlot, ViewSlot};
use crate::ops::ScalarFn;
use crate::ops::reduce::ReduceFn;
use crate::ops::scan::{ArgReduceFn, ScanFn};
use titan_core::ir::Elem;

/// A step.
#[derive(Debug)]
pub(crate) enum Step {
    Fact(FactStep),
    Tile(TileStep),
    Memory(MemoryStep),
    Ring(RingStep),
    Scalar {
        to: ScalarSlot,
        f: ScalarFn,
        args: [ScalarSlot; 3],
    },
    Elements(Box<Group>),
    Print {
        format: String,
        args: Vec<(Slot, Elem)>,
    },
    Assert {
        message: String,
        condition: Slot,
    },
    For(Box<ForLoop>),
    Loop {
        enter: Moves,
        body: BlockId,
    },
    If {
        condition: ScalarSlot,
        then: BlockId,
        other: BlockId,
    },
    /// The blocks of the roles, which take turns.
    Roles(Vec<BlockId>),
    Yield(Moves),
    Break(u32, Moves),
    Continue(u32, Moves),
    Return,
}

/// Properties of programs and tensors, and views.
#[derive(Debug)]
pub(crate) enum FactStep {
    ProgramId { to: ScalarSlot, axis: usize },
    NumPrograms { to: ScalarSlot, axis: usize },
    Dim { to: ScalarSlot, view: ViewSlot, axis: u8 },
    Present { to: ScalarSlot, view: ViewSlot },
    Unflatten { to: Vec<ScalarSlot>, index: ScalarSlot, extents: Vec<ScalarSlot>, group: Option<i32> },
    Index { to: ViewSlot, from: ViewSlot, axis: u8, at: ScalarSlot },
    Slice { to: ViewSlot, from: ViewSlot, axis: u8, range: [ScalarSlot; 2] },
    Segment { to: ViewSlot, from: ViewSlot, offsets: ViewSlot, at: ScalarSlot },
    RaggedCount { to: ScalarSlot, view: ViewSlot, offsets: ViewSlot, tile: [i32; 2] },
    RaggedTile { to: [ScalarSlot; 3], view: ViewSlot, offsets: ViewSlot, number: ScalarSlot, tile: [i32; 2] },
}

/// Steps that compute tiles from tiles.
#[derive(Debug)]
pub(crate) enum TileStep {
    Iota {
        to: TileSlot,
    },
    Splat {
        to: TileSlot,
        from: ScalarSlot,
    },
    /// The one element of a tile.
    Extract {
        to: ScalarSlot,
        from: TileSlot,
        elem: Elem,
    },
    Restride {
        to: TileSlot,
        from: TileSlot,
        how: Restride,
    },
    Interleave {
        to: TileSlot,
        from: [TileSlot; 2],
    },
    Split {
        to: [TileSlot; 2],
        from: TileSlot,
    },
    Concat {
        to: TileSlot,
        from: [TileSlot; 2],
        axis: usize,
    },
    Reduce {
        to: Slot,
        from: TileSlot,
        axis: usize,
        f: ReduceFn,
    },
    ArgReduce {
        to: Slot,
        index: Slot,
        from: TileSlot,
        axis: usize,
        f: ArgReduceFn,
    },
    ReduceWith {
        to: Slot,
        from: TileSlot,
        axis: usize,
        f: Combine,
    },
    Scan {
        to: TileSlot,
        from: TileSlot,
        axis: usize,
        f: ScanFn,
    },
    ScanWith {
        to: TileSlot,
        from: TileSlot,
        axis: usize,
        f: Combine,
    },
    Mma {
        to: TileSlot,
        a: TileSlot,
        b: TileSlot,
        c: TileSlot,
    },
}

/// Accesses to tensors.
#[derive(Debug)]
pub(crate) enum MemoryStep {
    Load { to: TileSlot, from: Place, pad: ScalarSlot },
    Store { to: Place, from: TileSlot },
    Get { to: ScalarSlot, from: Place, tensor: String },
    Set { to: Place, from: ScalarSlot, tensor: String },
    GatherRows { to: TileSlot, view: ViewSlot, rows: Vec<RowIndex>, col: ScalarSlot, pad: ScalarSlot },
    ScatterRows { view: ViewSlot, rows: Vec<RowIndex>, col: ScalarSlot, from: TileSlot },
    Gather { to: TileSlot, view: ViewSlot, at: Vec<TileSlot>, pad: ScalarSlot },
    Scatter { view: ViewSlot, at: Vec<TileSlot>, from: TileSlot },
    Atomic { view: ViewSlot, at: Vec<TileSlot>, from: TileSlot, f: ScalarFn, integer_add: bool },
    AtomicTile { to: Place, from: TileSlot, f: ScalarFn, integer_add: bool },
    Fetch { to: TileSlot, view: ViewSlot, at: Vec<TileSlot>, from: TileSlot, f: ScalarFn },
    CompareExchange { to: [TileSlot; 2], view: ViewSlot, at: Vec<TileSlot>, current: TileSlot, new: TileSlot },
}

impl Step {
    /// Calls `f` with every scalar that the step itself sets.
    pub(super) fn for_each_set(&self, f: &mut dyn FnMut(ScalarSlot)) {
        match self {
            Step::Fact(step) => step.for_each_set(f),
            Step::Tile(step) => step.for_each_set(f),
            Step::Memory(step) => step.for_each_set(f),
            Step::Ring(step) => step.for_each_set(f),
            Step::Scalar { to, .. } => f(*to),
            Step::Elements(group) => group.outs.iter().for_each(|out| if_scalar(out.slot(), f)),
            Step::For(inner) => {
                f(inner.index);
                inner.enter.iter().chain(&inner.leave).for_each(|(_, to)| if_scalar(*to, f));
            }
            Step::Loop { enter: moves, .. } | Step::Yield(moves) | Step::Break(_, moves) | Step::Continue(_, moves) => {
                moves.iter().for_each(|(_, to)| if_scalar(*to, f));
            }
            Step::Print { .. } | Step::Assert { .. } | Step::If { .. } | Step::Roles(_) | Step::Return => {}
        }
    }

    /// The blocks inside of a step.
    pub(super) fn inner_blocks(&self) -> Vec<BlockId> {
        match self {
            Step::For(f) => vec![f.body],
            Step::Loop { body, .. } => vec![*body],
            Step::If { then, other, .. } => vec![*then, *other],
            Step::Roles(blocks) => blocks.clone(),
            Step::Tile(TileStep::ReduceWith { f, .. } | TileStep::ScanWith { f, .. }) => vec![f.block],
            Step::Tile(
                TileStep::Iota { .. }
                | TileStep::Splat { .. }
                | TileStep::Extract { .. }
                | TileStep::Restride { .. }
                | TileStep::Interleave { .. }
                | TileStep::Concat { .. }
                | TileStep::Split { .. }
                | TileStep::Reduce { .. }
                | TileStep::ArgReduce { .. }
                | TileStep::Scan { .. }
                | TileStep::Mma { .. },
            )
            | Step::Fact(_)
            | Step::Memory(_)
            | Step::Ring(_)
            | Step::Scalar { .. }
            | Step::Elements(_)
            | Step::Print { .. }
            | Step::Assert { .. }
            | Step::Yield(_)
            | Step::Break(..)
            | Step::Continue(..)
            | Step::Return => Vec::new(),
        }
    }
}

fn if_scalar(slot: Slot, f: &mut dyn FnMut(ScalarSlot)) {
    match slot {
        Slot::Scalar(scalar) => f(scalar),
        Slot::Tile(_) | Slot::View(_) => {}
    }
}

impl FactStep {
    fn for_each_set(&self, f: &mut dyn FnMut(ScalarSlot)) {
        match self {
            FactStep::ProgramId { to, .. }
            | FactStep::NumPrograms { to, .. }
            | FactStep::Dim { to, .. }
            | FactStep::Present { to, .. }
            | FactStep::RaggedCount { to, .. } => f(*to),
            FactStep::Unflatten { to, .. } => to.iter().for_each(|to| f(*to)),
            FactStep::RaggedTile { to, .. } => to.iter().for_each(|to| f(*to)),
            FactStep::Index { .. } | FactStep::Slice { .. } | FactStep::Segment { .. } => {}
        }
    }
}

impl TileStep {
    fn for_each_set(&self, f: &mut dyn FnMut(ScalarSlot)) {
        match self {
            TileStep::Extract { to, .. } => f(*to),
            TileStep::Reduce { to, .. } => if_scalar(*to, f),
            TileStep::ArgReduce { to, index, .. } => {
                if_scalar(*to, f);
                if_scalar(*index, f);
            }
            TileStep::ReduceWith { to, f: combine, .. } => {
                if_scalar(*to, f);
                combine.args.iter().chain([&combine.result]).for_each(|to| f(*to));
            }
            TileStep::ScanWith { f: combine, .. } => combine.args.iter().chain([&combine.result]).for_each(|to| f(*to)),
            TileStep::Iota { .. }
            | TileStep::Splat { .. }
            | TileStep::Restride { .. }
            | TileStep::Interleave { .. }
            | TileStep::Concat { .. }
            | TileStep::Split { .. }
            | TileStep::Scan { .. }
            | TileStep::Mma { .. } => {}
        }
    }
}

impl MemoryStep {
    fn for_each_set(&self, f: &mut dyn FnMut(ScalarSlot)) {
        match self {
            MemoryStep::Get { to, .. } => f(*to),
            MemoryStep::Load { .. }
            | MemoryStep::Store { .. }
            | MemoryStep::Set { .. }
            | MemoryStep::GatherRows { .. }
            | MemoryStep::ScatterRows { .. }
            | MemoryStep::Gather { .. }
            | MemoryStep::Scatter { .. }
            | MemoryStep::Atomic { .. }
            | MemoryStep::AtomicTile { .. }
            | MemoryStep::Fetch { .. }
            | MemoryStep::CompareExchange { .. } => {}
        }
    }
}
