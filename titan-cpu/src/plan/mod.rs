//! The compiled form of a kernel: a tree of blocks of steps over numbered slots.
//!
//! There are three kinds of slots: scalars (a `u64` each), tiles (a handle of a buffer, or a lazy form) and views. A value of
//! the IR has one slot for life; a tile's buffer goes back to the pool after the step that uses it last.
//!
//! * [`lower`]: IR to steps, family by family.
//! * [`group`]: elementwise operations of one shape as one step. [`open`], [`close`]: how operations become one.
//! * [`invariant`]: what is the same in every program.
//! * [`live`]: after which step a tile is dead.
//!
//! Axes are those of four-dimensional tiles: a shape of lower rank has leading extents of 1.

mod close;
pub(crate) mod group;
mod invariant;
mod live;
pub(crate) mod lower;
mod lower_control;
mod lower_elements;
mod lower_memory;
mod lower_tile;
mod open;
pub(crate) mod product;

use crate::ops::ScalarFn;
use crate::ops::reduce::{ArgReduceFn, ReduceFn, ScanFn};
use group::Group;
use product::ProductLoop;
use titan_core::ir::{Access, Elem, ForKind, Loc, TileShape, Unit};

/// Number of a scalar slot.
pub(crate) type ScalarSlot = u32;
/// Number of a tile slot.
pub(crate) type TileSlot = u32;
/// Number of a view slot.
pub(crate) type ViewSlot = u32;
/// Number of a block.
pub(crate) type BlockId = usize;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Scalar(ScalarSlot),
    Tile(TileSlot),
    View(ViewSlot),
}

/// What is known of a tile slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileInfo {
    pub(crate) elem: Elem,
    pub(crate) shape: [i32; 4],
    /// Strides of the dense tile.
    pub(crate) strides: [isize; 4],
    pub(crate) rank: usize,
    /// Number of elements.
    pub(crate) len: usize,
    /// Bytes of an element in a buffer.
    pub(crate) size: usize,
    /// Number of the buffer size in [`Plan::classes`].
    pub(crate) class: usize,
}

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) struct ParamPlan {
    pub(crate) name: String,
    pub(crate) kind: ParamKind,
}

/// What a parameter is, and its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParamKind {
    Tensor { view: ViewSlot, elem: Elem, rank: usize, access: Access, optional: bool },
    Scalar { slot: ScalarSlot, elem: Elem },
}

/// A compiled kernel.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) params: Vec<ParamPlan>,
    pub(crate) blocks: Vec<Vec<Node>>,
    pub(crate) body: BlockId,
    /// What is the same in every program: run once by each thread.
    pub(crate) prologue: BlockId,
    /// Tiles of the prologue: they outlive a program.
    pub(crate) kept: Vec<bool>,
    /// Initial scalars: the constants.
    pub(crate) scalars: Vec<u64>,
    pub(crate) tiles: Vec<TileInfo>,
    pub(crate) views: usize,
    /// Buffer sizes in bytes.
    pub(crate) classes: Vec<usize>,
    /// Elements that one program computes, about.
    pub(crate) cost: u64,
}

/// A step in its block.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) step: Step,
    pub(crate) loc: Loc,
    /// Tiles used, by blocks inside too.
    pub(crate) uses: Vec<TileSlot>,
    /// Tiles made.
    pub(crate) defs: Vec<TileSlot>,
    /// Tiles that are dead afterwards.
    pub(crate) kills: Vec<TileSlot>,
}

/// Values copied at once.
pub(crate) type Moves = Vec<(Slot, Slot)>;

/// A place in a tensor: a scalar slot per axis, and the factors of the unit.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) view: ViewSlot,
    pub(crate) at: Vec<ScalarSlot>,
    pub(crate) unit: Unit,
}

/// An index of a row gather: the same for all rows, or one each.
pub(crate) type RowIndex = Slot;

/// How a tile is looked at anew without copying.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Restride {
    Reshape,
    /// Axis of the result that repeats.
    Broadcast(usize),
    /// Axis `i` of the result is this axis of the operand.
    Permute([usize; 4]),
}

/// Reduction or scan by a block: its two arguments and its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Combine {
    pub(crate) block: BlockId,
    pub(crate) args: [ScalarSlot; 2],
    pub(crate) result: ScalarSlot,
    pub(crate) init: ScalarSlot,
}

