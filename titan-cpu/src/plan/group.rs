//! Groups: elementwise operations of one shape as one step, evaluated block by block so that intermediate values stay in the
//! first cache and never become tiles.
//!
//! Reductions along the last axis belong to them, and what is computed from their results row by row, and what is computed
//! from that again: a softmax or a norm is one group, which goes through its tile once, a row at a time. A store that ends
//! such a chain takes its blocks right there.
//!
//! How groups are found is in [`super::open`], how they run in [`crate::exec::elements`].

use super::{Place, ScalarSlot, Slot, TileSlot};
use crate::ops::TileFn;
use crate::ops::reduce::RowFold;
use titan_core::ir::Elem;

/// Elements of a block, if it need not hold whole rows.
pub(crate) const BLOCK: usize = 1024;
/// Elements of a row at most, where blocks hold whole rows.
pub(crate) const MAX_ROW: usize = 8192;
/// Rows of so many elements are evaluated one at a time.
pub(crate) const LONG_ROW: usize = 256;
/// Operations of one group at most.
pub(crate) const MAX_OPS: usize = 48;
/// Operands of one group at most.
pub(crate) const MAX_LEAVES: usize = 12;

/// Where an operand of a group comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    Tile(TileSlot),
    /// The same in every element.
    Scalar(ScalarSlot),
}

/// An operand of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) leaf: Leaf,
    /// Bytes of an element.
    pub(crate) size: usize,
    /// It has one element per row.
    pub(crate) of_rows: bool,
    /// It is reduced or stored as it is: every element is wanted, even if they are all the same.
    pub(crate) whole: bool,
}

/// An operand or a result inside of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// None: the operation has fewer.
    Nothing,
    Leaf(usize),
    /// A block-sized register.
    Reg(usize),
    /// One element per row of the block. In an operation on all elements the block is one row, and it stands for all.
    Row(usize),
    /// A tile that the group makes.
    Out(usize),
}

/// One operation of a group, on one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Micro {
    pub(crate) act: Act,
    /// Operands, with the bytes of an element.
    pub(crate) args: [(Operand, usize); 3],
    /// Bytes of an element of the result.
    pub(crate) size: usize,
}

/// What an operation of a group does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Elements from elements; if they go to a row operand, one per row.
    Map(TileFn, Operand),
    /// Folds rows into a row operand.
    Reduce(RowFold, usize),
    /// Repeats a row operand along the rows.
    Expand(Operand),
    /// Puts a row operand into the output of this number.
    Give(usize),
    /// Stores rows where the group stores.
    Store,
    /// Elements from elements, right into the tensor: rows that are whole and whose elements follow each other there. Where
    /// they are not, by way of a register.
    MapStore(TileFn, usize),
}

/// What a group makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    Tile(TileSlot),
    /// The one element of a reduction.
    Scalar(ScalarSlot, Elem),
}

impl Out {
    /// Where it is.
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
    /// Elements of a row.
    pub(crate) cols: usize,
    /// Elements evaluated at a time: whole rows, or a part of one.
    pub(crate) block: usize,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outs: Vec<Out>,
    pub(crate) ops: Vec<Micro>,
    /// Where the last operation stores, if it is a store. No other one is: a group is closed with its store.
    pub(crate) store: Option<Place>,
    /// How many registers the operations need, and how many bytes each.
    pub(crate) registers: [usize; 2],
    /// How many row operands, and how many bytes each.
    pub(crate) rows: [usize; 2],
}
