//! tidy: table
//! The op table: for each operation its spelling in kernels, operands, results, meaning, and the rules that a use can violate. One row per
//! mnemonic of the text form.
//!
//! `docs/ops.md` and `docs/ir.md` are generated from it. The operand types are defined by [`infer`](super::infer), and the results by
//! `docs/semantics.md`; the table summarizes both in one line.
//!
//! In the column *elements*, `numbers` are `f64 f32 f16 bf16` and the integers of 8 bits and more; `floats` and `integers` are the two
//! halves of that. T0801 (invalid operands) is not repeated in every row.

use super::{
    AmdOp, ArgOp, AtomicOp, BinOp, Claim, Fill, Fold, LocalOp, NvGroup, NvOp, OpKind, Pred, ReduceOp, RegionOp,
    Tcgen05Op, TtgOp, UnOp, Unit,
};
use crate::diag::Code;

/// The subject of a group of operations, in the order of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Sources of values.
    Values,
    /// Elementwise arithmetic.
    Arithmetic,
    /// Elementwise functions of one float.
    Functions,
    /// Comparisons and choice.
    Choice,
    /// Conversions.
    Conversions,
    /// Shapes.
    Shapes,
    /// Reductions and scans.
    Reductions,
    /// Matrix products.
    Matrix,
    /// Properties and views of tensors.
    Views,
    /// Loads and stores.
    Memory,
    /// Gathers, scatters and atomics.
    Indexed,
    /// Distribution of tiles to programs.
    Distribution,
    /// Debugging.
    Debugging,
    /// Control flow.
    Control,
    /// Stages of rings.
    Stages,
    /// MMAs in flight.
    Compute,
    /// Stores in flight.
    Stores,
    /// Roles and fences.
    Roles,
    /// Operations of laid-out kernels.
    Laid,
    /// Ranges of shared memory.
    Regions,
    /// Mbarriers.
    Barriers,
    /// Asynchronous copies and their groups.
    Copies,
    /// Warpgroup operations.
    Warpgroups,
    /// Tensor memory.
    TensorMemory,
    /// Operations of waves on AMD GPUs.
    Waves,
}

impl Group {
    /// All groups.
    pub const ALL: [Group; 25] = [
        Group::Values,
        Group::Arithmetic,
        Group::Functions,
        Group::Choice,
        Group::Conversions,
        Group::Shapes,
        Group::Reductions,
        Group::Matrix,
        Group::Views,
        Group::Memory,
        Group::Indexed,
        Group::Distribution,
        Group::Debugging,
        Group::Control,
        Group::Stages,
        Group::Compute,
        Group::Stores,
        Group::Roles,
        Group::Laid,
        Group::Regions,
        Group::Barriers,
        Group::Copies,
        Group::Warpgroups,
        Group::TensorMemory,
        Group::Waves,
    ];

    /// The heading in the documentation.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Group::Values => "Values",
            Group::Arithmetic => "Arithmetic",
            Group::Functions => "Functions",
            Group::Choice => "Comparison and choice",
            Group::Conversions => "Conversions",
            Group::Shapes => "Shapes",
            Group::Reductions => "Reductions and scans",
            Group::Matrix => "Matrix products",
            Group::Views => "Facts and views of tensors",
            Group::Memory => "Loads and stores",
            Group::Indexed => "Gathers, scatters and atomics",
            Group::Distribution => "Tiles of a program",
            Group::Debugging => "Debugging",
            Group::Control => "Control flow",
            Group::Stages => "Stages of rings",
            Group::Compute => "MMAs in flight",
            Group::Stores => "Stores in flight",
            Group::Roles => "Roles and fences",
            Group::Laid => "Tiles laid out over threads",
            Group::Regions => "Regions of shared memory",
            Group::Barriers => "Barriers in shared memory",
            Group::Copies => "Asynchronous copies",
            Group::Warpgroups => "Warpgroups",
            Group::TensorMemory => "Tensor memory",
            Group::Waves => "Waves of AMD GPUs",
        }
    }

    /// The heading of `docs/semantics.md` with the details.
    #[must_use]
    pub const fn semantics(self) -> Option<&'static str> {
        match self {
            Group::Arithmetic | Group::Functions | Group::Choice => Some("arithmetic"),
            Group::Conversions => Some("casts"),
            Group::Reductions | Group::Matrix => Some("reductions-scans-matrix-products"),
            Group::Views | Group::Memory | Group::Indexed => Some("memory"),
            Group::Values
            | Group::Shapes
            | Group::Distribution
            | Group::Debugging
            | Group::Control
            | Group::Stages
            | Group::Compute
            | Group::Stores
            | Group::Roles
            | Group::Laid
            | Group::Regions
            | Group::Barriers
            | Group::Copies
            | Group::Warpgroups
            | Group::TensorMemory
            | Group::Waves => None,
        }
    }
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct OpRow {
    /// The name in the text form.
    pub mnemonic: &'static str,
    /// The group under which the documentation lists it.
    pub group: Group,
    /// The spelling in kernels; several spellings are separated by two spaces.
    pub surface: &'static str,
    /// The operands, in order.
    pub operands: &'static str,
    /// The results.
    pub result: &'static str,
    /// The element types that it supports.
    pub elements: &'static str,
    /// The meaning, in one line.
    pub meaning: &'static str,
    /// The rules that a use can violate, besides T0801.
    pub errors: &'static [Code],
}

macro_rules! table {
    ($($id:ident $mnemonic:literal $group:ident [$($kind:pat),+] $surface:literal, $operands:literal => $result:literal,
        $elements:expr, $meaning:literal, [$($code:ident)*];)*) => {
        #[derive(Clone, Copy)]
        enum Row { $($id,)* }

        /// The rows, by group.
        pub static OPS: &[OpRow] = &[$(OpRow {
            mnemonic: $mnemonic,
            group: Group::$group,
            surface: $surface,
            operands: $operands,
            result: $result,
            elements: $elements,
            meaning: $meaning,
            errors: &[$(Code::$code),*],
        },)*];

        const fn id(kind: &OpKind) -> Row {
            match kind { $($($kind)|+ => Row::$id,)* }
        }
    };
}

/// The row of an operation.
#[must_use]
pub fn row(kind: &OpKind) -> &'static OpRow {
    &OPS[id(kind) as usize]
}

/// The mnemonic of an operation.
#[must_use]
pub fn mnemonic(kind: &OpKind) -> &'static str {
    row(kind).mnemonic
}

const ANY: &str = "any";
const NUMBERS: &str = "numbers";
const FLOATS: &str = "floats";
const INTEGERS: &str = "integers";
const BITS: &str = "integers, bool";
const COMPARED: &str = "numbers, bool";
const I32: &str = "i32";
const BOOL: &str = "bool";
const ATOMIC: &str = "floats, integers of 16 bits and more";
const WHOLE: &str = "8 bits and more";
const NONE: &str = "";

