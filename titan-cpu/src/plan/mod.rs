//! The compiled form of a kernel: a tree of blocks of steps over numbered slots.
//!
//! There are three kinds of slots: scalars (a `u64` each), tiles (a handle of a buffer, or a lazy form) and views. A value of
//! the IR has one slot for life; a tile's buffer goes back to the pool after the step that uses it last.
//!
//! * [`step`]: the steps. [`lower`]: IR to steps, family by family. [`slots`]: where values are.
//! * [`group`]: elementwise operations of one shape as one step. [`open`], [`close`]: how operations become one.
//! * [`rings`]: rings of stages, and what is done to them. [`invariant`]: what is the same in every program.
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
mod lower_rings;
mod lower_tile;
mod open;
pub(crate) mod product;
pub(crate) mod rings;
mod slots;
mod step;

use product::ProductLoop;
use rings::RingPlan;
pub(crate) use step::{FactStep, MemoryStep, Step, TileStep};
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

/// The facts known about a tile slot.
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
    /// Steps that are the same in every program: run once by each thread.
    pub(crate) prologue: BlockId,
    /// Tiles of the prologue: they outlive a program.
    pub(crate) kept: Vec<bool>,
    /// Initial scalars: the constants.
    pub(crate) scalars: Vec<u64>,
    pub(crate) tiles: Vec<TileInfo>,
    pub(crate) views: usize,
    pub(crate) rings: Vec<RingPlan>,
    /// Blocks in which a role may have to wait for another one, themselves or in blocks inside.
    pub(crate) waits: Vec<bool>,
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
