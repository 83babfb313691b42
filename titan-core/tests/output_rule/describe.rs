//! What a random kernel is made of.

use titan_core::ir::{BinOp, Unit};

/// An index.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    /// `program_id(0)`, `program_id(1)`, or in a persistent kernel the number of the iteration for both.
    Program(bool),
    /// A part of what the mode takes apart.
    Part(usize),
    /// The variable of the loop around the accesses.
    Looped,
    /// The scalar argument.
    Scalar,
    Const(i32),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// The first if the scalar argument is positive.
    Select(Box<Expr>, Box<Expr>),
}

#[derive(Clone, Debug)]
pub(crate) enum View {
    Whole,
    /// The first axis from one to the other.
    Slice(Expr, Expr),
    /// The first axis by offsets.
    Segment(Expr),
    /// The first axis fixed; the second is what remains.
    Index(Expr),
}

#[derive(Clone, Debug)]
pub(crate) struct Touch {
    pub(crate) store: bool,
    pub(crate) unit: Unit,
    pub(crate) view: View,
    pub(crate) at: [Expr; 2],
    pub(crate) extent: [i32; 2],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    /// `program_id(0)` is taken apart by `unflatten`.
    Grid,
    /// A distributed loop, its number taken apart by `unflatten`.
    Deal,
    /// A distributed loop over ragged tiles.
    Ragged,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) mode: Mode,
    pub(crate) grid: [i64; 2],
    /// The grid is `cdiv(n, by)` of the scalar argument instead of the first extent.
    pub(crate) of_scalar: Option<i32>,
    pub(crate) extents: [i32; 2],
    /// What `unflatten` takes apart.
    pub(crate) base: Expr,
    pub(crate) parts: [i32; 2],
    /// In groups of so many rows, if there is an order.
    pub(crate) group: Option<i32>,
    pub(crate) off: Vec<i32>,
    pub(crate) scalar: i32,
    pub(crate) exit: Option<i32>,
    pub(crate) looped: Option<(Expr, Expr, i32)>,
    pub(crate) touches: Vec<Touch>,
}
