//! Operations: a closed set, so that every pass is an exhaustive match.
//!
//! An [`Op`] has a kind (with its attributes), operands, results, regions and a place in the user's kernel. What each kind
//! takes, gives and means is one row of [`super::op_table`]; result types follow from [`super::infer`].
//!
//! Elementwise kinds work on scalars and on tiles alike; broadcasting is always an operation of its own.

use super::{AmdOp, Block, CallProxy, Const, Elem, Family, LocalOp, NvOp, Proxy, RegionOp, TileShape, TtgOp, Value};
use crate::named_enum::named_enum;

named_enum! {
    /// Elementwise operations of one operand, of the operand's type (`is_nan` gives `bool`).
    UnOp {
        /// `-x`
        Neg = "neg",
        /// `!x`, bitwise on integers
        Not = "not",
        /// Absolute value
        Abs = "abs",
        /// eˣ
        Exp = "exp",
        /// 2ˣ
        Exp2 = "exp2",
        /// Natural logarithm
        Ln = "ln",
        /// Logarithm to base 2
        Log2 = "log2",
        /// Square root
        Sqrt = "sqrt",
        /// 1 / √x
        Rsqrt = "rsqrt",
        /// 1 / x
        Recip = "recip",
        /// Sine of radians
        Sin = "sin",
        /// Cosine of radians
        Cos = "cos",
        /// Hyperbolic tangent
        Tanh = "tanh",
        /// 1 / (1 + e⁻ˣ)
        Sigmoid = "sigmoid",
        /// Error function
        Erf = "erf",
        /// Toward −∞
        Floor = "floor",
        /// Toward +∞
        Ceil = "ceil",
        /// Toward zero
        Trunc = "trunc",
        /// To nearest, ties away from zero
        Round = "round",
        /// To nearest, ties to even
        RoundTiesEven = "round_ties_even",
        /// Whether the element is NaN
        IsNan = "is_nan",
    }
}

named_enum! {
    /// Elementwise operations of two operands of one type.
    BinOp {
        /// `a + b`
        Add = "add",
        /// `a - b`
        Sub = "sub",
        /// `a * b`
        Mul = "mul",
        /// `a / b`
        Div = "div",
        /// `a % b`, integers only
        Rem = "rem",
        /// `a & b`
        And = "and",
        /// `a | b`
        Or = "or",
        /// `a ^ b`
        Xor = "xor",
        /// `a << b`
        Shl = "shl",
        /// `a >> b`
        Shr = "shr",
        /// The lesser
        Min = "min",
        /// The greater
        Max = "max",
    }
}

named_enum! {
    /// Comparisons.
    Pred {
        /// `a == b`
        Eq = "eq",
        /// `a != b`
        Ne = "ne",
        /// `a < b`
        Lt = "lt",
        /// `a <= b`
        Le = "le",
        /// `a > b`
        Gt = "gt",
        /// `a >= b`
        Ge = "ge",
    }
}

named_enum! {
    /// The operation of a reduction or scan.
    ReduceOp {
        /// Sum
        Sum = "sum",
        /// Product
        Prod = "prod",
        /// Greatest
        Max = "max",
        /// Least
        Min = "min",
    }
}

named_enum! {
    /// Which extremum an `arg_reduce` looks for.
    ArgOp {
        /// The greatest
        Max = "max",
        /// The least
        Min = "min",
    }
}

named_enum! {
    /// What atomics do to an element.
    AtomicOp {
        /// Adds
        Add = "add",
        /// Raises to the greater
        Max = "max",
        /// Lowers to the lesser
        Min = "min",
    }
}

named_enum! {
    /// The unit of the coordinates of a load or store.
    Unit {
        /// Whole tiles: coordinate times extent is the first element.
        Tile = "tile",
        /// Elements.
        Elem = "elem",
    }
}

named_enum! {
    /// How the iterations of a `for` run.
    ForKind {
        /// One after the other.
        Sequential = "sequential",
        /// One after the other, loads running ahead: no early exit.
        Pipelined = "pipelined",
        /// Dealt to the programs of the grid: iteration `j` belongs to program `j mod num_programs(0)`.
        Distributed = "distributed",
    }
}

