//! tidy: table
//! Examples of calls of the language's operations, and the operations that correspond to names of other languages and of Rust's
//! library: the help lines of messages about calls.

/// An example of a call of the function or method.
pub(crate) fn example(name: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(n, _)| *n == name).map(|(_, example)| *example)
}

/// The names of all methods except the elementwise ones.
pub(crate) fn method_names() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|(n, _)| *n).chain(OTHERS.iter().copied())
}

/// Methods whose calls need no example.
const OTHERS: &[&str] = &[
    "log",
    "is_finite",
    "is_infinite",
    "signum",
    "trailing_zeros",
    "reduce_sum",
    "reduce_prod",
    "reduce_max",
    "reduce_min",
    "scan_sum",
    "scan_prod",
    "scan_max",
    "scan_min",
    "argmax",
    "argmin",
    "shared",
    "is_some",
    "is_none",
    "group",
    "load",
    "skip",
    "acquire",
    "ready",
    "zero",
    "poison",
    "commit",
    "wait",
    "wait_filled",
    "release",
    "a",
    "b",
    "c",
    "d",
    "finish",
    "mma_reg",
    "indices",
];

const EXAMPLES: &[(&str, &str)] = &[
    ("program_id", "program_id(0)"),
    ("num_programs", "num_programs(0)"),
    ("cdiv", "cdiv(n, 64)"),
    ("unflatten", "unflatten(program_id(0), [B, H])"),
    ("unflatten_grouped", "unflatten_grouped::<8>(program_id(0), [rows, columns])"),
    ("pipelined", "pipelined(0..n)"),
    ("mma", "mma(a, b, acc)` with an accumulator, at first `Tile::<f32, M, N>::zeros()"),
    ("mma_async", "mma_async(stage.a(), stage.b(), acc)"),
    ("mma_async_reg", "mma_async_reg(tile, stage.get(), acc)"),
    ("role", "match role() { .. }"),
    ("iota", "iota::<64>()"),
    ("select", "select(mask, a, b)"),
    ("zeros", "Tile::<f32, 64>::zeros()"),
    ("ones", "Tile::<f32, 64>::ones()"),
    ("full", "Tile::<f32, 64>::full(0.5)"),
    ("from_tile", "Acc::<f32, D2<M, N>, 1>::from_tile(tile)"),
    ("join", "Stage::join([p, q])"),
    ("new", "Ring::<Smem<f16, 128, 64>, 4>::new()"),
    ("min", "x.min(y)"),
    ("max", "x.max(y)"),
    ("clamp", "x.clamp(lo, hi)"),
    ("mul_add", "x.mul_add(b, c)"),
    ("mul_hi", "a.mul_hi(b)"),
    ("powf", "x.powf(y)"),
    ("cast", "x.cast::<f32>()"),
    ("bitcast", "x.bitcast::<u32>()"),
    ("map", "x.map(|v| v * 2.0)"),
    ("reshape", "x.reshape::<A, B>()"),
    ("broadcast", "x.broadcast::<0, N>()"),
    ("t", "x.t()"),
    ("permute", "x.permute::<1, 0>()"),
    ("interleave", "a.interleave::<A, B>(b)"),
    ("split", "x.split::<A, B>()"),
    ("concat", "a.concat::<A, B>(b)"),
    ("at", "x.at([i, j])"),
    ("row", "x.row()"),
    ("col", "x.col()"),
    ("reduce", "x.reduce::<0>(0.0, |a, b| a + b)"),
    ("scan", "x.scan::<0>(0.0, |a, b| a + b)"),
    ("any", "mask.any::<0>()"),
    ("all", "mask.all::<0>()"),
    ("dim", "x.dim(0)"),
    ("load_tile", "x.load_tile::<16, 64>([i, j])"),
    ("load_tile_or", "x.load_tile_or::<16, 64>([i, j], -1.0)"),
    ("load_at", "x.load_at::<16, 64>([row, column])"),
    ("load_at_or", "x.load_at_or::<16, 64>([row, column], -1.0)"),
    ("store_tile", "y.store_tile([i, j], v)"),
    ("store_at", "y.store_at([row, column], v)"),
    ("get", "x.get([i, j])"),
    ("set", "y.set([i, j], v)"),
    ("index", "x.index::<0>(i)"),
    ("index_mut", "y.index_mut::<0>(i)"),
    ("slice", "x.slice::<0>(lo..hi)"),
    ("slice_mut", "y.slice_mut::<0>(lo..hi)"),
    ("segment", "x.segment(off, e)"),
    ("segment_mut", "y.segment_mut(off, e)"),
    ("gather_rows", "x.gather_rows::<N, W>(rows, 0)"),
    ("gather_rows_or", "x.gather_rows_or::<N, W>(rows, 0, -1.0)"),
    ("gather", "x.gather([i, j])"),
    ("gather_or", "x.gather_or([i, j], -1.0)"),
    ("scatter_rows", "y.scatter_rows(rows, 0, v)"),
    ("scatter", "y.scatter([i, j], v)"),
    ("atomic_add", "y.atomic_add([i], v)"),
    ("atomic_max", "y.atomic_max([i], v)"),
    ("atomic_min", "y.atomic_min([i], v)"),
    ("atomic_add_tile", "y.atomic_add_tile([i, j], v)"),
    ("atomic_max_tile", "y.atomic_max_tile([i, j], v)"),
    ("atomic_min_tile", "y.atomic_min_tile([i, j], v)"),
    ("fetch_add", "y.fetch_add([i], v)"),
    ("fetch_max", "y.fetch_max([i], v)"),
    ("fetch_min", "y.fetch_min([i], v)"),
    ("fetch_and", "y.fetch_and([i], bits)"),
    ("fetch_or", "y.fetch_or([i], bits)"),
    ("fetch_xor", "y.fetch_xor([i], bits)"),
    ("atomic_swap", "y.atomic_swap([i], v)"),
    ("compare_exchange", "y.compare_exchange([i], current, new)"),
    ("tiles", "y.tiles::<64, 64>()"),
    ("tiles_grouped", "y.tiles_grouped::<64, 64, 8>()"),
    ("ragged", "y.ragged::<64, 64>(off)"),
    ("work", "y.work::<64, 64>()"),
    ("work_grouped", "y.work_grouped::<64, 64, 8>()"),
    ("tile", "x.tile([i, j])"),
    ("tile_at", "x.tile_at([row, column])"),
    ("rows", "x.rows(rows, 0)"),
    ("store", "out.store(v)"),
    ("store_from", "out.store_from(written)"),
    ("produce", "ring.produce(0..n)"),
    ("consume", "ring.consume(0..n)"),
    ("copy", "slot.copy(source)"),
    ("copy_if", "slot.copy_if(condition, source)"),
    ("copy_or_poison", "slot.copy_or_poison(condition, source)"),
    ("write", "slot.write(tile)"),
];

