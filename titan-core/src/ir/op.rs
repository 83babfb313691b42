//! The operations. They are a closed set, so that every pass is an exhaustive match.
//!
//! An [`Op`] has a kind (with its attributes), operands, results, regions and a location in the user's kernel. The operands, results and
//! meaning of each kind are a row of [`super::op_table`]; result types are computed by [`super::infer`].
//!
//! Elementwise kinds work on scalars and on tiles alike. Broadcasting is always a separate operation.

use super::{AmdOp, Block, Const, Elem, FetchOp, LocalOp, NvOp, RegionOp, TileShape, TtgOp, Value};
use crate::named_enum::named_enum;

named_enum! {
    /// Elementwise operations with one operand, whose result has the operand's type (for `is_nan`: `bool`; for numbers of bits: `u32`).
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
        /// Rounds toward −∞
        Floor = "floor",
        /// Rounds toward +∞
        Ceil = "ceil",
        /// Rounds toward zero
        Trunc = "trunc",
        /// Rounds to nearest, ties away from zero
        Round = "round",
        /// Rounds to nearest, ties to even
        RoundTiesEven = "round_ties_even",
        /// Whether the element is NaN
        IsNan = "is_nan",
        /// The number of bits that are 1, integers only
        CountOnes = "count_ones",
        /// The number of zeros before the highest bit that is 1, integers only
        LeadingZeros = "leading_zeros",
    }
}

impl UnOp {
    /// The element type of the result, if it is not that of the operand.
    #[must_use]
    pub const fn of_another_element(self) -> Option<Elem> {
        match self {
            UnOp::IsNan => Some(Elem::Bool),
            UnOp::CountOnes | UnOp::LeadingZeros => Some(Elem::U32),
            UnOp::Neg
            | UnOp::Not
            | UnOp::Abs
            | UnOp::Exp
            | UnOp::Exp2
            | UnOp::Ln
            | UnOp::Log2
            | UnOp::Sqrt
            | UnOp::Rsqrt
            | UnOp::Recip
            | UnOp::Sin
            | UnOp::Cos
            | UnOp::Tanh
            | UnOp::Sigmoid
            | UnOp::Erf
            | UnOp::Floor
            | UnOp::Ceil
            | UnOp::Trunc
            | UnOp::Round
            | UnOp::RoundTiesEven => None,
        }
    }
}

named_enum! {
    /// Elementwise operations with two operands of the same type.
    BinOp {
        /// `a + b`
        Add = "add",
        /// `a - b`
        Sub = "sub",
        /// `a * b`
        Mul = "mul",
        /// `a / b`
        Div = "div",
        /// `a % b`
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
        /// Minimum
        Min = "min",
        /// Maximum
        Max = "max",
        /// The upper half of the product, integers only
        MulHi = "mul_hi",
        /// `a` to the power of `b`, floats only
        Powf = "powf",
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
        /// Maximum
        Max = "max",
        /// Minimum
        Min = "min",
    }
}

named_enum! {
    /// The extremum that an `arg_reduce` finds.
    ArgOp {
        /// The maximum
        Max = "max",
        /// The minimum
        Min = "min",
    }
}

named_enum! {
    /// The update of an element by an atomic operation.
    AtomicOp {
        /// Addition
        Add = "add",
        /// Maximum
        Max = "max",
        /// Minimum
        Min = "min",
    }
}

named_enum! {
    /// The unit of the coordinates of loads and stores.
    Unit {
        /// Tiles: the first element is at the coordinate times the extent of the tile.
        Tile = "tile",
        /// Elements.
        Elem = "elem",
    }
}

named_enum! {
    /// The execution of the iterations of a `for`.
    ForKind {
        /// In sequence.
        Sequential = "sequential",
        /// In sequence, with loads issued in advance; the loop has no early exit.
        Pipelined = "pipelined",
        /// Distributed over the programs of the grid: iteration `j` is executed by program `j mod num_programs(0)`.
        Distributed = "distributed",
    }
}