/// What an operation does, with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// A scalar constant.
    Const(Const),
    /// The program's index along a grid axis.
    ProgramId(u8),
    /// The grid's extent along an axis.
    NumPrograms(u8),
    /// The extent of a tensor along an axis.
    Dim(u8),
    /// Whether an optional tensor was given.
    Present,
    /// `0, 1, …, n − 1`.
    Iota(i32),
    /// A scalar in every element.
    Splat(TileShape),

    /// Elementwise, one operand.
    Unary(UnOp),
    /// Elementwise, two operands.
    Binary(BinOp),
    /// Elementwise comparison.
    Cmp(Pred),
    /// Elementwise choice: mask, then, else.
    Select,
    /// `a · b + c`, rounded once.
    MulAdd,
    /// Conversion of values.
    Cast(Elem),
    /// The same bits as another type.
    Bitcast(Elem),

    /// The same elements in row-major order under other extents.
    Reshape(TileShape),
    /// A new axis along which the elements repeat.
    Broadcast {
        /// Where the axis is inserted.
        axis: u8,
        /// Its extent.
        n: i32,
    },
    /// Axes reordered: axis `i` of the result is axis `perm[i]` of the operand.
    Permute([u8; 4]),
    /// Elements of two tiles alternate along the last axis.
    Interleave,
    /// The even and the odd elements along the last axis.
    Split,

    /// Reduction along an axis, which disappears.
    Reduce(ReduceOp, u8),
    /// The extremum along an axis and where it is.
    ArgReduce(ArgOp, u8),
    /// Reduction by a region of two scalars.
    ReduceWith(u8),
    /// Inclusive scan along an axis.
    Scan(ReduceOp, u8),
    /// Inclusive scan by a region of two scalars.
    ScanWith(u8),
    /// Matrix product with accumulation.
    Mma,

    /// A view with one axis fixed.
    Index(u8),
    /// A view of a range of an axis.
    Slice(u8),
    /// A view of rows `off[e] .. off[e + 1]`.
    Segment,
    /// The same tensor outside of the output rule.
    Shared,

    /// A tile from a tensor; the last operand is the padding.
    Load(Unit, TileShape),
    /// A tile into a tensor.
    Store(Unit),
    /// One element, which must exist.
    Get,
    /// One element, which must exist.
    Set,
    /// Rows named by indices; the last operand is the padding.
    GatherRows {
        /// How many rows.
        rows: i32,
        /// Elements of each.
        width: i32,
    },
    /// Rows named by indices.
    ScatterRows,
    /// Elements named by indices; the last operand is the padding.
    Gather,
    /// Elements named by indices.
    Scatter,
    /// Atomic update of elements named by indices.
    Atomic(AtomicOp),
    /// Atomic update of a tile, in tile units.
    AtomicTile(AtomicOp),

    /// The coordinates of a linear index in a box, row-major: from the last extent on, remainder and quotient. The first
    /// coordinate is the last quotient, not reduced: beyond the box it is beyond its extent.
    Unflatten,
    /// The same box in another order: where the last two coordinates, `m` and `n`, lie in the box, rows are taken in groups of
    /// so many (the last group may have fewer), and through a group the index goes column by column. See
    /// [`super::grouped`].
    UnflattenGrouped(i32),
    /// How many tiles of `rows × cols` the segments of a ragged output have. Traps unless all offsets are in order and inside.
    RaggedCount {
        /// Rows of a tile.
        rows: i32,
        /// Columns of a tile.
        cols: i32,
    },
    /// The tile of this number in a ragged output: segment, row tile, column tile. Traps if there is no such tile.
    RaggedTile {
        /// Rows of a tile.
        rows: i32,
        /// Columns of a tile.
        cols: i32,
    },

    /// Prints values with a format string of `{}`.
    Print(String),
    /// Traps with a message if the condition is false.
    Assert(String),

    /// A counted loop with carried values.
    For(ForKind),
    /// A loop until `break`, with carried values.
    Loop,
    /// A branch on a uniform condition.
    If,
    /// The end of an `if` or reduction region, with its values.
    Yield,
    /// Leaves the enclosing loop number `n` (0 is the innermost) with its results.
    Break(u32),
    /// Ends this iteration of the enclosing loop number `n` with the next carried values.
    Continue(u32),
    /// Ends the program.
    Return,

    /// Pipelines.
    Ttg(TtgOp),
    /// What laying out over threads makes explicit.
    Local(LocalOp),
    /// Ranges of shared memory.
    Region(RegionOp),
    /// Barriers, copies and groups of NVIDIA GPUs.
    Nv(NvOp),
    /// Counters of AMD GPUs.
    Amd(AmdOp),
}

/// A place in the user's kernel: lines and columns count from 1, relative to the kernel's first line. Zero is nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Loc {
    /// The line; 1 is the line of the kernel's first token.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// What an operation may do besides giving its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it may be moved, repeated or dropped.
    Pure,
    /// It reads a tensor.
    Read,
    /// It may trap, reading or not: it may not be dropped.
    Trap,
    /// It writes a tensor.
    Write,
    /// It updates a tensor atomically.
    Atomic,
    /// It prints.
    Print,
    /// It decides what runs next, or ends a region.
    Control,
    /// It hands on a right of a pipeline, or orders its memory.
    Pipeline,
}