/// Help for a function that the language does not have.
pub(crate) fn foreign_function(name: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|(names, _)| names.contains(&name)).map(|(_, help)| *help)
}

const FUNCTIONS: &[(&[&str], &str)] = &[
    (
        &["dot", "matmul", "mm", "gemm", "bmm"],
        "matrix products are `mma(a, b, acc)`, with `Tile::<f32, M, N>::zeros()` for `acc`",
    ),
    (&["arange", "range", "linspace"], "`iota::<64>()` counts from 0 to 63"),
    (&["where_", "if_else", "blend"], "`select(mask, a, b)` chooses element by element"),
    (&["zeros", "zeros_like"], "`Tile::<f32, 64>::zeros()`"),
    (&["ones", "ones_like"], "`Tile::<f32, 64>::ones()`"),
    (&["full", "full_like", "splat"], "`Tile::<f32, 64>::full(value)`"),
    (&["load", "ld"], "tensors are loaded by `x.load_tile::<64>([i])`"),
    (&["store", "st"], "tensors are stored to by `y.store_tile([i], v)`"),
    (
        &["pow", "powi"],
        "`x.powf(y)` is x to the power of y; a product such as `x * x` takes one instruction for each factor",
    ),
    (&["maximum"], "the greater of two values is `x.max(y)`, the maximum of a tile along axis 0 `x.reduce_max::<0>()`"),
    (&["minimum"], "the less of two values is `x.min(y)`, the minimum of a tile along axis 0 `x.reduce_min::<0>()`"),
    (&["relu"], "`x.max(0.0)`"),
    (&["fmod"], "`x % y` is exact, with the sign of `x`"),
    (&["umulhi", "mulhi", "__umulhi", "__mulhi"], "the upper half of a product is `a.mul_hi(b)`"),
    (&["popc", "__popc", "__popcll"], "the number of bits that are 1 is `x.count_ones()`"),
    (&["clz", "__clz", "__clzll"], "`x.leading_zeros()`"),
    (&["sum", "prod", "mean"], "a reduction is a method: `x.reduce_sum::<0>()`"),
    (
        &["sync_threads", "syncthreads", "barrier", "__syncthreads"],
        "no barrier is needed: a program has one thread of control, and operations act on whole tiles",
    ),
    (
        &["thread_idx", "block_idx", "thread_id", "block_id"],
        "`program_id(0)` is the index of the program (thread block); operations act on whole tiles",
    ),
    (
        &["size_of", "swap", "replace", "take", "drop"],
        "kernels have only values, which are not moved, borrowed or dropped",
    ),
];