/// The kind of an operation, with its attributes.
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
    /// Whether an optional tensor was passed.
    Present,
    /// The tile `0, 1, …, n − 1`.
    Iota(i32),
    /// A tile in which every element is the scalar.
    Splat(TileShape),

    /// An elementwise operation with one operand.
    Unary(UnOp),
    /// An elementwise operation with two operands.
    Binary(BinOp),
    /// An elementwise comparison.
    Cmp(Pred),
    /// An elementwise choice. The operands are the mask, the value where it is true, and the value where it is false.
    Select,
    /// `a · b + c`, rounded once.
    MulAdd,
    /// Conversion to another element type by value.
    Cast(Elem),
    /// The same bits as another element type.
    Bitcast(Elem),

    /// The same elements in row-major order, with other extents.
    Reshape(TileShape),
    /// A new axis along which the elements repeat.
    Broadcast {
        /// The position at which the axis is inserted.
        axis: u8,
        /// The extent of the new axis.
        n: i32,
    },
    /// A permutation of axes: axis `i` of the result is axis `perm[i]` of the operand.
    Permute([u8; 4]),
    /// A tile whose elements alternate between those of two tiles, along the last axis.
    Interleave,
    /// Two tiles: the even and the odd elements along the last axis.
    Split,
    /// The part of a tile from one element of an axis on.
    Cut {
        /// The axis.
        axis: u8,
        /// The first element.
        from: i32,
        /// The number of elements.
        n: i32,
    },
    /// The elements of two tiles one behind the other along an axis.
    Concat(u8),

    /// Reduction along an axis, which is removed.
    Reduce(ReduceOp, u8),
    /// The extremum along an axis and its index.
    ArgReduce(ArgOp, u8),
    /// Reduction by a function, a region with two scalar arguments.
    ReduceWith(u8),
    /// Inclusive scan along an axis.
    Scan(ReduceOp, u8),
    /// Inclusive scan by a function, a region with two scalar arguments.
    ScanWith(u8),
    /// A matrix product, added to an accumulator.
    Mma,

    /// A view in which the index along one axis is fixed.
    Index(u8),
    /// A view of a range along an axis.
    Slice(u8),
    /// A view of the rows `off[e] .. off[e + 1]`.
    Segment,
    /// The same tensor, exempt from the output rule.
    Shared,

    /// Loads a tile from a tensor; the last operand is the padding.
    Load(Unit, TileShape),
    /// Stores a tile to a tensor.
    Store(Unit),
    /// Loads one element, which must be inside the tensor.
    Get,
    /// Stores one element, which must be inside the tensor.
    Set,
    /// Loads rows selected by indices; the last operand is the padding.
    GatherRows {
        /// The number of rows.
        rows: i32,
        /// The number of elements of each row.
        width: i32,
    },
    /// Stores rows selected by indices.
    ScatterRows,
    /// Loads elements selected by indices; the last operand is the padding.
    Gather,
    /// Stores elements selected by indices.
    Scatter,
    /// Atomic update of elements selected by indices.
    Atomic(AtomicOp),
    /// Atomic update of a tile, whose coordinates are in units of tiles.
    AtomicTile(AtomicOp),
    /// Atomic update of elements selected by indices, which returns what it found.
    Fetch(FetchOp),
    /// Atomic comparison of elements selected by indices with expected values, and exchange where the bits are equal. Returns what it found,
    /// and where it has exchanged.
    CompareExchange,

    /// The coordinates of a linear index in a box, in row-major order: from the last extent on, remainder and quotient. The first
    /// coordinate is the last quotient and is not reduced: for an index outside of the box it is at least its extent.
    Unflatten,
    /// The same for a box in another order: if the last two coordinates `m` and `n` are inside the box, rows are taken in groups of this
    /// size (the last group may have fewer), and each group is traversed column by column. See [`super::grouped`].
    UnflattenGrouped(i32),
    /// The number of tiles of `rows × cols` of all segments of a ragged output. Traps unless all offsets are ascending and inside the
    /// tensor.
    RaggedCount {
        /// The number of rows of a tile.
        rows: i32,
        /// The number of columns of a tile.
        cols: i32,
    },
    /// The tile with this number in a ragged output: segment, row tile, column tile. Traps if there is no such tile.
    RaggedTile {
        /// The number of rows of a tile.
        rows: i32,
        /// The number of columns of a tile.
        cols: i32,
    },

    /// Prints values with a format string, in which each `{}` is replaced by a value.
    Print(String),
    /// Traps with a message if the condition is false.
    Assert(String),

    /// A counted loop with carried values.
    For(ForKind),
    /// A loop that runs until `break`, with carried values.
    Loop,
    /// A branch on a uniform condition.
    If,
    /// The end of a region of an `if`, reduction or scan, with its values.
    Yield,
    /// Leaves the enclosing loop number `n` (0 is the innermost); the operands are the results of the loop.
    Break(u32),
    /// Ends this iteration of the enclosing loop number `n`; the operands are the next carried values.
    Continue(u32),
    /// Ends the program.
    Return,

    /// An operation on pipelines.
    Ttg(TtgOp),
    /// An operation of laid-out kernels.
    Local(LocalOp),
    /// An operation on ranges of shared memory.
    Region(RegionOp),
    /// An operation of NVIDIA GPUs: barriers, copies and groups.
    Nv(NvOp),
    /// An operation of AMD GPUs: counters.
    Amd(AmdOp),
}

