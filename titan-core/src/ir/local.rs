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
//! Deliberately absent: barriers between the threads that store and those that load. `crate::synchronize` inserts them.

use super::op::{ArgOp, ReduceOp};
use super::{Elem, TileShape};

/// The combining function of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Sum, product or extremum.
    Plain(ReduceOp),
    /// The extremum and its index, from a tile of values and a tile of indices.
    Arg(ArgOp),
    /// The function of the operation's region; the second operand is its neutral element.
    With,
}

/// An operation of the dialect. Its operands, results and meaning are a row of [`super::op_table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalOp {
    /// Allocates shared memory for a tile.
    Alloc {
        /// The type of its elements.
        elem: Elem,
        /// The extents of the tile.
        shape: TileShape,
    },
    /// Stores a tile from registers to shared memory.
    Store,
    /// Loads a tile from shared memory to registers.
    Load,
    /// Copies a tile of a tensor to shared memory. Elements beyond the end of the tensor, and padding of the encoding, are filled with
    /// zeros.
    Copy {
        /// Whether the copy is asynchronous (`cp.async`). Otherwise threads load elements and store them.
        asynchronous: bool,
    },
    /// Loads a tile of a tensor to registers, in the layout of the source: the first half of a copy to a stage, whose second half stores them
    /// there.
    Fetch {
        /// Whether it has a condition: if that is false, all of the tile counts as outside of the tensor.
        guarded: bool,
    },
    /// Waits for the asynchronous operations that access some tiles in shared memory: copies to them, and bulk stores from them. Without
    /// operands, waits for all bulk stores. Completion ([`crate::complete`]) turns it into waits for groups.
    Settle {
        /// Whether bulk stores need only have read the shared memory, and not yet have written to their tensors.
        read: bool,
    },
    /// Makes a source conditional: if the condition is false, all of it counts as outside of the tensor.
    Guard,
    /// Selects a part of a tile along an axis.
    Slice {
        /// The axis along which the part is taken.
        axis: u8,
        /// The extent of the part along this axis.
        n: i32,
    },
    /// The same shared memory as a tile of other extents, with the elements in row-major order.
    Reshape(TileShape),
    /// Stacks tiles along a new first axis.
    Stack,
    /// An MMA on fragments, by an instruction or by multiply-adds.
    Mma,
    /// Changes the layout of a tile without moving data between threads.
    Convert,
    /// A reduction along an axis by the lanes of each warp.
    Fold {
        /// The combining function.
        f: Fold,
        /// The axis of the reduction.
        axis: u8,
        /// The number of warps among which the elements of a line are divided. With one, the axis is removed; with more, the partial
        /// results of the warps form the first axis of the result.
        parts: u32,
    },
}