impl OpKind {
    /// What the operation does besides giving its results.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        match self {
            OpKind::Const(_)
            | OpKind::ProgramId(_)
            | OpKind::NumPrograms(_)
            | OpKind::Dim(_)
            | OpKind::Present
            | OpKind::Iota(_)
            | OpKind::Splat(_)
            | OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Cmp(_)
            | OpKind::Select
            | OpKind::MulAdd
            | OpKind::Cast(_)
            | OpKind::Bitcast(_)
            | OpKind::Reshape(_)
            | OpKind::Broadcast { .. }
            | OpKind::Permute(_)
            | OpKind::Interleave
            | OpKind::Split
            | OpKind::Reduce(..)
            | OpKind::ArgReduce(..)
            | OpKind::ReduceWith(_)
            | OpKind::Scan(..)
            | OpKind::ScanWith(_)
            | OpKind::Mma
            | OpKind::Index(_)
            | OpKind::Slice(_)
            | OpKind::Shared
            | OpKind::Unflatten
            | OpKind::UnflattenGrouped(_) => Effect::Pure,
            OpKind::Load(..) | OpKind::GatherRows { .. } | OpKind::Gather => Effect::Read,
            OpKind::Get
            | OpKind::Segment
            | OpKind::RaggedCount { .. }
            | OpKind::RaggedTile { .. }
            | OpKind::Assert(_) => Effect::Trap,
            OpKind::Store(_) | OpKind::Set | OpKind::ScatterRows | OpKind::Scatter => Effect::Write,
            OpKind::Atomic(_) | OpKind::AtomicTile(_) => Effect::Atomic,
            OpKind::Print(_) => Effect::Print,
            OpKind::For(_)
            | OpKind::Loop
            | OpKind::If
            | OpKind::Yield
            | OpKind::Break(_)
            | OpKind::Continue(_)
            | OpKind::Return
            | OpKind::Ttg(TtgOp::Roles) => Effect::Control,
            OpKind::Ttg(TtgOp::Source(..) | TtgOp::View { .. } | TtgOp::Rematerialize) => Effect::Pure,
            OpKind::Ttg(TtgOp::SourceRows { .. } | TtgOp::Read) => Effect::Read,
            OpKind::Ttg(TtgOp::StoreIssue(_)) => Effect::Write,
            OpKind::Ttg(_) => Effect::Pipeline,
            OpKind::Local(op) => match op {
                LocalOp::Guard
                | LocalOp::Slice { .. }
                | LocalOp::Reshape(_)
                | LocalOp::Stack
                | LocalOp::Convert
                | LocalOp::Mma
                | LocalOp::Fold { .. } => Effect::Pure,
                LocalOp::Load | LocalOp::Copy { .. } => Effect::Read,
                LocalOp::Alloc { .. } | LocalOp::Store => Effect::Pipeline,
            },
            OpKind::Region(RegionOp::Place { .. } | RegionOp::At | RegionOp::Tile { .. }) => Effect::Pure,
            OpKind::Region(RegionOp::Read | RegionOp::Write | RegionOp::Call(_) | RegionOp::Wait) => Effect::Pipeline,
            OpKind::Nv(op) => op.effect(),
            OpKind::Amd(op) => op.effect(),
        }
    }

    /// The proxy through which the operation accesses shared memory, as it is written; `None` if it names none.
    #[must_use]
    pub const fn proxy(&self) -> Option<Proxy> {
        match self.family() {
            Family::Ttg(TtgOp::AsyncProduce { proxy, .. }) => Some(*proxy),
            Family::Ttg(TtgOp::Read | TtgOp::Write) => Some(Proxy::Generic),
            Family::Ttg(TtgOp::StoreIssue(_) | TtgOp::ComputeIssue | TtgOp::AccMma) => Some(Proxy::Async),
            Family::Local(LocalOp::Store | LocalOp::Load | LocalOp::Copy { .. }) => Some(Proxy::Generic),
            Family::Region(RegionOp::Read | RegionOp::Write) => Some(Proxy::Generic),
            Family::Region(RegionOp::Call(call)) => match call.declared() {
                CallProxy::Generic => Some(Proxy::Generic),
                CallProxy::Async => Some(Proxy::Async),
                CallProxy::None => None,
            },
            Family::Nv(op) => op.proxy(),
            Family::Amd(op) => op.proxy(),
            // Operations on data access shared memory only when they are lowered.
            Family::Data(_) | Family::Flow(_) | Family::Ttg(_) | Family::Local(_) | Family::Region(_) => None,
        }
    }

    /// Whether the operation ends its block.
    #[must_use]
    pub const fn is_terminator(&self) -> bool {
        matches!(self, OpKind::Yield | OpKind::Break(_) | OpKind::Continue(_) | OpKind::Return)
    }

    /// Whether the operation is a loop, which `break` and `continue` count.
    #[must_use]
    pub const fn is_loop(&self) -> bool {
        matches!(self, OpKind::For(_) | OpKind::Loop)
    }
}

crate::entity!(
    /// An operation of a kernel.
    OpId, "op"
);

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Operands, in the order of the op table.
    pub args: Vec<Value>,
    /// Results.
    pub results: Vec<Value>,
    /// Nested blocks: the body of a loop, the two arms of an `if`, the function of a reduction.
    pub regions: Vec<Block>,
    /// Where the user wrote it.
    pub loc: Loc,
}