/// A location in the user's code: line and column count from 1, relative to the kernel's first line. Zero means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Loc {
    /// The line: 1 is the kernel's first one, and 2³² − 1 the one above it, where device functions and the macro that made the kernel may be.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl Loc {
    /// The location of a line of the file, whose kernel begins in line `first`; both count from 1.
    #[must_use]
    pub const fn relative(line: u32, column: u32, first: u32) -> Loc {
        let below = line.wrapping_sub(first);
        Loc { line: if line < first { below } else { below.wrapping_add(1) }, column }
    }

    /// The line of the file, if the kernel begins in line `first`; that one if it is unknown.
    #[must_use]
    pub const fn line_of_file(self, first: u32) -> u32 {
        match self.of_kernel() {
            Some(line) => first.saturating_add(line - 1),
            None => first.wrapping_add(self.line),
        }
    }

    /// The line, if it is known and not above the kernel.
    #[must_use]
    pub const fn of_kernel(self) -> Option<u32> {
        if self.line == 0 || self.line > i32::MAX.cast_unsigned() { None } else { Some(self.line) }
    }
}

/// The side effect of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No effect: the operation may be moved, repeated or removed.
    Pure,
    /// Reads a tensor.
    Read,
    /// May trap, whether it reads or not: the operation may not be removed.
    Trap,
    /// Writes a tensor.
    Write,
    /// Updates a tensor atomically.
    Atomic,
    /// Prints.
    Print,
    /// Control flow, or the end of a region.
    Control,
    /// Passes on a token of a pipeline, or orders its accesses to memory.
    Pipeline,
}

impl OpKind {
    /// Whether the operation is a terminator.
    #[must_use]
    pub const fn is_terminator(&self) -> bool {
        matches!(self, OpKind::Yield | OpKind::Break(_) | OpKind::Continue(_) | OpKind::Return)
    }

    /// Whether the operation is a loop, which counts for the numbers in `break` and `continue`.
    #[must_use]
    pub const fn is_loop(&self) -> bool {
        matches!(self, OpKind::For(_) | OpKind::Loop)
    }
}

crate::entity!(
    /// An operation of a kernel.
    OpId, "op"
);

/// An operation of a kernel, with its operands, results and regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The kind, with its attributes.
    pub kind: OpKind,
    /// The operands, in the order of the op table.
    pub args: Vec<Value>,
    /// The results, in the order of the op table.
    pub results: Vec<Value>,
    /// Nested blocks: the body of a loop, the two arms of an `if`, the function of a reduction.
    pub regions: Vec<Block>,
    /// Where the schedule of the loop puts the operation, if it is one of a loop's body and the loop has a schedule.
    pub planned: Option<Planned>,
    /// Of a loop with a schedule of two stages: whether its first and its last iteration stand apart, so that the loop between them executes no
    /// operation for an iteration that does not exist ([`crate::pipeline::modulo`]).
    pub peeled: bool,
    /// Of a loop: whether the iterations that need no masks get a loop of their own without masks ([`crate::pipeline::unmask`]).
    pub unmasked: bool,
    /// The operation of the kernel before its loops were expanded that this one executes.
    pub origin: Option<Origin>,
    /// The location in the user's code.
    pub loc: Loc,
}

/// The place of an operation of a loop's body in the schedule of the loop ([`crate::pipeline::modulo`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Planned {
    /// The stage: an operation of stage 1 is executed one iteration of the steady loop after those of stage 0 of the same iteration.
    pub stage: u16,
    /// The place among the operations that one iteration of the steady loop executes.
    pub order: u16,
}

/// The operation that an operation of an expanded loop executes ([`crate::pipeline::modulo`]). It is a statement of whoever rewrites loops,
/// for logs and pictures and as a hint to the checker, which does not trust it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The operation, in the numbers of the kernel before.
    pub op: OpId,
    /// By how many iterations of the loop around it the operation runs ahead: of the steady loop, or, before this, of its first iteration.
    pub ahead: u16,
}