/// Help for a method that tiles and scalars do not have.
pub(crate) fn foreign_method(name: &str) -> Option<&'static str> {
    METHODS.iter().find(|(names, _)| names.contains(&name)).map(|(_, help)| *help)
}

const METHODS: &[(&[&str], &str)] = &[
    (&["sum"], "the sum along axis 0 is `.reduce_sum::<0>()`"),
    (&["prod", "product"], "the product along axis 0 is `.reduce_prod::<0>()`"),
    (&["mean", "avg", "average"], "divide `.reduce_sum::<0>()` by the extent"),
    (&["maximum", "amax"], "the maximum along axis 0 is `.reduce_max::<0>()`, that of two tiles `.max(other)`"),
    (&["minimum", "amin"], "the minimum along axis 0 is `.reduce_min::<0>()`, that of two tiles `.min(other)`"),
    (&["cumsum", "cumulative_sum"], "running sums along axis 0 are `.scan_sum::<0>()`"),
    (&["transpose", "T", "trans"], "`.t()` exchanges the last two axes, `.permute::<..>()` all"),
    (&["view", "flatten", "ravel"], "`.reshape::<A, B>()` changes the shape of the same elements"),
    (
        &["expand_dims", "unsqueeze", "broadcast_to", "expand", "repeat"],
        "a vector becomes a row or column of a tile by `.row()` or `.col()`; `.broadcast::<AXIS, N>()` adds any axis",
    ),
    (&["squeeze"], "`.reshape::<..>()` removes extents of 1"),
    (
        &["powi", "pow"],
        "`.powf(y)` takes a float; a product such as `x * x` takes one instruction for each factor, a square root is `.sqrt()`",
    ),
    (&["relu"], "`.max(0.0)`"),
    (&["gelu", "silu", "swish", "softplus", "softmax"], "write it as a device function: `#[titan::device] fn`"),
    (
        &[
            "to", "to_dtype", "astype", "as_type", "convert", "to_f32", "to_f64", "from_f32", "to_i32", "into",
            "try_into", "to_owned",
        ],
        "convert values by `.cast::<f32>()`",
    ),
    (&["clone", "copied", "cloned", "contiguous"], "scalars and tiles are `Copy`: use them directly"),
    (&["dot", "matmul", "mm"], "matrix products are `mma(a, b, acc)`"),
    (&["get", "item", "first", "last", "extract"], "`x.at([i])` is one element of a tile"),
    (&["set", "insert"], "tiles are immutable: `select(iota::<64>() == i, v, x)` is `x` with another element"),
    (&["cat", "stack", "append", "join", "chain"], "`a.concat::<A, B>(b)` puts two tiles together"),
    (&["narrow", "slice_at", "sub", "part"], "`x.slice::<A, B>([i, j])` is a part of a tile"),
    (
        &["len", "size", "numel", "shape", "dim", "rank"],
        "the extents of a tile are constants: use those with which it was created",
    ),
    (
        &["iter", "into_iter", "iter_mut", "for_each", "chunks", "windows"],
        "`.map(|v| ..)` applies a function to every element; reductions and scans combine them",
    ),
    (&["fold"], "`.reduce::<0>(init, |a, b| ..)`"),
    (&["select", "where_", "masked_fill", "mask"], "`select(mask, a, b)` chooses element by element"),
    (&["fma", "mad"], "`.mul_add(b, c)`"),
    (&["log10"], "`.log2()` times `std::f32::consts::LOG10_2`"),
    (&["ln_1p"], "`(1.0 + x).ln()`"),
    (&["exp_m1"], "`x.exp() - 1.0`"),
    (&["tan"], "`x.sin() / x.cos()`"),
    (&["square", "squared"], "`x * x`"),
    (&["sign", "sgn"], "`.signum()` is 1 or −1, for zeros too; `select(x == 0.0, x, x.signum())` keeps zeros"),
    (&["popc", "popcount", "popcnt", "bit_count"], "the number of bits that are 1 is `.count_ones()`"),
    (&["clz", "ctlz", "lzcnt"], "`.leading_zeros()`"),
    (&["ctz", "cttz", "ffs", "tzcnt"], "`.trailing_zeros()`"),
    (&["umulhi", "mulhi", "__umulhi", "widening_mul", "carrying_mul"], "the upper half of a product is `.mul_hi(b)`"),
    (&["fmod", "remainder"], "`x % y` is exact, with the sign of `x`"),
    (&["wrapping_add", "saturating_add", "checked_add", "overflowing_add"], "`+` of integers wraps"),
    (&["wrapping_sub", "saturating_sub", "checked_sub", "abs_diff"], "`-` of integers wraps"),
    (&["wrapping_mul", "saturating_mul", "checked_mul"], "`*` of integers wraps"),
    (&["div_ceil", "div_euclid", "rem_euclid", "checked_div"], "`cdiv(a, b)` rounds up, `/` and `%` round toward zero"),
    (&["isnan", "isinf", "isfinite"], "`.is_nan()`, `.is_infinite()` and `.is_finite()`"),
    (&["to_bits", "from_bits"], "`.bitcast::<u32>()`"),
    (
        &["unwrap", "expect", "unwrap_or", "unwrap_or_default", "ok"],
        "kernels have no `Result`, and `Option` only for tensors",
    ),
    (&["eq", "ne", "lt", "le", "gt", "ge", "cmp", "partial_cmp", "total_cmp"], "write the operator: `a < b`"),
    (&["and", "or", "not", "bitand", "bitor", "logical_and", "logical_or"], "masks combine with `&`, `|` and `!`"),
    (&["add", "sub", "mul", "div", "rem", "neg"], "write the operator: `a + b`"),
];