table! {
    Const "const" Values [OpKind::Const(_)]
        "`1`  `0.5`  `true`", "" => "scalar", ANY, "a constant", [LiteralRange];
    ProgramId "program_id" Values [OpKind::ProgramId(_)]
        "`program_id(0)`", "" => "i32", I32, "this program's index along an axis of the grid", [GridAxis];
    NumPrograms "num_programs" Values [OpKind::NumPrograms(_)]
        "`num_programs(0)`", "" => "i32", I32, "the extent of the grid along an axis", [GridAxis];
    Iota "iota" Values [OpKind::Iota(_)]
        "`iota::<N>()`", "" => "tile [N]", I32, "0, 1, …, N − 1", [TileSize];
    Splat "splat" Values [OpKind::Splat(_)]
        "`Tile::<T, A, B>::full(x)`  `zeros()`  `ones()`", "x: scalar" => "tile of x's element", ANY,
        "x in every element; also what a scalar beside a tile becomes", [TileSize];

    Neg "neg" Arithmetic [OpKind::Unary(UnOp::Neg)]
        "`-x`", "x" => "as x", NUMBERS, "negation; integers wrap", [ElementUnsupported];
    Abs "abs" Arithmetic [OpKind::Unary(UnOp::Abs)]
        "`x.abs()`", "x" => "as x", NUMBERS, "absolute value; of the least integer it wraps", [ElementUnsupported];
    Add "add" Arithmetic [OpKind::Binary(BinOp::Add)]
        "`a + b`", "a, b" => "as a", NUMBERS, "sum; integers wrap", [ShapeMismatch ElementMismatch ElementUnsupported];
    Sub "sub" Arithmetic [OpKind::Binary(BinOp::Sub)]
        "`a - b`", "a, b" => "as a", NUMBERS, "difference; integers wrap",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    Mul "mul" Arithmetic [OpKind::Binary(BinOp::Mul)]
        "`a * b`", "a, b" => "as a", NUMBERS, "product; integers wrap",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    Div "div" Arithmetic [OpKind::Binary(BinOp::Div)]
        "`a / b`", "a, b" => "as a", NUMBERS, "quotient; integers truncate, and x / 0 is 0",
        [ShapeMismatch ElementMismatch ElementUnsupported DivisionByZero];
    Rem "rem" Arithmetic [OpKind::Binary(BinOp::Rem)]
        "`a % b`", "a, b" => "as a", INTEGERS, "remainder, with the sign of a; x % 0 is x",
        [ShapeMismatch ElementMismatch ElementUnsupported DivisionByZero];
    Min "min" Arithmetic [OpKind::Binary(BinOp::Min)]
        "`a.min(b)`", "a, b" => "as a", NUMBERS, "the lesser; NaN loses, −0 < +0",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    Max "max" Arithmetic [OpKind::Binary(BinOp::Max)]
        "`a.max(b)`", "a, b" => "as a", NUMBERS, "the greater; NaN loses, −0 < +0",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    MulAdd "mul_add" Arithmetic [OpKind::MulAdd]
        "`a.mul_add(b, c)`", "a, b, c" => "as a", FLOATS, "a · b + c, rounded once",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    And "and" Arithmetic [OpKind::Binary(BinOp::And)]
        "`a & b`", "a, b" => "as a", BITS, "bitwise and", [ShapeMismatch ElementMismatch ElementUnsupported];
    Or "or" Arithmetic [OpKind::Binary(BinOp::Or)]
        "`a | b`", "a, b" => "as a", BITS, "bitwise or", [ShapeMismatch ElementMismatch ElementUnsupported];
    Xor "xor" Arithmetic [OpKind::Binary(BinOp::Xor)]
        "`a ^ b`", "a, b" => "as a", BITS, "bitwise exclusive or", [ShapeMismatch ElementMismatch ElementUnsupported];
    Not "not" Arithmetic [OpKind::Unary(UnOp::Not)]
        "`!x`", "x" => "as x", BITS, "every bit inverted; of a bool the negation", [ElementUnsupported];
    Shl "shl" Arithmetic [OpKind::Binary(BinOp::Shl)]
        "`a << b`", "a, b" => "as a", INTEGERS, "shift to the left; an amount outside of the width gives 0",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    Shr "shr" Arithmetic [OpKind::Binary(BinOp::Shr)]
        "`a >> b`", "a, b" => "as a", INTEGERS,
        "shift to the right, of signed types with the sign; an amount outside of the width leaves 0 or the sign",
        [ShapeMismatch ElementMismatch ElementUnsupported];

    Exp "exp" Functions [OpKind::Unary(UnOp::Exp)]
        "`x.exp()`", "x" => "as x", FLOATS, "eˣ", [ElementUnsupported];
    Exp2 "exp2" Functions [OpKind::Unary(UnOp::Exp2)]
        "`x.exp2()`", "x" => "as x", FLOATS, "2ˣ", [ElementUnsupported];
    Ln "ln" Functions [OpKind::Unary(UnOp::Ln)]
        "`x.ln()`", "x" => "as x", FLOATS, "natural logarithm", [ElementUnsupported];
    Log2 "log2" Functions [OpKind::Unary(UnOp::Log2)]
        "`x.log2()`", "x" => "as x", FLOATS, "logarithm to base 2", [ElementUnsupported];
    Sqrt "sqrt" Functions [OpKind::Unary(UnOp::Sqrt)]
        "`x.sqrt()`", "x" => "as x", FLOATS, "square root, correctly rounded", [ElementUnsupported];
    Rsqrt "rsqrt" Functions [OpKind::Unary(UnOp::Rsqrt)]
        "`x.rsqrt()`", "x" => "as x", FLOATS, "1 / √x", [ElementUnsupported];
    Recip "recip" Functions [OpKind::Unary(UnOp::Recip)]
        "`x.recip()`", "x" => "as x", FLOATS, "1 / x, correctly rounded", [ElementUnsupported];
    Sin "sin" Functions [OpKind::Unary(UnOp::Sin)]
        "`x.sin()`", "x" => "as x", FLOATS, "sine of radians", [ElementUnsupported];
    Cos "cos" Functions [OpKind::Unary(UnOp::Cos)]
        "`x.cos()`", "x" => "as x", FLOATS, "cosine of radians", [ElementUnsupported];
    Tanh "tanh" Functions [OpKind::Unary(UnOp::Tanh)]
        "`x.tanh()`", "x" => "as x", FLOATS, "hyperbolic tangent", [ElementUnsupported];
    Sigmoid "sigmoid" Functions [OpKind::Unary(UnOp::Sigmoid)]
        "`x.sigmoid()`", "x" => "as x", FLOATS, "1 / (1 + e⁻ˣ)", [ElementUnsupported];
    Erf "erf" Functions [OpKind::Unary(UnOp::Erf)]
        "`x.erf()`", "x" => "as x", FLOATS, "error function", [ElementUnsupported];
    Floor "floor" Functions [OpKind::Unary(UnOp::Floor)]
        "`x.floor()`", "x" => "as x", FLOATS, "rounds toward −∞", [ElementUnsupported];
    Ceil "ceil" Functions [OpKind::Unary(UnOp::Ceil)]
        "`x.ceil()`", "x" => "as x", FLOATS, "rounds toward +∞", [ElementUnsupported];
    Trunc "trunc" Functions [OpKind::Unary(UnOp::Trunc)]
        "`x.trunc()`", "x" => "as x", FLOATS, "rounds toward zero", [ElementUnsupported];
    Round "round" Functions [OpKind::Unary(UnOp::Round)]
        "`x.round()`", "x" => "as x", FLOATS, "rounds to nearest, ties away from zero", [ElementUnsupported];
    RoundTiesEven "round_ties_even" Functions [OpKind::Unary(UnOp::RoundTiesEven)]
        "`x.round_ties_even()`", "x" => "as x", FLOATS, "rounds to nearest, ties to even", [ElementUnsupported];

    Eq "eq" Choice [OpKind::Cmp(Pred::Eq)]
        "`a == b`", "a, b" => "bool, shaped as a", COMPARED, "equality; NaN equals nothing",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    Ne "ne" Choice [OpKind::Cmp(Pred::Ne)]
        "`a != b`", "a, b" => "bool, shaped as a", COMPARED, "inequality; NaN differs from everything",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    Lt "lt" Choice [OpKind::Cmp(Pred::Lt)]
        "`a < b`", "a, b" => "bool, shaped as a", COMPARED, "less; false with NaN",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    Le "le" Choice [OpKind::Cmp(Pred::Le)]
        "`a <= b`", "a, b" => "bool, shaped as a", COMPARED, "less or equal; false with NaN",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    Gt "gt" Choice [OpKind::Cmp(Pred::Gt)]
        "`a > b`", "a, b" => "bool, shaped as a", COMPARED, "greater; false with NaN",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    Ge "ge" Choice [OpKind::Cmp(Pred::Ge)]
        "`a >= b`", "a, b" => "bool, shaped as a", COMPARED, "greater or equal; false with NaN",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    Nan "is_nan" Choice [OpKind::Unary(UnOp::IsNan)]
        "`x.is_nan()`", "x" => "bool, shaped as x", FLOATS, "whether an element is NaN", [ElementUnsupported];
    Select "select" Choice [OpKind::Select]
        "`select(m, a, b)`", "m: bool, a, b" => "as a", ANY,
        "a where m holds, b elsewhere; m is a tile shaped as a, or one bool", [ShapeMismatch ElementMismatch];

    Cast "cast" Conversions [OpKind::Cast(_)]
        "`x.cast::<U>()`", "x" => "U, shaped as x", ANY, "the value converted: nearest even, saturating to integers and FP8",
        [];
    Bitcast "bitcast" Conversions [OpKind::Bitcast(_)]
        "`x.bitcast::<U>()`", "x" => "U, shaped as x", "types of one width, not bool", "the same bits", [BitcastWidth];

    Reshape "reshape" Shapes [OpKind::Reshape(_)]
        "`x.reshape::<A, B>()`", "x: tile" => "tile [A, B]", ANY, "the same elements, row-major, under other extents",
        [ElementCount TileSize];
    Broadcast "broadcast" Shapes [OpKind::Broadcast { .. }]
        "`x.broadcast::<AX, N>()`  `x.row()`  `x.col()`", "x: tile" => "tile with axis AX of extent N", ANY,
        "a new axis along which the elements repeat", [BadAxis TileSize];
    Permute "permute" Shapes [OpKind::Permute(_)]
        "`x.permute::<1, 0>()`  `x.t()`", "x: tile" => "tile with axes reordered", ANY,
        "axis i of the result is axis `perm[i]` of x", [BadAxis];
    Interleave "interleave" Shapes [OpKind::Interleave]
        "`a.interleave::<..>(b)`", "a, b: tiles" => "tile with the last extent doubled", ANY,
        "elements of a and b alternate along the last axis", [ShapeMismatch ElementMismatch TileSize];
    Split "split" Shapes [OpKind::Split]
        "`x.split::<..>()`", "x: tile" => "two tiles with the last extent halved", ANY,
        "the even and the odd elements along the last axis", [ElementCount];

    ReduceSum "reduce_sum" Reductions [OpKind::Reduce(ReduceOp::Sum, _)]
        "`x.reduce_sum::<AX>()`", "x: tile" => "x without axis AX", NUMBERS,
        "sum; `f16` and `bf16` accumulate in `f32`", [BadAxis ElementUnsupported];
    ReduceProd "reduce_prod" Reductions [OpKind::Reduce(ReduceOp::Prod, _)]
        "`x.reduce_prod::<AX>()`", "x: tile" => "x without axis AX", NUMBERS,
        "product; `f16` and `bf16` accumulate in `f32`", [BadAxis ElementUnsupported];
    ReduceMax "reduce_max" Reductions [OpKind::Reduce(ReduceOp::Max, _)]
        "`x.reduce_max::<AX>()`", "x: tile" => "x without axis AX", NUMBERS, "the greatest; NaN only if all are",
        [BadAxis ElementUnsupported];
    ReduceMin "reduce_min" Reductions [OpKind::Reduce(ReduceOp::Min, _)]
        "`x.reduce_min::<AX>()`", "x: tile" => "x without axis AX", NUMBERS, "the least; NaN only if all are",
        [BadAxis ElementUnsupported];
    Argmax "argmax" Reductions [OpKind::ArgReduce(ArgOp::Max, _)]
        "`x.argmax::<AX>()`", "x: tile" => "values and i32 indices, both without axis AX", NUMBERS,
        "the greatest and where it is; the lowest index among equals", [BadAxis ElementUnsupported];
    Argmin "argmin" Reductions [OpKind::ArgReduce(ArgOp::Min, _)]
        "`x.argmin::<AX>()`", "x: tile" => "values and i32 indices, both without axis AX", NUMBERS,
        "the least and where it is; the lowest index among equals", [BadAxis ElementUnsupported];
    ReduceWith "reduce_with" Reductions [OpKind::ReduceWith(_)]
        "`x.reduce::<AX>(init, |a, b| ..)`", "x: tile, init: scalar" => "x without axis AX", COMPARED,
        "reduction by an associative, commutative function with neutral element init", [BadAxis ElementUnsupported];
    ScanSum "scan_sum" Reductions [OpKind::Scan(ReduceOp::Sum, _)]
        "`x.scan_sum::<AX>()`", "x: tile" => "as x", NUMBERS, "element i is the sum of elements 0 ..= i",
        [BadAxis ElementUnsupported];
    ScanProd "scan_prod" Reductions [OpKind::Scan(ReduceOp::Prod, _)]
        "`x.scan_prod::<AX>()`", "x: tile" => "as x", NUMBERS, "element i is the product of elements 0 ..= i",
        [BadAxis ElementUnsupported];
    ScanMax "scan_max" Reductions [OpKind::Scan(ReduceOp::Max, _)]
        "`x.scan_max::<AX>()`", "x: tile" => "as x", NUMBERS, "element i is the greatest of elements 0 ..= i",
        [BadAxis ElementUnsupported];
    ScanMin "scan_min" Reductions [OpKind::Scan(ReduceOp::Min, _)]
        "`x.scan_min::<AX>()`", "x: tile" => "as x", NUMBERS, "element i is the least of elements 0 ..= i",
        [BadAxis ElementUnsupported];
    ScanWith "scan_with" Reductions [OpKind::ScanWith(_)]
        "`x.scan::<AX>(init, |a, b| ..)`", "x: tile, init: scalar" => "as x", COMPARED,
        "inclusive scan by an associative function with neutral element init", [BadAxis ElementUnsupported];

    Mma "mma" Matrix [OpKind::Mma]
        "`mma(a, b, acc)`", "a [M, K], b [K, N], acc [M, N]; or each with a leading batch axis" => "as acc",
        "the triples of docs/semantics.md", "a · b + acc, summed in acc's type in any order", [ShapeMismatch MmaElements];

    Dim "dim" Views [OpKind::Dim(_)]
        "`t.dim(1)`", "t: tensor" => "i32", ANY, "the extent of an axis", [BadAxis];
    Present "present" Views [OpKind::Present]
        "`if let Some(b) = bias`", "t: tensor" => "bool", ANY, "whether an optional tensor was given", [];
    Index "index" Views [OpKind::Index(_)]
        "`t.index::<AX>(i)`", "t: tensor, i: i32" => "tensor without axis AX", ANY, "a view with one axis fixed",
        [BadAxis IndexType RankMismatch];
    Slice "slice" Views [OpKind::Slice(_)]
        "`t.slice::<AX>(lo..hi)`", "t: tensor, lo, hi: i32" => "as t", ANY,
        "a view of a range of an axis, clipped to the tensor", [BadAxis IndexType];
    Segment "segment" Views [OpKind::Segment]
        "`t.segment(off, e)`", "t: tensor, off: Tensor<i32, 1>, e: i32" => "as t", ANY,
        "a view of rows `off[e] .. off[e + 1]`; traps unless 0 ≤ off[e] ≤ off[e + 1] ≤ extent", [];
    Shared "shared" Views [OpKind::Shared]
        "`unsafe { t.shared() }`", "t: tensor" => "as t", ANY, "the same tensor, exempt from the output rule", [];

    LoadTile "load_tile" Memory [OpKind::Load(Unit::Tile, _)]
        "`t.load_tile::<A, B>([i, j])`  `t.load_tile_or::<A, B>([i, j], pad)`",
        "t: tensor, an i32 per axis, pad: scalar" => "tile [A, B]", ANY,
        "the tile at tile coordinates; outside of the tensor the padding, zero unless said",
        [RankMismatch IndexType TileSize ElementMismatch];
    LoadAt "load_at" Memory [OpKind::Load(Unit::Elem, _)]
        "`t.load_at::<A, B>([r, c])`  `t.load_at_or::<A, B>([r, c], pad)`",
        "t: tensor, an i32 per axis, pad: scalar" => "tile [A, B]", ANY,
        "the tile whose first element is at these coordinates, which may be negative",
        [RankMismatch IndexType TileSize ElementMismatch];
    StoreTile "store_tile" Memory [OpKind::Store(Unit::Tile)]
        "`t.store_tile([i, j], v)`", "t: tensor, an i32 per axis, v: tile" => "", ANY,
        "stores a tile at tile coordinates; what lies outside is dropped",
        [RankMismatch IndexType ElementMismatch StoreToInput];
    StoreAt "store_at" Memory [OpKind::Store(Unit::Elem)]
        "`t.store_at([r, c], v)`", "t: tensor, an i32 per axis, v: tile" => "", ANY,
        "stores a tile at element coordinates; what lies outside is dropped",
        [RankMismatch IndexType ElementMismatch StoreToInput];
    Get "get" Memory [OpKind::Get]
        "`t.get([i, j])`", "t: tensor, an i32 per axis" => "scalar", ANY, "one element; traps outside of the tensor",
        [IndexType];
    Set "set" Memory [OpKind::Set]
        "`t.set([i, j], x)`", "t: tensor, an i32 per axis, x: scalar" => "", ANY,
        "stores one element; traps outside of the tensor", [IndexType StoreToInput];

    GatherRows "gather_rows" Indexed [OpKind::GatherRows { .. }]
        "`t.gather_rows::<N, W>((i, ..), col)`  `t.gather_rows_or::<N, W>((i, ..), col, pad)`",
        "t: tensor, an i32 or Tile<i32, N> per leading axis, col: i32, pad: scalar" => "tile [N, W]", ANY,
        "N rows of W elements of the last axis; a row with an index out of range is the padding",
        [IndexType TileSize ElementMismatch];
    ScatterRows "scatter_rows" Indexed [OpKind::ScatterRows]
        "`t.scatter_rows((i, ..), col, v)`",
        "t: tensor, an i32 or Tile<i32, N> per leading axis, col: i32, v: tile [N, W]" => "", ANY,
        "stores N rows of W elements; rows out of range are dropped, of several writers one value stays",
        [IndexType StoreToInput];
    Gather "gather" Indexed [OpKind::Gather]
        "`t.gather([i, ..])`  `t.gather_or([i, ..], pad)`", "t: tensor, an i32 tile per axis, pad: scalar"
        => "tile shaped as the indices", ANY, "one element per lane; out of range is the padding", [ElementMismatch];
    Scatter "scatter" Indexed [OpKind::Scatter]
        "`t.scatter([i, ..], v)`", "t: tensor, an i32 tile per axis, v: tile shaped as they" => "", WHOLE,
        "stores one element per lane; out of range is dropped, of several writers one value stays",
        [ElementUnsupported StoreToInput];
    AtomicAdd "atomic_add" Indexed [OpKind::Atomic(AtomicOp::Add)]
        "`t.atomic_add([i, ..], v)`", "t: tensor, an i32 tile per axis, v: tile shaped as they" => "", ATOMIC,
        "adds to one element per lane; every contribution counts", [ElementUnsupported StoreToInput];
    AtomicMax "atomic_max" Indexed [OpKind::Atomic(AtomicOp::Max)]
        "`t.atomic_max([i, ..], v)`", "t: tensor, an i32 tile per axis, v: tile shaped as they" => "", ATOMIC,
        "raises one element per lane to the greater", [ElementUnsupported StoreToInput];
    AtomicMin "atomic_min" Indexed [OpKind::Atomic(AtomicOp::Min)]
        "`t.atomic_min([i, ..], v)`", "t: tensor, an i32 tile per axis, v: tile shaped as they" => "", ATOMIC,
        "lowers one element per lane to the lesser", [ElementUnsupported StoreToInput];
    AtomicAddTile "atomic_add_tile" Indexed [OpKind::AtomicTile(AtomicOp::Add)]
        "`t.atomic_add_tile([m, n], v)`", "t: tensor, an i32 per axis, v: tile" => "", ATOMIC,
        "adds a tile at tile coordinates; what lies outside is dropped",
        [RankMismatch IndexType ElementMismatch ElementUnsupported StoreToInput];
    AtomicMaxTile "atomic_max_tile" Indexed [OpKind::AtomicTile(AtomicOp::Max)]
        "`t.atomic_max_tile([m, n], v)`", "t: tensor, an i32 per axis, v: tile" => "", ATOMIC,
        "raises a tile at tile coordinates to the greater",
        [RankMismatch IndexType ElementMismatch ElementUnsupported StoreToInput];
    AtomicMinTile "atomic_min_tile" Indexed [OpKind::AtomicTile(AtomicOp::Min)]
        "`t.atomic_min_tile([m, n], v)`", "t: tensor, an i32 per axis, v: tile" => "", ATOMIC,
        "lowers a tile at tile coordinates to the lesser",
        [RankMismatch IndexType ElementMismatch ElementUnsupported StoreToInput];

    Unflatten "unflatten" Distribution [OpKind::Unflatten]
        "`unflatten(i, [a, b])`", "i: i32, an i32 extent per axis, one to four" => "an i32 per axis", I32,
        "the coordinates of a linear index in a box, row-major", [IndexType];
    UnflattenGrouped "unflatten_grouped" Distribution [OpKind::UnflattenGrouped(_)]
        "`unflatten_grouped::<G>(i, [a, b])`", "i: i32, an i32 extent per axis, two to four" => "an i32 per axis", I32,
        "the coordinates of a linear index in a box, G rows of the last two axes at a time, column by column",
        [TileSize IndexType];
    RaggedCount "ragged_count" Distribution [OpKind::RaggedCount { .. }]
        "`y.ragged::<A, B>(off)`", "y: tensor of rank 2, off: Tensor<i32, 1>" => "i32", ANY,
        "how many A×B tiles the segments of y have", [TileSize];
    RaggedTile "ragged_tile" Distribution [OpKind::RaggedTile { .. }]
        "`y.ragged::<A, B>(off)`", "y: tensor of rank 2, off: Tensor<i32, 1>, j: i32" => "segment, row tile, column tile",
        ANY, "which A×B tile of the segments has number j", [TileSize];

    Print "print" Debugging [OpKind::Print(_)]
        "`tprint!(\"x = {}\", x)`", "scalars and tiles" => "", ANY, "prints the values in place of each `{}`", [];
    Assert "assert" Debugging [OpKind::Assert(_)]
        "`tassert!(c, \"message\")`", "c: bool, scalar or tile" => "", BOOL,
        "traps with the message and the kernel's line unless all of c holds", [];

    For "for" Control [OpKind::For(_)]
        "`for i in a..b { }`  `for i in pipelined(a..b) { }`  `for out in c.tiles::<A, B>() { }`",
        "lo, hi, step: i32, initial values" => "the carried values", ANY,
        "a counted loop; `pipelined` lets loads run ahead, `distributed` deals the iterations to the programs",
        [EarlyExit NestedPipeline];
    Loop "loop" Control [OpKind::Loop]
        "`loop { }`  `while c { }`", "initial values" => "the operands of `break`", ANY, "a loop until `break`", [Unreachable];
    If "if" Control [OpKind::If]
        "`if c { } else { }`  `if let Some(t) = t { }`", "c: bool" => "what its arms yield", ANY,
        "a branch, uniform over the program", [Condition];
    Yield "yield" Control [OpKind::Yield]
        "the value of a block", "values" => "", NONE, "ends an arm of an `if` or the function of a reduction", [];
    Break "break" Control [OpKind::Break(_)]
        "`break`", "results of the loop" => "", NONE, "leaves a loop; `<n>` counts loops outward", [EarlyExit];
    Continue "continue" Control [OpKind::Continue(_)]
        "`continue`  the end of a loop's body", "next carried values" => "", NONE,
        "ends an iteration; `<n>` counts loops outward", [EarlyExit];
    Return "return" Control [OpKind::Return]
        "`return`  the end of the kernel", "" => "", NONE, "ends the program", [EarlyExit];

    SourceTile "ttg.source_tile" Stages [OpKind::Ttg(TtgOp::Source(Unit::Tile, _))]
        "`t.tile([i, j])`", "t: tensor, an i32 per axis, pad: scalar" => "source [A, B]", ANY,
        "the tile at tile coordinates, as the source of a copy", [RankMismatch IndexType TileSize];
    SourceAt "ttg.source_at" Stages [OpKind::Ttg(TtgOp::Source(Unit::Elem, _))]
        "`t.tile_at([r, c])`", "t: tensor, an i32 per axis, pad: scalar" => "source [A, B]", ANY,
        "the tile whose first element is at these coordinates, as the source of a copy", [RankMismatch IndexType TileSize];
    SourceRows "ttg.source_rows" Stages [OpKind::Ttg(TtgOp::SourceRows { .. })]
        "`t.rows((i, ..), col)`", "t: tensor, an i32 or Tile<i32, N> per leading axis, col: i32, pad: scalar"
        => "source [N, W]", ANY, "rows named by indices, for a copy", [IndexType TileSize];
    Acquire "ttg.stage.acquire" Stages [OpKind::Ttg(TtgOp::Acquire(_))]
        "`ring.acquire()`  `ring.produce(range)`", "perhaps the time: i32" => "slot", NONE,
        "waits for Free(s, e) of the next time of the filling side", [RingMade WrongSide WaitCycle TooManyHeld WrongTime];
    AsyncProduce "ttg.stage.async_produce" Stages [OpKind::Ttg(TtgOp::AsyncProduce { .. })]
        "`slot.copy(source).commit()`  `slot.copy_if(c, source).commit()`", "slot, a source per field, perhaps a condition"
        => "", NONE, "starts the copies; Ready(s, e) when the bytes are there, or what `skipped` says if the condition is false",
        [StageContents SourceWritten];
    ZeroStage "ttg.stage.zero" Stages [OpKind::Ttg(TtgOp::Fill(Fill::Zero))]
        "`slot.zero().commit()`", "slot" => "", NONE, "the stage is ready and holds zeros, which the copier writes", [];
    PoisonStage "ttg.stage.poison" Stages [OpKind::Ttg(TtgOp::Fill(Fill::Poison))]
        "`slot.poison().commit()`", "slot" => "", NONE, "the stage is ready and may not be read", [];
    Ready "ttg.stage.ready" Stages [OpKind::Ttg(TtgOp::Ready(_))]
        "`ring.ready()`  `ring.consume(range)`", "perhaps the time: i32" => "ready", NONE,
        "a pending wait for the next time of the reading side; does not wait", [RingMade WrongSide WrongTime];
    WaitReady "ttg.stage.wait_ready" Stages [OpKind::Ttg(TtgOp::WaitReady)]
        "`ready.wait()`", "ready" => "stage", NONE, "waits for Ready(s, e)", [Unbalanced WaitCycle TooManyHeld];
    Poisoned "ttg.stage.poisoned" Stages [OpKind::Ttg(TtgOp::Poisoned)]
        "`if let Some(stage) = ready.wait_filled() { .. }`", "stage" => "bool", NONE, "whether the stage is poison", [];
    ReadPerm "ttg.stage.read_perm" Stages [OpKind::Ttg(TtgOp::ReadPerm)]
        "`ready.wait()`", "stage" => "rperm", NONE, "the permission to read the stage", [PoisonRead];
    SplitPerm "ttg.rperm.split" Stages [OpKind::Ttg(TtgOp::Split(_))]
        "`stage.split::<2>()`", "rperm" => "so many parts", NONE, "splits the read permission into a part for each of several readers",
        [ReadersApart];
    JoinPerm "ttg.rperm.join" Stages [OpKind::Ttg(TtgOp::Join)]
        "`Stage::join(parts)`", "every part" => "rperm", NONE, "joins the parts of a read permission", [ReadersApart];
    View "ttg.stage.view" Stages [OpKind::Ttg(TtgOp::View { .. })]
        "`stage.a()`  `stage.get()`", "rperm or a part" => "smem [A, B]", ANY, "a tile of the stage, in shared memory",
        [StageContents EarlyRelease];
    ReadStage "ttg.stage.read" Stages [OpKind::Ttg(TtgOp::Read)]
        "`stage.a().load()`", "smem" => "tile [A, B]", ANY, "its elements, in registers", [EarlyRelease];
    Consumed "ttg.stage.consumed" Stages [OpKind::Ttg(TtgOp::Consumed)]
        "`stage.release()`", "rperm, or the stage unread" => "consumed", NONE, "the end of reading the stage",
        [EarlyRelease ReadersApart];
    Release "ttg.stage.release" Stages [OpKind::Ttg(TtgOp::Release)]
        "`stage.release()`", "consumed" => "", NONE, "Free(s, e + 1)", [];
    WriteStage "ttg.stage.write" Stages [OpKind::Ttg(TtgOp::Write)]
        "`slot.write(tile)`", "slot, a tile per field" => "written", ANY, "fills a slot of a staging ring from registers",
        [StageContents StagingReused];

    ComputeIssue "ttg.compute.issue" Compute [OpKind::Ttg(TtgOp::ComputeIssue)]
        "`mma_async(a, b, acc)`", "a: smem or tile, b: smem, acc: tile" => "compute", "the triples of docs/semantics.md",
        "starts a · b + acc", [MmaElements ShapeMismatch];
    ComputeWait "ttg.compute.wait" Compute [OpKind::Ttg(TtgOp::ComputeWait)]
        "`product.wait()`", "compute" => "tile", ANY, "waits for the MMA", [];
    AccStart "ttg.acc.start" Compute [OpKind::Ttg(TtgOp::AccStart(_))]
        "`Acc::<f32, D2<M, N>, KEEP>::zeros()`", "tile" => "acc", ANY, "an accumulator with up to KEEP MMAs in flight", [];
    AccMma "ttg.acc.mma" Compute [OpKind::Ttg(TtgOp::AccMma)]
        "`acc.mma(stage, |s| (s.a(), s.b()))`", "acc, rperm, a, b" => "acc", "the triples of docs/semantics.md",
        "starts acc += a · b and takes the stage, which is released when the MMA has read it: at most KEEP MMAs later",
        [MmaElements ShapeMismatch];
    AccFinish "ttg.acc.finish" Compute [OpKind::Ttg(TtgOp::AccFinish)]
        "`acc.finish()`", "acc" => "tile", ANY, "waits for all its MMAs and releases their stages", [];

    StoreTileAsync "ttg.store.issue_tile" Stores [OpKind::Ttg(TtgOp::StoreIssue(Unit::Tile))]
        "`written.store(&mut c, [m, n])`", "t: tensor, an i32 per axis, written" => "store", ANY,
        "starts the store of a slot at tile coordinates", [StoreToInput StageContents InFlight];
    StoreAtAsync "ttg.store.issue_at" Stores [OpKind::Ttg(TtgOp::StoreIssue(Unit::Elem))]
        "`written.store_at(&mut c, [r, c])`", "t: tensor, an i32 per axis, written" => "store", ANY,
        "starts the store of a slot at element coordinates", [StoreToInput StageContents InFlight];
    StoreWait "ttg.store.wait" Stores [OpKind::Ttg(TtgOp::StoreWait)]
        "`store.wait()`", "store" => "", NONE, "waits until the slot has been read: it may be filled again", [];

    Roles "ttg.roles" Roles [OpKind::Ttg(TtgOp::Roles)]
        "`match role() { Role::Producer => .., Role::Consumer => .. }`", "" => "", NONE,
        "every role runs its block with its own warps, concurrently", [RolesAttr RolesDiverge RoleValue TwoWriters];
    Finalize "ttg.pipeline.finalize" Roles [OpKind::Ttg(TtgOp::Finalize)]
        "the end of a role", "" => "", NONE, "none of the role's asynchronous work is still in flight", [NotFinalized];
    Rematerialize "ttg.hint.rematerialize" Roles [OpKind::Ttg(TtgOp::Rematerialize)]
        "", "x" => "as x", ANY, "x, which is cheaper to compute again than to keep", [];
    ClaimAcquired "ttg.claim.acquired" Roles [OpKind::Ttg(TtgOp::Claim(Claim::Acquired, _))]
        "", "region, slot: i32, round: i32" => "", NONE, "the operations before have waited until the slot is free", [];
    ClaimFilled "ttg.claim.filled" Roles [OpKind::Ttg(TtgOp::Claim(Claim::Filled, _))]
        "", "region, slot: i32, round: i32" => "", NONE, "the operations before determine when the slot is filled", [];
    ClaimNext "ttg.claim.next" Roles [OpKind::Ttg(TtgOp::Claim(Claim::Next, _))]
        "", "region, slot: i32, round: i32" => "", NONE, "this is the slot that this role reads next", [];
    ClaimReady "ttg.claim.ready" Roles [OpKind::Ttg(TtgOp::Claim(Claim::Ready, _))]
        "", "region, slot: i32, round: i32" => "", NONE, "the operations before have waited until the slot is filled", [];
    ClaimReleased "ttg.claim.released" Roles [OpKind::Ttg(TtgOp::Claim(Claim::Released, _))]
        "", "region, slot: i32, round: i32" => "", NONE, "the operations before release the slot for this role", [];
    FenceProxy "ttg.fence.proxy" Roles [OpKind::Ttg(TtgOp::Fence { .. })]
        "", "" => "", NONE, "orders earlier accesses through the proxy `from` before later accesses through the proxy `to`", [];

    LocalAlloc "ttg.local.alloc" Laid [OpKind::Local(LocalOp::Alloc { .. })]
        "", "" => "smem", ANY, "shared memory for a tile", [];
    LocalStore "ttg.local.store" Laid [OpKind::Local(LocalOp::Store)]
        "", "x, smem" => "", ANY, "a tile from registers to shared memory", [];
    LocalLoad "ttg.local.load" Laid [OpKind::Local(LocalOp::Load)]
        "", "smem" => "tile", ANY, "a tile from shared memory to registers", [];
    LocalCopy "ttg.local.copy" Laid [OpKind::Local(LocalOp::Copy { asynchronous: false })]
        "", "source, smem" => "", ANY, "a tile of a tensor to shared memory, through registers", [];
    LocalCopyAsync "ttg.local.copy_async" Laid [OpKind::Local(LocalOp::Copy { asynchronous: true })]
        "", "source, smem" => "", ANY, "starts an asynchronous copy of a tile of a tensor to shared memory", [];
    LocalGuard "ttg.local.guard" Laid [OpKind::Local(LocalOp::Guard)]
        "", "source, condition: bool" => "source", ANY, "the same tile of a tensor; all of it is outside unless the condition holds", [];
    LocalSlice "ttg.local.slice" Laid [OpKind::Local(LocalOp::Slice { .. })]
        "", "x: tile or smem, at: i32" => "as x, shorter", ANY, "a part of a tile along an axis", [];
    LocalStack "ttg.local.stack" Laid [OpKind::Local(LocalOp::Stack)]
        "", "x, …" => "tile", ANY, "stacks tiles along a new first axis", [];
    LocalReshape "ttg.local.reshape" Laid [OpKind::Local(LocalOp::Reshape(_))]
        "", "smem" => "smem", ANY, "the same shared memory as another tile, its elements in row-major order", [];
    LocalMma "ttg.local.mma" Laid [OpKind::Local(LocalOp::Mma)]
        "", "a, b, acc" => "as acc", NUMBERS, "a · b + acc, on fragments", [];
    LocalConvert "ttg.local.convert" Laid [OpKind::Local(LocalOp::Convert)]
        "", "x" => "as x", ANY, "a tile in another layout; each thread has what it needs", [];
    FoldSum "ttg.local.fold_sum" Laid [OpKind::Local(LocalOp::Fold { f: Fold::Plain(ReduceOp::Sum), .. })]
        "", "x" => "partial results", NUMBERS, "sums along an axis, by the lanes of each warp", [];
    FoldProd "ttg.local.fold_prod" Laid [OpKind::Local(LocalOp::Fold { f: Fold::Plain(ReduceOp::Prod), .. })]
        "", "x" => "partial results", NUMBERS, "products along an axis, by the lanes of each warp", [];
    FoldMax "ttg.local.fold_max" Laid [OpKind::Local(LocalOp::Fold { f: Fold::Plain(ReduceOp::Max), .. })]
        "", "x" => "partial results", NUMBERS, "the greatest along an axis, by the lanes of each warp", [];
    FoldMin "ttg.local.fold_min" Laid [OpKind::Local(LocalOp::Fold { f: Fold::Plain(ReduceOp::Min), .. })]
        "", "x" => "partial results", NUMBERS, "the least along an axis, by the lanes of each warp", [];
    FoldArgMax "ttg.local.fold_argmax" Laid [OpKind::Local(LocalOp::Fold { f: Fold::Arg(ArgOp::Max), .. })]
        "", "x, index: i32" => "partial results", NUMBERS, "the greatest along an axis and its index, by each warp", [];
    FoldArgMin "ttg.local.fold_argmin" Laid [OpKind::Local(LocalOp::Fold { f: Fold::Arg(ArgOp::Min), .. })]
        "", "x, index: i32" => "partial results", NUMBERS, "the least along an axis and its index, by each warp", [];
    FoldWith "ttg.local.fold_with" Laid [OpKind::Local(LocalOp::Fold { f: Fold::With, .. })]
        "", "x, neutral: scalar" => "partial results", ANY, "combines along an axis by a region, by each warp", [];

    Region "ttg.region" Regions [OpKind::Region(RegionOp::Place { .. })]
        "", "" => "region", NONE, "bytes of shared memory, in equal parts; regions may overlap", [RegionMade];
    RegionAt "ttg.region.at" Regions [OpKind::Region(RegionOp::At)]
        "", "region, i: i32" => "region", NONE, "one of the parts", [RegionMade NotShown];
    RegionTile "ttg.region.tile" Regions [OpKind::Region(RegionOp::Tile { .. })]
        "", "region" => "smem", ANY, "a tile in a region, at a byte offset", [RegionMade];
    RegionRead "ttg.region.read" Regions [OpKind::Region(RegionOp::Read)]
        "", "region" => "", NONE, "generic loads of all of it", [InFlight];
    RegionWrite "ttg.region.write" Regions [OpKind::Region(RegionOp::Write)]
        "", "region" => "", NONE, "generic stores to all of it", [InFlight];
    RegionCall "ttg.region.call" Regions [OpKind::Region(RegionOp::Call(_))]
        "", "\"name\", regions" => "", NONE, "opaque code with the accesses of `access` to its regions, or reads and writes of all; through `proxy`, or the generic one", [InFlight Unfenced];
    VtokWait "ttg.vtok.wait" Regions [OpKind::Region(RegionOp::Wait)]
        "", "vtok" => "", NONE, "waits for a group, and so for all older ones of its class; for bulk stores, until they have read their regions", [GroupOrder NotShown];

    MbarrierAlloc "ttg.nv.mbarrier.alloc" Barriers [OpKind::Nv(NvOp::MbarrierAlloc { .. })]
        "", "region" => "mbarrier", NONE, "n barriers of 8 bytes each, from byte `at` of a region on", [BarrierWord];
    MbarrierAt "ttg.nv.mbarrier.at" Barriers [OpKind::Nv(NvOp::MbarrierAt)]
        "", "mbarrier, i: i32" => "mbarrier", NONE, "one of them", [BarrierWord NotShown];
    MbarrierInit "ttg.nv.mbarrier.init" Barriers [OpKind::Nv(NvOp::MbarrierInit { .. })]
        "", "mbarrier" => "", NONE, "initialises the barrier: a phase completes with `count` arrivals and the expected bytes", [BarrierLife BarrierCount];
    MbarrierInval "ttg.nv.mbarrier.inval" Barriers [OpKind::Nv(NvOp::MbarrierInval)]
        "", "mbarrier" => "", NONE, "invalidates the barrier: its word is ordinary memory again", [BarrierLife];
    Arrive "ttg.nv.mbarrier.arrive" Barriers [OpKind::Nv(NvOp::Arrive { .. })]
        "", "mbarrier" => "mbarrier.state", NONE, "so many arrivals; the phase in which they counted", [BarrierCount PhaseMixed];
    ArriveCluster "ttg.nv.mbarrier.arrive_cluster" Barriers [OpKind::Nv(NvOp::ArriveCluster { .. })]
        "", "mbarrier" => "", NONE, "so many arrivals at this barrier of each program of the cluster", [NotShown];
    ArriveExpectTx "ttg.nv.mbarrier.arrive_expect_tx" Barriers [OpKind::Nv(NvOp::ArriveExpectTx { .. })]
        "", "mbarrier" => "mbarrier.state", NONE, "expects bytes (expect_tx) and arrives once", [TxBytes BarrierCount PhaseMixed];
    ExpectTx "ttg.nv.mbarrier.expect_tx" Barriers [OpKind::Nv(NvOp::ExpectTx { .. })]
        "", "mbarrier" => "", NONE, "expects bytes (expect_tx)", [TxBytes PhaseMixed];
    MbarrierWait "ttg.nv.mbarrier.wait" Barriers [OpKind::Nv(NvOp::MbarrierWait)]
        "", "mbarrier, state" => "", NONE, "waits for the phase of an arrival", [NeverCompletes PhaseMixed NotShown];
    WaitParity "ttg.nv.mbarrier.wait_parity" Barriers [OpKind::Nv(NvOp::WaitParity)]
        "", "mbarrier, parity: i32" => "", NONE, "waits until the phase of this parity is complete", [WaitParity NeverCompletes PhaseMixed NotShown];
    TryWait "ttg.nv.mbarrier.try_wait" Barriers [OpKind::Nv(NvOp::TryWait)]
        "", "mbarrier, parity: i32" => "bool", NONE, "whether it is, after a while; nothing is concluded from it, but that a loop that does nothing else until it is waits for it", [BarrierLife];
    TestWait "ttg.nv.mbarrier.test_wait" Barriers [OpKind::Nv(NvOp::TestWait)]
        "", "mbarrier, parity: i32" => "bool", NONE, "whether it is; nothing is concluded from it, but that a loop that does nothing else until it is waits for it", [BarrierLife];
    FenceMbarrierInit "ttg.nv.fence.mbarrier_init" Barriers [OpKind::Nv(NvOp::FenceMbarrierInit)]
        "", "" => "", NONE, "makes initialised barriers visible to bulk copies and to the cluster", [BarrierLife];

    BulkTensorLoad "ttg.nv.cp_async_bulk_tensor.load" Copies [OpKind::Nv(NvOp::BulkLoad { tensor: true, .. })]
        "", "t: tensor, an i32 per axis, region, mbarrier; or source, smem, mbarrier" => "", ANY,
        "starts a copy of a box of a tensor, or of a tile; its bytes are taken from what the barrier expects", [TxBytes InFlight PhaseMixed NotShown];
    BulkTensorStore "ttg.nv.cp_async_bulk_tensor.store" Copies [OpKind::Nv(NvOp::BulkStore { tensor: true, .. })]
        "", "t: tensor, an i32 per axis, region; or source, smem" => "", ANY,
        "starts a copy to a box of a tensor, or to a tile of one, in the open group of bulk stores", [InFlight InFlightAtEnd];
    BulkLoad "ttg.nv.cp_async_bulk.load" Copies [OpKind::Nv(NvOp::BulkLoad { tensor: false, .. })]
        "", "t: tensor, an i32 per axis, region, mbarrier" => "", ANY, "the same of contiguous bytes", [TxBytes InFlight PhaseMixed NotShown];
    BulkStore "ttg.nv.cp_async_bulk.store" Copies [OpKind::Nv(NvOp::BulkStore { tensor: false, .. })]
        "", "t: tensor, an i32 per axis, region" => "", ANY, "the same to contiguous bytes", [InFlight InFlightAtEnd];
    CpAsync "ttg.nv.cp_async" Copies [OpKind::Nv(NvOp::CpAsync { .. })]
        "", "t: tensor, an i32 per axis, region" => "", ANY, "starts copies of the role's threads, in the open group", [InFlight GroupOpen InFlightAtEnd];
    CpAsyncArrive "ttg.nv.cp_async.mbarrier_arrive" Copies [OpKind::Nv(NvOp::CpAsyncArrive { .. })]
        "", "mbarrier" => "", NONE, "each thread of the role arrives when all its earlier `cp.async` complete; without `noinc` the count is raised first", [BarrierCount PhaseMixed Participants];
    CpAsyncCommit "ttg.nv.cp_async.commit_group" Copies [OpKind::Nv(NvOp::Commit { group: NvGroup::CpAsync, .. })]
        "", "" => "vtok", NONE, "commits the open group", [GroupOrder];
    CpAsyncWait "ttg.nv.cp_async.wait_group" Copies [OpKind::Nv(NvOp::WaitGroup { group: NvGroup::CpAsync, .. })]
        "", "" => "", NONE, "waits until at most n groups are in flight", [];
    BulkCommit "ttg.nv.bulk_group.commit" Copies [OpKind::Nv(NvOp::Commit { group: NvGroup::BulkStore, .. })]
        "", "" => "vtok", NONE, "commits the open group of bulk stores", [GroupOrder];
    BulkWait "ttg.nv.bulk_group.wait" Copies [OpKind::Nv(NvOp::WaitGroup { group: NvGroup::BulkStore, .. })]
        "", "" => "", NONE, "waits until at most n groups have not yet written or, with `read`, not yet read their regions", [];

    WgmmaFence "ttg.nv.wgmma.fence" Warpgroups [OpKind::Nv(NvOp::WgmmaFence)]
        "", "" => "", NONE, "orders register accesses before MMAs that use them", [];
    WgmmaMma "ttg.nv.wgmma.mma_async" Warpgroups [OpKind::Nv(NvOp::Wgmma)]
        "", "one or two regions; or a: tile or smem, b: smem, acc: tile or compute" => "compute", NONE,
        "starts an MMA on shared memory, in the open group; of tiles, the result of a · b + acc is in flight", [InFlight GroupOpen InFlightAtEnd];
    WgmmaCommit "ttg.nv.wgmma.commit_group" Warpgroups [OpKind::Nv(NvOp::Commit { group: NvGroup::Wgmma, .. })]
        "", "" => "vtok", NONE, "commits the open group", [GroupOrder];
    WgmmaWait "ttg.nv.wgmma.wait_group" Warpgroups [OpKind::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, .. })]
        "", "any number of: compute" => "as many tiles", NONE,
        "waits until at most n groups are in flight; gives the results of MMAs that are complete then", [];
    WarpSync "ttg.nv.warp.sync" Warpgroups [OpKind::Nv(NvOp::WarpSync)]
        "", "" => "", NONE, "a barrier of the lanes of each warp of the role", [];
    SequenceInit "ttg.nv.sequence.init" Warpgroups [OpKind::Nv(NvOp::SequenceInit)]
        "", "region" => "", NONE, "sets the counters of a region, one word per part, to 0", [];
    SequenceStore "ttg.nv.sequence.store" Warpgroups [OpKind::Nv(NvOp::SequenceStore)]
        "", "region, n: i32" => "", NONE, "one thread stores a counter, with release semantics for its role's earlier accesses", [];
    SequenceWait "ttg.nv.sequence.wait" Warpgroups [OpKind::Nv(NvOp::SequenceWait)]
        "", "region, n: i32" => "", NONE, "waits until a counter is at least n, with acquire semantics", [];
    SetMaxNReg "ttg.nv.setmaxnreg" Warpgroups [OpKind::Nv(NvOp::SetMaxNReg { .. })]
        "", "" => "", NONE, "sets the number of registers of each thread of the role, as its first operation; waits until the program has so many", [Participants];
    BarrierSync "ttg.nv.barrier.sync" Warpgroups [OpKind::Nv(NvOp::BarrierSync { .. })]
        "", "" => "", NONE, "arrives at a named barrier and waits for all its threads", [Participants NeverCompletes PhaseMixed];
    BarrierArrive "ttg.nv.barrier.arrive" Warpgroups [OpKind::Nv(NvOp::BarrierArrive { .. })]
        "", "" => "", NONE, "arrives at a named barrier without waiting", [Participants PhaseMixed];
    ClusterRank "ttg.nv.cluster.rank" Warpgroups [OpKind::Nv(NvOp::ClusterRank)]
        "", "" => "i32", NONE, "the number of this program in its cluster", [];
    ClusterArrive "ttg.nv.cluster.arrive" Warpgroups [OpKind::Nv(NvOp::ClusterArrive)]
        "", "" => "", NONE, "arrives at the cluster barrier", [PhaseMixed];
    ClusterWait "ttg.nv.cluster.wait" Warpgroups [OpKind::Nv(NvOp::ClusterWait)]
        "", "" => "", NONE, "waits at the cluster barrier", [NeverCompletes];

    TensorAlloc "ttg.nv.tcgen05.alloc" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Alloc { .. }))]
        "", "" => "tmem", NONE, "one warp allocates columns of tensor memory", [TensorColumns TensorThreads];
    TensorDealloc "ttg.nv.tcgen05.dealloc" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Dealloc { .. }))]
        "", "tmem" => "", NONE, "one warp frees columns", [TensorColumns TensorThreads];
    TensorRelinquish "ttg.nv.tcgen05.relinquish_alloc_permit" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Relinquish { .. }))]
        "", "" => "", NONE, "the block allocates no more columns", [TensorThreads];
    TensorMma "ttg.nv.tcgen05.mma" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Mma(_)))]
        "", "d: tmem, a: region or tmem, b: region; with scales also the tmem of those of a and of b" => "", NONE,
        "one thread starts an MMA: d += a · b", [TensorMma TensorMmaShape TensorThreads InFlight GroupOpen];
    TensorLoad "ttg.nv.tcgen05.ld" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Load { .. }))]
        "", "tmem" => "", NONE, "warps load from tensor memory", [TensorThreads];
    TensorStore "ttg.nv.tcgen05.st" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Store { .. }))]
        "", "tmem" => "", NONE, "warps store to tensor memory", [TensorThreads];
    TensorCopy "ttg.nv.tcgen05.cp" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Copy { .. }))]
        "", "tmem, region" => "", NONE, "one thread starts a copy of shared memory to tensor memory", [TensorThreads InFlight GroupOpen];
    TensorShift "ttg.nv.tcgen05.shift" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Shift { .. }))]
        "", "tmem" => "", NONE, "one thread shifts rows of tensor memory by one", [TensorThreads];
    TensorCommit "ttg.nv.tcgen05.commit" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Commit { .. }))]
        "", "mbarrier" => "", NONE, "arrives once when all earlier MMAs, copies and shifts of the thread are complete", [BarrierCount PhaseMixed TensorThreads];
    TensorWaitLoad "ttg.nv.tcgen05.wait_ld" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::WaitLoad))]
        "", "" => "", NONE, "waits for the loads of each thread", [];
    TensorWaitStore "ttg.nv.tcgen05.wait_st" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::WaitStore))]
        "", "" => "", NONE, "waits for the stores of each thread", [];
    TensorFenceBefore "ttg.nv.tcgen05.fence_before_thread_sync" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::FenceBefore))]
        "", "" => "", NONE, "orders earlier operations on tensor memory before a synchronisation of threads", [];
    TensorFenceAfter "ttg.nv.tcgen05.fence_after_thread_sync" TensorMemory [OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::FenceAfter))]
        "", "" => "", NONE, "orders later operations on tensor memory behind a synchronisation of threads", [];

    Waitcnt "ttg.amd.s_waitcnt" Waves [OpKind::Amd(AmdOp::Waitcnt { .. })]
        "", "" => "", NONE, "waits until the counters are at most these", [];
    BufferLoadLds "ttg.amd.buffer_load_lds" Waves [OpKind::Amd(AmdOp::BufferLoadLds { .. })]
        "", "t: tensor, an i32 per axis, region" => "vtok", ANY, "starts a copy into local memory; counts in `vmcnt`", [InFlight InFlightAtEnd GroupOrder];
    DsRead "ttg.amd.ds_read" Waves [OpKind::Amd(AmdOp::DsRead { .. })]
        "", "region" => "vtok", NONE, "starts reading local memory; counts in `lgkmcnt`", [InFlight GroupOrder];
    DsWrite "ttg.amd.ds_write" Waves [OpKind::Amd(AmdOp::DsWrite { .. })]
        "", "region" => "vtok", NONE, "starts writing local memory; counts in `lgkmcnt`", [InFlight GroupOrder];
    SBarrier "ttg.amd.s_barrier" Waves [OpKind::Amd(AmdOp::Barrier)]
        "", "" => "", NONE, "a barrier of all waves of the program; waits for no counter", [NeverCompletes];
    Mfma "ttg.amd.mfma" Waves [OpKind::Amd(AmdOp::Mfma)]
        "", "a, b, acc: tiles" => "as acc", "the triples of docs/semantics.md", "a · b + acc", [MmaElements ShapeMismatch];
    SetPrio "ttg.amd.s_setprio" Waves [OpKind::Amd(AmdOp::SetPrio { .. })]
        "", "" => "", NONE, "the priority of the wave among those of its unit", [];
}
