//! The compiled form of a kernel: a tree of blocks of steps over numbered slots.
//!
//! There are three kinds of slots: scalars (a `u64` each), tiles (a handle of a buffer, or a lazy form) and views. A value of
//! the IR has one slot for its lifetime; a tile's buffer returns to the pool after the step that uses it last.
//!
//! * [`step`]: the steps. [`lower`]: IR to steps, family by family. [`slots`]: the locations of values.
//! * [`group`]: elementwise operations of one shape as one step. [`open`], [`close`]: the construction of groups.
//! * [`rings`]: rings of stages, and the steps on them. [`invariant`]: steps that are the same in every program.
//! * [`live`]: the step after which a tile is dead.
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

/// The number of a scalar slot.
pub(crate) type ScalarSlot = u32;
/// The number of a tile slot.
pub(crate) type TileSlot = u32;
/// The number of a view slot.
pub(crate) type ViewSlot = u32;
/// The number of a block.
pub(crate) type BlockId = usize;

/// The location of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Scalar(ScalarSlot),
    Tile(TileSlot),
    View(ViewSlot),
}

/// The properties of a tile slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileInfo {
    pub(crate) elem: Elem,
    pub(crate) shape: [i32; 4],
    /// The strides of the dense tile.
    pub(crate) strides: [isize; 4],
    pub(crate) rank: usize,
    /// The number of elements.
    pub(crate) len: usize,
    /// The size of an element in a buffer, in bytes.
    pub(crate) size: usize,
    /// The index of the buffer size in [`Plan::classes`].
    pub(crate) class: usize,
}

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) struct ParamPlan {
    pub(crate) name: String,
    pub(crate) kind: ParamKind,
}

/// The kind of a parameter, and its slot.
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
    /// Steps that are the same in every program, run once by each thread.
    pub(crate) prologue: BlockId,
    /// For each tile, whether it is computed in the prologue, and so outlives a program.
    pub(crate) kept: Vec<bool>,
    /// The initial values of scalars: the constants.
    pub(crate) scalars: Vec<u64>,
    pub(crate) tiles: Vec<TileInfo>,
    pub(crate) views: usize,
    pub(crate) rings: Vec<RingPlan>,
    /// For each block, whether a role may have to wait for another one in it, or in a block inside.
    pub(crate) waits: Vec<bool>,
    /// The buffer sizes in bytes.
    pub(crate) classes: Vec<usize>,
    /// An estimate of the number of elements that one program computes.
    pub(crate) cost: u64,
}

/// A step with its uses and definitions of tiles.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) step: Step,
    pub(crate) loc: Loc,
    /// The tiles that it uses, also in blocks inside.
    pub(crate) uses: Vec<TileSlot>,
    /// The tiles that it defines.
    pub(crate) defs: Vec<TileSlot>,
    /// The tiles that are dead after it.
    pub(crate) kills: Vec<TileSlot>,
}

/// Values that are copied in parallel.
pub(crate) type Moves = Vec<(Slot, Slot)>;

/// A position in a tensor: a scalar slot per axis, and the factors of the unit.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) view: ViewSlot,
    pub(crate) at: Vec<ScalarSlot>,
    pub(crate) unit: Unit,
}

/// An index of a row gather: one for all rows, or one for each.
pub(crate) type RowIndex = Slot;

/// A rearrangement of a tile without copying.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Restride {
    Reshape,
    /// The axis of the result along which elements repeat.
    Broadcast(usize),
    /// Axis `i` of the result is this axis of the operand.
    Permute([usize; 4]),
    /// The part from an element of an axis on.
    Cut {
        axis: usize,
        from: usize,
    },
}

/// The block of a reduction or scan: its two arguments and its result.
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
    /// Moves of initial values to block arguments.
    pub(crate) enter: Moves,
    /// Moves of block arguments to results.
    pub(crate) leave: Moves,
    pub(crate) body: BlockId,
    /// The matrix product, if the body is one step of it.
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
