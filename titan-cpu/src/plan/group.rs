//! Groups: elementwise operations of one shape as one step, evaluated block by block so that intermediate values stay in the
//! first cache and never become tiles.
//!
//! Reductions along the last axis belong to groups. So do operations on their results, row by row, and operations that combine
//! these results with whole rows again: a softmax or a norm is one group, which reads its tile once, row by row. A store that ends
//! such a chain gets its blocks directly, without a tile in between.
//!
//! [`super::open`] finds groups, and [`crate::exec::elements`] executes them.

use super::{Place, ScalarSlot, Slot, TileSlot};
use crate::ops::reduce::RowFold;
use crate::ops::{ElementFn, TileFn};
use titan_core::ir::Elem;

/// The number of elements of a block that need not contain whole rows.
pub(crate) const BLOCK: usize = 1024;
/// The largest number of elements of a row where blocks contain whole rows.
pub(crate) const MAX_ROW: usize = 8192;
/// Rows of at least this many elements are evaluated one at a time.
pub(crate) const LONG_ROW: usize = 256;
/// The largest number of operations of a group.
pub(crate) const MAX_OPS: usize = 48;
/// The largest number of operands of a group.
pub(crate) const MAX_LEAVES: usize = 12;

/// The origin of a group's operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    Tile(TileSlot),
    /// A scalar, the same for every element.
    Scalar(ScalarSlot),
}

/// An operand of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) leaf: Leaf,
    /// The size of an element in bytes.
    pub(crate) size: usize,
    /// Whether it has one element per row.
    pub(crate) of_rows: bool,
    /// Whether it is reduced or stored unchanged: then every element is needed, even if all are the same.
    pub(crate) whole: bool,
}

/// An operand or a result inside of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// No operand: the operation has fewer.
    Nothing,
    Leaf(usize),
    /// A block-sized register.
    Reg(usize),
    /// One element per row of the block. In an operation on all elements the block is one row, and the element stands for all.
    Row(usize),
    /// A tile that the group computes.
    Out(usize),
}

/// One operation of a group, on one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Micro {
    pub(crate) act: Act,
    /// The operands, each with the size of an element in bytes.
    pub(crate) args: [(Operand, usize); 3],
    /// The size of an element of the result in bytes.
    pub(crate) size: usize,
}

/// The effect of an operation of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Computes elements from elements.
    Map(TileFn, Operand),
    /// Computes a row operand from row operands.
    MapRow(ElementFn, usize),
    /// Reduces rows to a row operand.
    Reduce(RowFold, usize),
    /// Repeats a row operand along the rows.
    Expand(Operand),
    /// Copies a row operand to the output with this number.
    Give(usize),
    /// Stores rows to the group's destination.
    Store,
    /// Computes elements directly into the tensor, where rows are whole and contiguous; elsewhere by way
    /// of a register.
    MapStore(TileFn, usize),
}

/// An output of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    Tile(TileSlot),
    /// The one element of a reduction.
    Scalar(ScalarSlot, Elem),
}

impl Out {
    /// The slot of the output.
    pub(crate) fn slot(&self) -> Slot {
        match self {
            Out::Tile(tile) => Slot::Tile(*tile),
            Out::Scalar(scalar, _) => Slot::Scalar(*scalar),
        }
    }
}

/// A group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) shape: [i32; 4],
    pub(crate) len: usize,
    /// The number of elements of a row.
    pub(crate) cols: usize,
    /// The number of elements evaluated at a time: whole rows, or a part of one.
    pub(crate) block: usize,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outs: Vec<Out>,
    pub(crate) ops: Vec<Micro>,
    /// The destination of the last operation, if it is a store. No other operation is one: a group is closed with its store.
    pub(crate) store: Option<Place>,
    /// The last operation that is a reduction.
    pub(crate) reduced: Option<usize>,
    /// The number of registers that the operations need, and the size of each in bytes.
    pub(crate) registers: [usize; 2],
    /// The number of row operands, and the size of each in bytes.
    pub(crate) rows: [usize; 2],
}
