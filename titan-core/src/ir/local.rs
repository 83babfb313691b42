//! The dialect `ttg.local`: operations of laid-out kernels. Buffers for tiles, copies of tiles between registers and shared memory,
//! parts of tiles, layout conversions, and reductions within a warp.
//!
//! An operation acts on the whole tile; the places of its operands and results ([`super::Place`]) determine which thread does which
//! part of it. A conversion across threads is three operations:
//!
//! ```text
//! %buffer = ttg.local.alloc : smem<64x64xf16, 0>
//! ttg.local.store %x, %buffer
//! %y = ttg.local.load %buffer : tile<64x64xf16, 2>
//! ```
//!
//! Deliberately absent: barriers between the storing and the loading threads, which are inserted into the barrier program.

use super::op::{ArgOp, ReduceOp};
use super::{Elem, TileShape};

/// The combination of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Sum, product or extremum.
    Plain(ReduceOp),
    /// The extremum and its index, of a tile of values and one of indices.
    Arg(ArgOp),
    /// The function of the operation's region; the second operand is its neutral element.
    With,
}

/// An operation of the dialect. Its operands, results and meaning are a row of [`super::op_table`].
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
    /// Copies a tile of a tensor to shared memory; writes zeros beyond the tensor, and to the part of the encoding beyond the tile.
    Copy {
        /// Whether the copy is asynchronous (`cp.async`). Otherwise threads load elements and store them.
        asynchronous: bool,
    },
    /// A source that exists only if a condition holds; otherwise all of it counts as outside the tensor.
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
    /// Stacks tiles along a new first axis.
    Stack,
    /// An MMA on fragments, by an instruction or by multiply-adds.
    Mma,
    /// The same tile in another layout, without exchange between threads.
    Convert,
    /// A reduction along an axis by the lanes of each warp.
    Fold {
        /// The combination.
        f: Fold,
        /// The axis.
        axis: u8,
        /// How many warps hold parts of a line. With one, the axis is removed; with more, the parts are the first axis of the
        /// result.
        parts: u32,
    },
}
