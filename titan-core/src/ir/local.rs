//! The dialect `ttg.local`: what laying a kernel out over threads makes explicit. Shared memory of a tile, tiles between
//! registers and shared memory, parts of tiles, changes of layout, and reductions within a warp.
//!
//! An operation says what happens to the whole tile; the places of its operands and results ([`super::Place`]) say which
//! thread does which part of it. A conversion that threads cannot make by themselves is three operations:
//!
//! ```text
//! %buffer = ttg.local.alloc : smem<64x64xf16, 0>
//! ttg.local.store %x, %buffer
//! %y = ttg.local.load %buffer : tile<64x64xf16, 2>
//! ```
//!
//! Deliberately absent: barriers between the threads that store and those that load, which the barrier program has.

use super::op::{ArgOp, ReduceOp};
use super::{Elem, TileShape};

/// How the elements of a line become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Sum, product or extremum.
    Plain(ReduceOp),
    /// The extremum and its index, of a tile of values and one of indices.
    Arg(ArgOp),
    /// The function of the operation's region; the second operand is its neutral element.
    With,
}

/// An operation of the dialect. What each takes, gives and means is a row of [`super::op_table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalOp {
    /// Shared memory for a tile.
    Alloc {
        /// Its elements.
        elem: Elem,
        /// Its extents.
        shape: TileShape,
    },
    /// Registers to shared memory.
    Store,
    /// Shared memory to registers.
    Load,
    /// A tile of a tensor to shared memory; zeros where the tensor ends, and in what the encoding has beyond the tile.
    Copy {
        /// Whether the copy is asynchronous (`cp.async`). Else threads load elements and store them.
        asynchronous: bool,
    },
    /// A tile of a tensor that exists only if a condition holds: else all of it is outside.
    Guard,
    /// A part of a tile along an axis.
    Slice {
        /// The axis.
        axis: u8,
        /// Its extent in the part.
        n: i32,
    },
    /// The same shared memory as another tile, its elements in row-major order.
    Reshape(TileShape),
    /// Tiles as one with another axis, the first.
    Stack,
    /// A matrix product of operands that threads hold as an instruction, or multiply-adds, take them.
    Mma,
    /// The same tile in another layout, if each thread has what it needs.
    Convert,
    /// A reduction along an axis by the lanes of each warp.
    Fold {
        /// How.
        f: Fold,
        /// The axis.
        axis: u8,
        /// How many warps hold parts of a line. With one, the axis disappears; with more, the result has the parts as its
        /// first axis.
        parts: u32,
    },
}