/// Help for a method that tensors do not have.
pub(crate) fn foreign_method_of_tensors(name: &str) -> Option<&'static str> {
    TENSOR_METHODS.iter().find(|(names, _)| names.contains(&name)).map(|(_, help)| *help)
}

const TENSOR_METHODS: &[(&[&str], &str)] = &[
    (
        &["len", "size", "numel", "shape", "extent", "extents", "dims", "num_rows", "stride"],
        "an extent is `x.dim(AXIS)`, or a name of `#[shape(..)]`",
    ),
    (
        &["load", "read", "load_block", "load_masked", "block"],
        "`x.load_tile::<16, 64>([i, j])` loads a tile, with zeros outside",
    ),
    (&["store", "write", "store_block", "put", "fill", "copy_from"], "`y.store_tile([i, j], v)` stores a tile"),
    (
        &["iter", "iter_mut", "into_iter", "chunks", "chunks_mut", "windows", "rows_mut"],
        "loop over its tiles: `for i in 0..cdiv(x.dim(0), 64) { x.load_tile::<64>([i]) .. }`",
    ),
    (&["get_mut", "get_unchecked", "at", "item"], "`x.get([i, j])` reads one element, `y.set([i, j], v)` writes one"),
    (
        &["view", "narrow", "split_at", "split_at_mut", "as_slice", "subslice"],
        "views are `x.index::<AXIS>(i)` and `x.slice::<AXIS>(lo..hi)`",
    ),
    (&["clone", "to_owned", "to_vec", "contiguous"], "a tensor cannot be copied in a kernel; load a tile of it"),
    (
        &["compare_and_swap", "compare_exchange_weak", "atomic_cas", "atomicCAS", "cas"],
        "`let (old, done) = y.compare_exchange([i], current, new)`",
    ),
    (&["swap", "exchange", "fetch_swap", "atomic_xchg", "atomicExch"], "`let old = y.atomic_swap([i], v)`"),
    (&["fetch_sub", "atomic_sub", "atomicSub"], "`y.fetch_add([i], -v)`; of unsigned numbers, `0 - v` wraps"),
    (
        &["atomicAdd", "atomic_fetch_add"],
        "`y.fetch_add([i], v)` returns what was there before, `y.atomic_add([i], v)` returns nothing",
    ),
    (&["atomic_and", "atomic_or", "atomic_xor"], "`y.fetch_and([i], v)`, `fetch_or` and `fetch_xor`"),
    (&["unwrap", "expect", "as_ref", "as_mut", "map"], "test an optional tensor by `if let Some(x) = option { .. }`"),
];
