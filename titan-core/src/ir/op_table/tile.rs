//! Operations on scalars, tiles and tensors, and control flow.

use super::facts::{PURE, flow, synchronous};
use super::syntax::{Form, Head, HeadError, Int, Written};
use super::*;
use crate::ir::Effect::{Atomic, Print, Read, Trap, Write};
use crate::ir::Proxy::Generic;
use crate::ir::traffic::On::{Local, Tensor};
use crate::ir::traffic::Order::Ends;
use crate::ir::traffic::{NO_TRAFFIC, one, order, reads, two, updates, writes};
use crate::ir::{ArgOp, AtomicOp, BinOp, FetchOp, Flow, Pred, ReduceOp, UnOp, Unit};

const AXIS: &str = "the axis";
const BOX: &str = "rows and columns of a tile";

table! {
    OpKind, facts -> Facts;

    "const" Values [OpKind::Const(value)] : own(value) Plain, PURE,
        "`1`  `0.5`  `true`", "" => "scalar", ANY, "a constant", [LiteralRange];
    "program_id" Values [OpKind::ProgramId(axis)] <axis> AXIS Plain, PURE,
        "`program_id(0)`", "" => "i32", I32, "this program's index along an axis of the grid", [GridAxis];
    "num_programs" Values [OpKind::NumPrograms(axis)] <axis> AXIS Plain, PURE,
        "`num_programs(0)`", "" => "i32", I32, "the extent of the grid along an axis", [GridAxis];
    "iota" Values [OpKind::Iota(n)] <n> "the extent" Plain, PURE,
        "`iota::<N>()`", "" => "tile [N]", I32, "0, 1, …, N − 1", [TileSize];
    "splat" Values [OpKind::Splat(shape)] : tile(shape) Plain, PURE,
        "`Tile::<T, A, B>::full(x)`  `zeros()`  `ones()`", "x: scalar" => "tile of x's element", ANY,
        "x in every element; also what a scalar beside a tile becomes", [TileSize];

    "neg" Arithmetic [OpKind::Unary(UnOp::Neg)] Plain, PURE,
        "`-x`", "x" => "as x", NUMBERS, "negation; integers wrap", [ElementUnsupported];
    "abs" Arithmetic [OpKind::Unary(UnOp::Abs)] Plain, PURE,
        "`x.abs()`", "x" => "as x", NUMBERS, "absolute value; of the least integer it wraps", [ElementUnsupported];
    "add" Arithmetic [OpKind::Binary(BinOp::Add)] Plain, PURE,
        "`a + b`", "a, b" => "as a", NUMBERS, "sum; integers wrap", [ShapeMismatch ElementMismatch ElementUnsupported];
    "sub" Arithmetic [OpKind::Binary(BinOp::Sub)] Plain, PURE,
        "`a - b`", "a, b" => "as a", NUMBERS, "difference; integers wrap",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "mul" Arithmetic [OpKind::Binary(BinOp::Mul)] Plain, PURE,
        "`a * b`", "a, b" => "as a", NUMBERS, "product; integers wrap",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "div" Arithmetic [OpKind::Binary(BinOp::Div)] Plain, PURE,
        "`a / b`", "a, b" => "as a", NUMBERS, "quotient; integers truncate, and x / 0 is 0",
        [ShapeMismatch ElementMismatch ElementUnsupported DivisionByZero];
    "rem" Arithmetic [OpKind::Binary(BinOp::Rem)] Plain, PURE,
        "`a % b`", "a, b" => "as a", NUMBERS, "remainder, exact and with the sign of a; of integers x % 0 is x, of floats NaN",
        [ShapeMismatch ElementMismatch ElementUnsupported DivisionByZero];
    "min" Arithmetic [OpKind::Binary(BinOp::Min)] Plain, PURE,
        "`a.min(b)`", "a, b" => "as a", NUMBERS, "the lesser; NaN loses, −0 < +0",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "max" Arithmetic [OpKind::Binary(BinOp::Max)] Plain, PURE,
        "`a.max(b)`", "a, b" => "as a", NUMBERS, "the greater; NaN loses, −0 < +0",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "mul_hi" Arithmetic [OpKind::Binary(BinOp::MulHi)] Plain, PURE,
        "`a.mul_hi(b)`", "a, b" => "as a", INTEGERS, "the upper half of the product of twice the width",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "mul_add" Arithmetic [OpKind::MulAdd] Plain, PURE,
        "`a.mul_add(b, c)`", "a, b, c" => "as a", FLOATS, "a · b + c, rounded once",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "and" Arithmetic [OpKind::Binary(BinOp::And)] Plain, PURE,
        "`a & b`", "a, b" => "as a", BITS, "bitwise and", [ShapeMismatch ElementMismatch ElementUnsupported];
    "or" Arithmetic [OpKind::Binary(BinOp::Or)] Plain, PURE,
        "`a | b`", "a, b" => "as a", BITS, "bitwise or", [ShapeMismatch ElementMismatch ElementUnsupported];
    "xor" Arithmetic [OpKind::Binary(BinOp::Xor)] Plain, PURE,
        "`a ^ b`", "a, b" => "as a", BITS, "bitwise exclusive or", [ShapeMismatch ElementMismatch ElementUnsupported];
    "not" Arithmetic [OpKind::Unary(UnOp::Not)] Plain, PURE,
        "`!x`", "x" => "as x", BITS, "every bit inverted; of a bool the negation", [ElementUnsupported];
    "count_ones" Arithmetic [OpKind::Unary(UnOp::CountOnes)] Plain, PURE,
        "`x.count_ones()`", "x" => "u32, shaped as x", INTEGERS, "the number of bits that are 1", [ElementUnsupported];
    "leading_zeros" Arithmetic [OpKind::Unary(UnOp::LeadingZeros)] Plain, PURE,
        "`x.leading_zeros()`", "x" => "u32, shaped as x", INTEGERS,
        "the number of zeros before the highest bit that is 1; of 0 the width", [ElementUnsupported];
    "shl" Arithmetic [OpKind::Binary(BinOp::Shl)] Plain, PURE,
        "`a << b`", "a, b" => "as a", INTEGERS, "shift to the left; an amount outside of the width gives 0",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "shr" Arithmetic [OpKind::Binary(BinOp::Shr)] Plain, PURE,
        "`a >> b`", "a, b" => "as a", INTEGERS,
        "shift to the right, of signed types with the sign; an amount outside of the width leaves 0 or the sign",
        [ShapeMismatch ElementMismatch ElementUnsupported];

    "exp" Functions [OpKind::Unary(UnOp::Exp)] Plain, PURE,
        "`x.exp()`", "x" => "as x", FLOATS, "eˣ", [ElementUnsupported];
    "exp2" Functions [OpKind::Unary(UnOp::Exp2)] Plain, PURE,
        "`x.exp2()`", "x" => "as x", FLOATS, "2ˣ", [ElementUnsupported];
    "ln" Functions [OpKind::Unary(UnOp::Ln)] Plain, PURE,
        "`x.ln()`", "x" => "as x", FLOATS, "natural logarithm", [ElementUnsupported];
    "log2" Functions [OpKind::Unary(UnOp::Log2)] Plain, PURE,
        "`x.log2()`", "x" => "as x", FLOATS, "logarithm to base 2", [ElementUnsupported];
    "powf" Functions [OpKind::Binary(BinOp::Powf)] Plain, PURE,
        "`a.powf(b)`", "a, b" => "as a", FLOATS, "a to the power of b",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "sqrt" Functions [OpKind::Unary(UnOp::Sqrt)] Plain, PURE,
        "`x.sqrt()`", "x" => "as x", FLOATS, "square root, correctly rounded", [ElementUnsupported];
    "rsqrt" Functions [OpKind::Unary(UnOp::Rsqrt)] Plain, PURE,
        "`x.rsqrt()`", "x" => "as x", FLOATS, "1 / √x", [ElementUnsupported];
    "recip" Functions [OpKind::Unary(UnOp::Recip)] Plain, PURE,
        "`x.recip()`", "x" => "as x", FLOATS, "1 / x, correctly rounded", [ElementUnsupported];
    "sin" Functions [OpKind::Unary(UnOp::Sin)] Plain, PURE,
        "`x.sin()`", "x" => "as x", FLOATS, "sine of radians", [ElementUnsupported];
    "cos" Functions [OpKind::Unary(UnOp::Cos)] Plain, PURE,
        "`x.cos()`", "x" => "as x", FLOATS, "cosine of radians", [ElementUnsupported];
    "tanh" Functions [OpKind::Unary(UnOp::Tanh)] Plain, PURE,
        "`x.tanh()`", "x" => "as x", FLOATS, "hyperbolic tangent", [ElementUnsupported];
    "sigmoid" Functions [OpKind::Unary(UnOp::Sigmoid)] Plain, PURE,
        "`x.sigmoid()`", "x" => "as x", FLOATS, "1 / (1 + e⁻ˣ)", [ElementUnsupported];
    "erf" Functions [OpKind::Unary(UnOp::Erf)] Plain, PURE,
        "`x.erf()`", "x" => "as x", FLOATS, "error function", [ElementUnsupported];
    "floor" Functions [OpKind::Unary(UnOp::Floor)] Plain, PURE,
        "`x.floor()`", "x" => "as x", FLOATS, "rounds toward −∞", [ElementUnsupported];
    "ceil" Functions [OpKind::Unary(UnOp::Ceil)] Plain, PURE,
        "`x.ceil()`", "x" => "as x", FLOATS, "rounds toward +∞", [ElementUnsupported];
    "trunc" Functions [OpKind::Unary(UnOp::Trunc)] Plain, PURE,
        "`x.trunc()`", "x" => "as x", FLOATS, "rounds toward zero", [ElementUnsupported];
    "round" Functions [OpKind::Unary(UnOp::Round)] Plain, PURE,
        "`x.round()`", "x" => "as x", FLOATS, "rounds to nearest, ties away from zero", [ElementUnsupported];
    "round_ties_even" Functions [OpKind::Unary(UnOp::RoundTiesEven)] Plain, PURE,
        "`x.round_ties_even()`", "x" => "as x", FLOATS, "rounds to nearest, ties to even", [ElementUnsupported];

    "eq" Choice [OpKind::Cmp(Pred::Eq)] Plain, PURE,
        "`a == b`", "a, b" => "bool, shaped as a", COMPARED, "equality; NaN equals nothing",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "ne" Choice [OpKind::Cmp(Pred::Ne)] Plain, PURE,
        "`a != b`", "a, b" => "bool, shaped as a", COMPARED, "inequality; NaN differs from everything",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "lt" Choice [OpKind::Cmp(Pred::Lt)] Plain, PURE,
        "`a < b`", "a, b" => "bool, shaped as a", COMPARED, "less; false with NaN",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "le" Choice [OpKind::Cmp(Pred::Le)] Plain, PURE,
        "`a <= b`", "a, b" => "bool, shaped as a", COMPARED, "less or equal; false with NaN",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "gt" Choice [OpKind::Cmp(Pred::Gt)] Plain, PURE,
        "`a > b`", "a, b" => "bool, shaped as a", COMPARED, "greater; false with NaN",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "ge" Choice [OpKind::Cmp(Pred::Ge)] Plain, PURE,
        "`a >= b`", "a, b" => "bool, shaped as a", COMPARED, "greater or equal; false with NaN",
        [ShapeMismatch ElementMismatch ElementUnsupported];
    "is_nan" Choice [OpKind::Unary(UnOp::IsNan)] Plain, PURE,
        "`x.is_nan()`", "x" => "bool, shaped as x", FLOATS, "whether an element is NaN", [ElementUnsupported];
    "select" Choice [OpKind::Select] Plain, PURE,
        "`select(m, a, b)`", "m: bool, a, b" => "as a", ANY,
        "a where m holds, b elsewhere; m is a tile shaped as a, or one bool", [ShapeMismatch ElementMismatch];

    "cast" Conversions [OpKind::Cast(elem)] : elem(elem) Plain, PURE,
        "`x.cast::<U>()`", "x" => "U, shaped as x", ANY, "the value converted: nearest even, saturating to integers and FP8",
        [];
    "bitcast" Conversions [OpKind::Bitcast(elem)] : elem(elem) Plain, PURE,
        "`x.bitcast::<U>()`", "x" => "U, shaped as x", "types of one width, not bool", "the same bits", [BitcastWidth];

    "reshape" Shapes [OpKind::Reshape(shape)] : tile(shape) Plain, PURE,
        "`x.reshape::<A, B>()`", "x: tile" => "tile [A, B]", ANY, "the same elements, row-major, under other extents",
        [ElementCount TileSize];
    "broadcast" Shapes [OpKind::Broadcast { axis, n }] <axis, n> "the new axis and its extent" Plain, PURE,
        "`x.broadcast::<AX, N>()`  `x.row()`  `x.col()`", "x: tile" => "tile with axis AX of extent N", ANY,
        "a new axis along which the elements repeat", [BadAxis TileSize];
    "permute" Shapes [OpKind::Permute(perm)] @permutation(perm) Plain, PURE,
        "`x.permute::<1, 0>()`  `x.t()`", "x: tile" => "tile with axes reordered", ANY,
        "axis i of the result is axis `perm[i]` of x", [BadAxis];
    "interleave" Shapes [OpKind::Interleave] Plain, PURE,
        "`a.interleave::<..>(b)`", "a, b: tiles" => "tile with the last extent doubled", ANY,
        "elements of a and b alternate along the last axis", [ShapeMismatch ElementMismatch TileSize];
    "split" Shapes [OpKind::Split] Plain, PURE,
        "`x.split::<..>()`", "x: tile" => "two tiles with the last extent halved", ANY,
        "the even and the odd elements along the last axis", [ElementCount];
    "cut" Shapes [OpKind::Cut { axis, from, n }] <axis, from, n> "the axis, its first element and the number of elements" Plain, PURE,
        "`x.slice::<A, B>([i, j])`", "x: tile, constants i, j" => "tile [A, B]", ANY,
        "the part of x whose first element is at these coordinates", [TilePart];
    "concat" Shapes [OpKind::Concat(axis)] <axis> AXIS Plain, PURE,
        "`a.concat::<A, B>(b)`", "a, b: tiles" => "tile [A, B]", ANY,
        "the elements of a and then those of b, along the axis in which the tiles differ from the result",
        [ElementMismatch TileJoin TileSize];

    "reduce_sum" Reductions [OpKind::Reduce(ReduceOp::Sum, axis)] <axis> AXIS Plain, PURE,
        "`x.reduce_sum::<AX>()`", "x: tile" => "x without axis AX", NUMBERS,
        "sum; `f16` and `bf16` accumulate in `f32`", [BadAxis ElementUnsupported];
    "reduce_prod" Reductions [OpKind::Reduce(ReduceOp::Prod, axis)] <axis> AXIS Plain, PURE,
        "`x.reduce_prod::<AX>()`", "x: tile" => "x without axis AX", NUMBERS,
        "product; `f16` and `bf16` accumulate in `f32`", [BadAxis ElementUnsupported];
    "reduce_max" Reductions [OpKind::Reduce(ReduceOp::Max, axis)] <axis> AXIS Plain, PURE,
        "`x.reduce_max::<AX>()`", "x: tile" => "x without axis AX", NUMBERS, "the greatest; NaN only if all are",
        [BadAxis ElementUnsupported];
    "reduce_min" Reductions [OpKind::Reduce(ReduceOp::Min, axis)] <axis> AXIS Plain, PURE,
        "`x.reduce_min::<AX>()`", "x: tile" => "x without axis AX", NUMBERS, "the least; NaN only if all are",
        [BadAxis ElementUnsupported];
    "argmax" Reductions [OpKind::ArgReduce(ArgOp::Max, axis)] <axis> AXIS Plain, PURE,
        "`x.argmax::<AX>()`", "x: tile" => "values and i32 indices, both without axis AX", NUMBERS,
        "the greatest and where it is; the lowest index among equals", [BadAxis ElementUnsupported];
    "argmin" Reductions [OpKind::ArgReduce(ArgOp::Min, axis)] <axis> AXIS Plain, PURE,
        "`x.argmin::<AX>()`", "x: tile" => "values and i32 indices, both without axis AX", NUMBERS,
        "the least and where it is; the lowest index among equals", [BadAxis ElementUnsupported];
    "reduce_with" Reductions [OpKind::ReduceWith(axis)] <axis> AXIS Plain, PURE,
        "`x.reduce::<AX>(init, |a, b| ..)`", "x: tile, init: scalar" => "x without axis AX", COMPARED,
        "reduction by an associative, commutative function with neutral element init", [BadAxis ElementUnsupported];
    "scan_sum" Reductions [OpKind::Scan(ReduceOp::Sum, axis)] <axis> AXIS Plain, PURE,
        "`x.scan_sum::<AX>()`", "x: tile" => "as x", NUMBERS, "element i is the sum of elements 0 ..= i",
        [BadAxis ElementUnsupported];
    "scan_prod" Reductions [OpKind::Scan(ReduceOp::Prod, axis)] <axis> AXIS Plain, PURE,
        "`x.scan_prod::<AX>()`", "x: tile" => "as x", NUMBERS, "element i is the product of elements 0 ..= i",
        [BadAxis ElementUnsupported];
    "scan_max" Reductions [OpKind::Scan(ReduceOp::Max, axis)] <axis> AXIS Plain, PURE,
        "`x.scan_max::<AX>()`", "x: tile" => "as x", NUMBERS, "element i is the greatest of elements 0 ..= i",
        [BadAxis ElementUnsupported];
    "scan_min" Reductions [OpKind::Scan(ReduceOp::Min, axis)] <axis> AXIS Plain, PURE,
        "`x.scan_min::<AX>()`", "x: tile" => "as x", NUMBERS, "element i is the least of elements 0 ..= i",
        [BadAxis ElementUnsupported];
    "scan_with" Reductions [OpKind::ScanWith(axis)] <axis> AXIS Plain, PURE,
        "`x.scan::<AX>(init, |a, b| ..)`", "x: tile, init: scalar" => "as x", COMPARED,
        "inclusive scan by an associative function with neutral element init", [BadAxis ElementUnsupported];

    "mma" Matrix [OpKind::Mma] Plain, PURE,
        "`mma(a, b, acc)`", "a [M, K], b [K, N], acc [M, N]; or each with a leading batch axis" => "as acc",
        TRIPLES, "a · b + acc, summed in acc's type in any order", [ShapeMismatch MmaElements];

    "dim" Views [OpKind::Dim(axis)] <axis> AXIS Plain, PURE,
        "`t.dim(1)`", "t: tensor" => "i32", ANY, "the extent of an axis", [BadAxis];
    "present" Views [OpKind::Present] Plain, PURE,
        "`if let Some(b) = bias`", "t: tensor" => "bool", ANY, "whether an optional tensor was given", [];
    "index" Views [OpKind::Index(axis)] <axis> AXIS Plain, PURE,
        "`t.index::<AX>(i)`", "t: tensor, i: i32" => "tensor without axis AX", ANY, "a view with one axis fixed",
        [BadAxis IndexType RankMismatch];
    "slice" Views [OpKind::Slice(axis)] <axis> AXIS Plain, PURE,
        "`t.slice::<AX>(lo..hi)`", "t: tensor, lo, hi: i32" => "as t", ANY,
        "a view of a range of an axis, clipped to the tensor", [BadAxis IndexType];
    // The offsets are read from a tensor that no bulk copy of a region writes.
    "segment" Views [OpKind::Segment] Plain, synchronous(Trap, NO_TRAFFIC),
        "`t.segment(off, e)`", "t: tensor, off: Tensor<i32, 1>, e: i32" => "as t", ANY,
        "a view of rows `off[e] .. off[e + 1]`; traps unless 0 ≤ off[e] ≤ off[e + 1] ≤ extent", [];
    "shared" Views [OpKind::Shared] Plain, PURE,
        "`unsafe { t.shared() }`", "t: tensor" => "as t", ANY, "the same tensor, exempt from the output rule", [];

    "load_tile" Memory [OpKind::Load(Unit::Tile, shape)] : tile(shape)
        AtOr, synchronous(Read, one(reads(Tensor, Generic))),
        "`t.load_tile::<A, B>([i, j])`  `t.load_tile_or::<A, B>([i, j], pad)`",
        "t: tensor, an i32 per axis, pad: scalar" => "tile [A, B]", ANY,
        "the tile at tile coordinates; outside of the tensor the padding, zero unless said",
        [RankMismatch IndexType TileSize ElementMismatch];
    "load_at" Memory [OpKind::Load(Unit::Elem, shape)] : tile(shape)
        AtOr, synchronous(Read, one(reads(Tensor, Generic))),
        "`t.load_at::<A, B>([r, c])`  `t.load_at_or::<A, B>([r, c], pad)`",
        "t: tensor, an i32 per axis, pad: scalar" => "tile [A, B]", ANY,
        "the tile whose first element is at these coordinates, which may be negative",
        [RankMismatch IndexType TileSize ElementMismatch];
    // The tile may be in shared memory.
    "store_tile" Memory [OpKind::Store(Unit::Tile)]
        AtValue, synchronous(Write, two(writes(Tensor, Generic), reads(Local, Generic))),
        "`t.store_tile([i, j], v)`", "t: tensor, an i32 per axis, v: tile" => "", ANY,
        "stores a tile at tile coordinates; what lies outside is dropped",
        [RankMismatch IndexType ElementMismatch StoreToInput];
    // The tile may be in shared memory.
    "store_at" Memory [OpKind::Store(Unit::Elem)]
        AtValue, synchronous(Write, two(writes(Tensor, Generic), reads(Local, Generic))),
        "`t.store_at([r, c], v)`", "t: tensor, an i32 per axis, v: tile" => "", ANY,
        "stores a tile at element coordinates; what lies outside is dropped",
        [RankMismatch IndexType ElementMismatch StoreToInput];
    "get" Memory [OpKind::Get] At, synchronous(Trap, one(reads(Tensor, Generic))),
        "`t.get([i, j])`", "t: tensor, an i32 per axis" => "scalar", ANY, "one element; traps outside of the tensor",
        [IndexType];
    "set" Memory [OpKind::Set] AtValue, synchronous(Write, one(writes(Tensor, Generic))),
        "`t.set([i, j], x)`", "t: tensor, an i32 per axis, x: scalar" => "", ANY,
        "stores one element; traps outside of the tensor", [IndexType StoreToInput];

    "gather_rows" Indexed [OpKind::GatherRows { rows, width }] : rows_of_tile(rows, width)
        AtOr, synchronous(Read, one(reads(Tensor, Generic))),
        "`t.gather_rows::<N, W>((i, ..), col)`  `t.gather_rows_or::<N, W>((i, ..), col, pad)`",
        "t: tensor, an i32 or Tile<i32, N> per leading axis, col: i32, pad: scalar" => "tile [N, W]", ANY,
        "N rows of W elements of the last axis; a row with an index out of range is the padding",
        [IndexType TileSize ElementMismatch];
    "scatter_rows" Indexed [OpKind::ScatterRows] AtValue, synchronous(Write, one(writes(Tensor, Generic))),
        "`t.scatter_rows((i, ..), col, v)`",
        "t: tensor, an i32 or Tile<i32, N> per leading axis, col: i32, v: tile [N, W]" => "", ANY,
        "stores N rows of W elements; rows out of range are dropped, of several writers one value stays",
        [IndexType StoreToInput];
    "gather" Indexed [OpKind::Gather] AtOr, synchronous(Read, one(reads(Tensor, Generic))),
        "`t.gather([i, ..])`  `t.gather_or([i, ..], pad)`", "t: tensor, an i32 tile per axis, pad: scalar"
        => "tile shaped as the indices", ANY, "one element per lane; out of range is the padding", [ElementMismatch];
    "scatter" Indexed [OpKind::Scatter] AtValue, synchronous(Write, one(writes(Tensor, Generic))),
        "`t.scatter([i, ..], v)`", "t: tensor, an i32 tile per axis, v: tile shaped as they" => "", WHOLE,
        "stores one element per lane; out of range is dropped, of several writers one value stays",
        [ElementUnsupported StoreToInput];
    "atomic_add" Indexed [OpKind::Atomic(AtomicOp::Add)] AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`t.atomic_add([i, ..], v)`", "t: tensor, an i32 tile per axis, v: tile shaped as they" => "", ATOMIC,
        "adds to one element per lane; every contribution counts", [ElementUnsupported StoreToInput];
    "atomic_max" Indexed [OpKind::Atomic(AtomicOp::Max)] AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`t.atomic_max([i, ..], v)`", "t: tensor, an i32 tile per axis, v: tile shaped as they" => "", ATOMIC,
        "raises one element per lane to the greater", [ElementUnsupported StoreToInput];
    "atomic_min" Indexed [OpKind::Atomic(AtomicOp::Min)] AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`t.atomic_min([i, ..], v)`", "t: tensor, an i32 tile per axis, v: tile shaped as they" => "", ATOMIC,
        "lowers one element per lane to the lesser", [ElementUnsupported StoreToInput];
    "atomic_add_tile" Indexed [OpKind::AtomicTile(AtomicOp::Add)]
        AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`t.atomic_add_tile([m, n], v)`", "t: tensor, an i32 per axis, v: tile" => "", ATOMIC,
        "adds a tile at tile coordinates; what lies outside is dropped",
        [RankMismatch IndexType ElementMismatch ElementUnsupported StoreToInput];
    "atomic_max_tile" Indexed [OpKind::AtomicTile(AtomicOp::Max)]
        AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`t.atomic_max_tile([m, n], v)`", "t: tensor, an i32 per axis, v: tile" => "", ATOMIC,
        "raises a tile at tile coordinates to the greater",
        [RankMismatch IndexType ElementMismatch ElementUnsupported StoreToInput];
    "atomic_min_tile" Indexed [OpKind::AtomicTile(AtomicOp::Min)]
        AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`t.atomic_min_tile([m, n], v)`", "t: tensor, an i32 per axis, v: tile" => "", ATOMIC,
        "lowers a tile at tile coordinates to the lesser",
        [RankMismatch IndexType ElementMismatch ElementUnsupported StoreToInput];
    "fetch_add" Indexed [OpKind::Fetch(FetchOp::Add)] AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`let old = t.fetch_add([i, ..], v)`", "t: tensor, an i32 or i32 tile per axis, v: scalar or tile shaped as they"
        => "as v", ATOMIC, "adds to one element per lane, and returns what was there before; 0 out of range",
        [ElementUnsupported StoreToInput];
    "fetch_max" Indexed [OpKind::Fetch(FetchOp::Max)] AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`let old = t.fetch_max([i, ..], v)`", "t: tensor, an i32 or i32 tile per axis, v: scalar or tile shaped as they"
        => "as v", ATOMIC, "raises one element per lane to the greater, and returns what was there before; 0 out of range",
        [ElementUnsupported StoreToInput];
    "fetch_min" Indexed [OpKind::Fetch(FetchOp::Min)] AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`let old = t.fetch_min([i, ..], v)`", "t: tensor, an i32 or i32 tile per axis, v: scalar or tile shaped as they"
        => "as v", ATOMIC, "lowers one element per lane to the lesser, and returns what was there before; 0 out of range",
        [ElementUnsupported StoreToInput];
    "fetch_and" Indexed [OpKind::Fetch(FetchOp::And)] AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`let old = t.fetch_and([i, ..], v)`", "t: tensor, an i32 or i32 tile per axis, v: scalar or tile shaped as they"
        => "as v", WIDE, "bitwise and of one element per lane, and returns what was there before; 0 out of range",
        [ElementUnsupported StoreToInput];
    "fetch_or" Indexed [OpKind::Fetch(FetchOp::Or)] AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`let old = t.fetch_or([i, ..], v)`", "t: tensor, an i32 or i32 tile per axis, v: scalar or tile shaped as they"
        => "as v", WIDE, "bitwise or of one element per lane, and returns what was there before; 0 out of range",
        [ElementUnsupported StoreToInput];
    "fetch_xor" Indexed [OpKind::Fetch(FetchOp::Xor)] AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`let old = t.fetch_xor([i, ..], v)`", "t: tensor, an i32 or i32 tile per axis, v: scalar or tile shaped as they"
        => "as v", WIDE, "bitwise exclusive or of one element per lane, and returns what was there before; 0 out of range",
        [ElementUnsupported StoreToInput];
    "atomic_swap" Indexed [OpKind::Fetch(FetchOp::Swap)] AtValue, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`let old = t.atomic_swap([i, ..], v)`", "t: tensor, an i32 or i32 tile per axis, v: scalar or tile shaped as they"
        => "as v", ATOMIC, "stores one element per lane, and returns what was there before; 0 out of range",
        [ElementUnsupported StoreToInput];
    "compare_exchange" Indexed [OpKind::CompareExchange] AtMany, synchronous(Atomic, one(updates(Tensor, Generic))),
        "`let (old, done) = t.compare_exchange([i, ..], current, new)`",
        "t: tensor, an i32 or i32 tile per axis, current, new: scalars or tiles shaped as they"
        => "as new, and bool shaped as it", ATOMIC,
        "stores new where the element has the bits of current; returns what was there before and where it stored; 0 and false out of range",
        [ElementUnsupported StoreToInput];

    "unflatten" Distribution [OpKind::Unflatten] Plain, PURE,
        "`unflatten(i, [a, b])`", "i: i32, an i32 extent per axis, one to four" => "an i32 per axis", I32,
        "the coordinates of a linear index in a box, row-major", [IndexType];
    "unflatten_grouped" Distribution [OpKind::UnflattenGrouped(rows)] <rows> "the rows of a group" Plain, PURE,
        "`unflatten_grouped::<G>(i, [a, b])`", "i: i32, an i32 extent per axis, two to four" => "an i32 per axis", I32,
        "the coordinates of a linear index in a box, G rows of the last two axes at a time, column by column",
        [TileSize IndexType];
    "ragged_count" Distribution [OpKind::RaggedCount { rows, cols }] <rows, cols> BOX
        Plain, synchronous(Trap, NO_TRAFFIC),
        "`y.ragged::<A, B>(off)`", "y: tensor of rank 2, off: Tensor<i32, 1>" => "i32", ANY,
        "how many A×B tiles the segments of y have", [TileSize];
    "ragged_tile" Distribution [OpKind::RaggedTile { rows, cols }] <rows, cols> BOX
        Plain, synchronous(Trap, NO_TRAFFIC),
        "`y.ragged::<A, B>(off)`", "y: tensor of rank 2, off: Tensor<i32, 1>, j: i32" => "segment, row tile, column tile",
        ANY, "which A×B tile of the segments has number j", [TileSize];

    // The tiles may be in shared memory.
    "print" Debugging [OpKind::Print(format)] @text(format) TextFirst, synchronous(Print, one(reads(Local, Generic))),
        "`tprint!(\"x = {}\", x)`", "scalars and tiles" => "", ANY, "prints the values in place of each `{}`", [];
    "assert" Debugging [OpKind::Assert(message)] @text(message) TextLast, synchronous(Trap, NO_TRAFFIC),
        "`tassert!(c, \"message\")`", "c: bool, scalar or tile" => "", BOOL,
        "traps with the message and the kernel's line unless all of c holds", [];

    "for" Control [OpKind::For(kind)] : own(kind) Plain, flow(Flow::For(*kind), NO_TRAFFIC),
        "`for i in a..b { }`  `for i in pipelined(a..b) { }`  `for out in c.tiles::<A, B>() { }`",
        "lo, hi, step: i32, initial values" => "the carried values", ANY,
        "a counted loop; `pipelined` lets loads run ahead, `distributed` deals the iterations to the programs",
        [EarlyExit NestedPipeline];
    "loop" Control [OpKind::Loop] Plain, flow(Flow::Loop, NO_TRAFFIC),
        "`loop { }`  `while c { }`", "initial values" => "the operands of `break`", ANY, "a loop until `break`", [Unreachable];
    "if" Control [OpKind::If] Plain, flow(Flow::If, NO_TRAFFIC),
        "`if c { } else { }`  `if let Some(t) = t { }`", "c: bool" => "what its arms yield", ANY,
        "a branch, uniform over the program", [Condition];
    "yield" Control [OpKind::Yield] Plain, flow(Flow::Yield, NO_TRAFFIC),
        "the value of a block", "values" => "", NONE, "ends an arm of an `if` or the function of a reduction", [];
    "break" Control [OpKind::Break(level)] @level(level) Plain, flow(Flow::Break(*level), NO_TRAFFIC),
        "`break`", "results of the loop" => "", NONE, "leaves a loop; `<n>` counts loops outward", [EarlyExit];
    "continue" Control [OpKind::Continue(level)] @level(level) Plain, flow(Flow::Continue(*level), NO_TRAFFIC),
        "`continue`  the end of a loop's body", "next carried values" => "", NONE,
        "ends an iteration; `<n>` counts loops outward", [EarlyExit];
    "return" Control [OpKind::Return] Plain, flow(Flow::Return, order(Ends)),
        "`return`  the end of the kernel", "" => "", NONE, "ends the program", [EarlyExit];

    dialects {
        OpKind::Ttg, op => ttg as Family::Ttg(op);
        OpKind::Local, op => local as Family::Local(op);
        OpKind::Region, op => region as Family::Region(op);
        OpKind::Nv, op => nv as Family::Nv(*op);
        OpKind::Amd, op => amd as Family::Amd(*op);
    }
}