/// A counted loop.
#[derive(Debug)]
pub(crate) struct ForLoop {
    pub(crate) kind: ForKind,
    pub(crate) bounds: [ScalarSlot; 3],
    pub(crate) index: ScalarSlot,
    /// Initial values to block arguments.
    pub(crate) enter: Moves,
    /// Block arguments to results.
    pub(crate) leave: Moves,
    pub(crate) body: BlockId,
    /// If the body is one step of a matrix product.
    pub(crate) product: Option<ProductLoop>,
}

/// What happens.
#[derive(Debug)]
pub(crate) enum Step {
    ProgramId { to: ScalarSlot, axis: usize },
    NumPrograms { to: ScalarSlot, axis: usize },
    Dim { to: ScalarSlot, view: ViewSlot, axis: u8 },
    Present { to: ScalarSlot, view: ViewSlot },
    Scalar { to: ScalarSlot, f: ScalarFn, args: [ScalarSlot; 3] },
    Unflatten { to: Vec<ScalarSlot>, index: ScalarSlot, extents: Vec<ScalarSlot> },

    Iota { to: TileSlot },
    Splat { to: TileSlot, from: ScalarSlot },
    Elements(Box<Group>),
    /// The one element of a tile.
    Extract { to: ScalarSlot, from: TileSlot, elem: Elem },
    Restride { to: TileSlot, from: TileSlot, how: Restride },
    Interleave { to: TileSlot, from: [TileSlot; 2] },
    Split { to: [TileSlot; 2], from: TileSlot },
    Reduce { to: Slot, from: TileSlot, axis: usize, f: ReduceFn },
    ArgReduce { to: Slot, index: Slot, from: TileSlot, axis: usize, f: ArgReduceFn },
    ReduceWith { to: Slot, from: TileSlot, axis: usize, f: Combine },
    Scan { to: TileSlot, from: TileSlot, axis: usize, f: ScanFn },
    ScanWith { to: TileSlot, from: TileSlot, axis: usize, f: Combine },
    Mma { to: TileSlot, a: TileSlot, b: TileSlot, c: TileSlot },

    Index { to: ViewSlot, from: ViewSlot, axis: u8, at: ScalarSlot },
    Slice { to: ViewSlot, from: ViewSlot, axis: u8, range: [ScalarSlot; 2] },
    Segment { to: ViewSlot, from: ViewSlot, offsets: ViewSlot, at: ScalarSlot },
    Load { to: TileSlot, from: Place, pad: ScalarSlot },
    Store { to: Place, from: TileSlot },
    Get { to: ScalarSlot, from: Place },
    Set { to: Place, from: ScalarSlot },
    GatherRows { to: TileSlot, view: ViewSlot, rows: Vec<RowIndex>, col: ScalarSlot, pad: ScalarSlot },
    ScatterRows { view: ViewSlot, rows: Vec<RowIndex>, col: ScalarSlot, from: TileSlot },
    Gather { to: TileSlot, view: ViewSlot, at: Vec<TileSlot>, pad: ScalarSlot },
    Scatter { view: ViewSlot, at: Vec<TileSlot>, from: TileSlot },
    Atomic { view: ViewSlot, at: Vec<TileSlot>, from: TileSlot, f: ScalarFn, integer_add: bool },
    AtomicTile { to: Place, from: TileSlot, f: ScalarFn, integer_add: bool },
    RaggedCount { to: ScalarSlot, view: ViewSlot, offsets: ViewSlot, tile: [i32; 2] },
    RaggedTile { to: [ScalarSlot; 3], view: ViewSlot, offsets: ViewSlot, number: ScalarSlot, tile: [i32; 2] },

    Print { format: String, args: Vec<(Slot, Elem)> },
    Assert { message: String, condition: Slot },

    For(Box<ForLoop>),
    Loop { enter: Moves, body: BlockId },
    If { condition: ScalarSlot, then: BlockId, other: BlockId },
    Yield(Moves),
    Break(u32, Moves),
    Continue(u32, Moves),
    Return,
}

/// The extents on four axes.
pub(crate) fn shape4(shape: TileShape) -> [i32; 4] {
    let mut dims = [1; 4];
    dims[4 - shape.rank()..].copy_from_slice(&shape);
    dims
}

/// The strides of a dense tile.
pub(crate) fn dense_strides(shape: [i32; 4]) -> [isize; 4] {
    let mut strides = [1isize; 4];
    for axis in (0..3).rev() {
        strides[axis] = strides[axis + 1].wrapping_mul(isize::try_from(shape[axis + 1]).unwrap_or(1));
    }
    strides
}
