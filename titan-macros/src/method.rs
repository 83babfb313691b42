//! The methods of the language: a name and a receiver determine a [`Method`], on which inference and lowering match.

use crate::method_pipe::{self, PipeKind, PipeMethod};
use crate::usage;
use titan_core::ir::{ArgOp, AtomicOp, BinOp, FetchOp, ReduceOp, UnOp, Unit};

/// The kind of a receiver, which determines its methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receiver {
    Scalar,
    Tile,
    Tensor,
    Own,
    /// Rings, tokens, MMAs in flight.
    Pipe(PipeKind),
}

impl Method {
    /// Whether it stores to the tensor that it is called on, or returns a part of it that can be stored to.
    pub(crate) const fn writes(self) -> bool {
        matches!(
            self,
            Method::Store(_)
                | Method::Set
                | Method::ScatterRows
                | Method::Scatter
                | Method::Atomic(_)
                | Method::AtomicTile(_)
                | Method::Fetch(_)
                | Method::CompareExchange
                | Method::Tiles { .. }
                | Method::Ragged
                | Method::Work { .. }
                | Method::Shared
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Unary(UnOp),
    /// `x.min(y)` and other operations with one operand beside the receiver.
    Binary(BinOp),
    /// What is made of other operations ([`crate::lower`]'s `compose`).
    Composed(Composed),
    Clamp,
    MulAdd,
    Cast,
    Bitcast,
    Map,
    Reshape,
    Broadcast,
    Transpose,
    Permute,
    Interleave,
    Split,
    /// `x.slice::<A, B>([i, j])`, a part of a tile
    Part,
    /// `a.concat::<A, B>(b)`
    Concat,
    /// `x.at([i, j])`
    At,
    Row,
    Col,
    Reduce(ReduceOp),
    ArgReduce(ArgOp),
    ReduceWith,
    Scan(ReduceOp),
    ScanWith,
    /// `any` (`true`) and `all`
    Quantifier(bool),
    Dim,
    Load {
        unit: Unit,
        padded: bool,
    },
    Store(Unit),
    Get,
    Set,
    Index,
    Slice,
    Segment,
    GatherRows {
        padded: bool,
    },
    Gather {
        padded: bool,
    },
    ScatterRows,
    Scatter,
    Atomic(AtomicOp),
    AtomicTile(AtomicOp),
    /// `t.fetch_add([i], v)` and the like
    Fetch(FetchOp),
    CompareExchange,
    Tiles {
        grouped: bool,
    },
    Ragged,
    Shared,
    IsSome(bool),
    OwnIndex,
    OwnGroup,
    OwnLoad,
    OwnStore,
    OwnSkip,
    /// `out.store_from(written)`
    OwnStoreFrom,
    /// `t.tile([i, j])` and `t.tile_at([r, c])`
    Source(Unit),
    /// `t.rows((i, ..), col)`
    SourceRows,
    /// `c.work::<..>()`
    Work {
        grouped: bool,
    },
    Pipe(PipeMethod),
}

/// An elementwise operation that is a few others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Composed {
    IsFinite,
    IsInfinite,
    Signum,
    TrailingZeros,
}

/// The method of this name for this receiver.
pub(crate) fn lookup(recv: Receiver, name: &str) -> Option<Method> {
    match recv {
        Receiver::Scalar => value(name),
        Receiver::Tile => value(name).or_else(|| tile(name)),
        Receiver::Tensor => tensor(name),
        Receiver::Own => Some(match name {
            "index" => Method::OwnIndex,
            "group" => Method::OwnGroup,
            "load" => Method::OwnLoad,
            "store" => Method::OwnStore,
            "skip" => Method::OwnSkip,
            "store_from" => Method::OwnStoreFrom,
            _ => return None,
        }),
        Receiver::Pipe(kind) => method_pipe::lookup(kind, name).map(Method::Pipe),
    }
}

/// The names of the methods of a receiver.
pub(crate) fn names(recv: Receiver) -> impl Iterator<Item = &'static str> {
    let unary = UnOp::ALL.iter().map(|op| op.name());
    unary.chain(usage::method_names()).filter(move |name| lookup(recv, name).is_some())
}

/// Whether the first generic argument of a method is an axis.
pub(crate) fn takes_axis(name: &str) -> bool {
    name.starts_with("reduce_")
        || name.starts_with("scan_")
        || matches!(
            name,
            "argmax" | "argmin" | "any" | "all" | "broadcast" | "slice" | "slice_mut" | "index" | "index_mut"
        )
}

/// Whether scalars or tiles have a method of this name.
pub(crate) fn is_of_values(name: &str) -> bool {
    lookup(Receiver::Tile, name).is_some()
}

fn value(name: &str) -> Option<Method> {
    Some(match name {
        "min" => Method::Binary(BinOp::Min),
        "max" => Method::Binary(BinOp::Max),
        "mul_hi" => Method::Binary(BinOp::MulHi),
        "powf" => Method::Binary(BinOp::Powf),
        "is_finite" => Method::Composed(Composed::IsFinite),
        "is_infinite" => Method::Composed(Composed::IsInfinite),
        "signum" => Method::Composed(Composed::Signum),
        "trailing_zeros" => Method::Composed(Composed::TrailingZeros),
        "clamp" => Method::Clamp,
        "mul_add" => Method::MulAdd,
        "cast" => Method::Cast,
        "bitcast" => Method::Bitcast,
        "log" => Method::Unary(UnOp::Ln),
        "neg" | "not" => return None,
        _ => Method::Unary(UnOp::from_name(name)?),
    })
}

fn tile(name: &str) -> Option<Method> {
    Some(match name {
        "map" => Method::Map,
        "reshape" => Method::Reshape,
        "broadcast" => Method::Broadcast,
        "t" => Method::Transpose,
        "permute" => Method::Permute,
        "interleave" => Method::Interleave,
        "split" => Method::Split,
        "slice" => Method::Part,
        "concat" => Method::Concat,
        "at" => Method::At,
        "row" => Method::Row,
        "col" => Method::Col,
        "reduce_sum" => Method::Reduce(ReduceOp::Sum),
        "reduce_prod" => Method::Reduce(ReduceOp::Prod),
        "reduce_max" => Method::Reduce(ReduceOp::Max),
        "reduce_min" => Method::Reduce(ReduceOp::Min),
        "argmax" => Method::ArgReduce(ArgOp::Max),
        "argmin" => Method::ArgReduce(ArgOp::Min),
        "reduce" => Method::ReduceWith,
        "scan_sum" => Method::Scan(ReduceOp::Sum),
        "scan_prod" => Method::Scan(ReduceOp::Prod),
        "scan_max" => Method::Scan(ReduceOp::Max),
        "scan_min" => Method::Scan(ReduceOp::Min),
        "scan" => Method::ScanWith,
        "any" => Method::Quantifier(true),
        "all" => Method::Quantifier(false),
        _ => return None,
    })
}

fn tensor(name: &str) -> Option<Method> {
    Some(match name {
        "dim" => Method::Dim,
        "load_tile" => Method::Load { unit: Unit::Tile, padded: false },
        "load_tile_or" => Method::Load { unit: Unit::Tile, padded: true },
        "load_at" => Method::Load { unit: Unit::Elem, padded: false },
        "load_at_or" => Method::Load { unit: Unit::Elem, padded: true },
        "store_tile" => Method::Store(Unit::Tile),
        "store_at" => Method::Store(Unit::Elem),
        "get" => Method::Get,
        "set" => Method::Set,
        "index" | "index_mut" => Method::Index,
        "slice" | "slice_mut" => Method::Slice,
        "segment" | "segment_mut" => Method::Segment,
        "gather_rows" => Method::GatherRows { padded: false },
        "gather_rows_or" => Method::GatherRows { padded: true },
        "gather" => Method::Gather { padded: false },
        "gather_or" => Method::Gather { padded: true },
        "scatter_rows" => Method::ScatterRows,
        "scatter" => Method::Scatter,
        "atomic_add" => Method::Atomic(AtomicOp::Add),
        "atomic_max" => Method::Atomic(AtomicOp::Max),
        "atomic_min" => Method::Atomic(AtomicOp::Min),
        "fetch_add" => Method::Fetch(FetchOp::Add),
        "fetch_max" => Method::Fetch(FetchOp::Max),
        "fetch_min" => Method::Fetch(FetchOp::Min),
        "fetch_and" => Method::Fetch(FetchOp::And),
        "fetch_or" => Method::Fetch(FetchOp::Or),
        "fetch_xor" => Method::Fetch(FetchOp::Xor),
        "atomic_swap" => Method::Fetch(FetchOp::Swap),
        "compare_exchange" => Method::CompareExchange,
        "atomic_add_tile" => Method::AtomicTile(AtomicOp::Add),
        "atomic_max_tile" => Method::AtomicTile(AtomicOp::Max),
        "atomic_min_tile" => Method::AtomicTile(AtomicOp::Min),
        "tiles" => Method::Tiles { grouped: false },
        "tiles_grouped" => Method::Tiles { grouped: true },
        "work" => Method::Work { grouped: false },
        "work_grouped" => Method::Work { grouped: true },
        "tile" => Method::Source(Unit::Tile),
        "tile_at" => Method::Source(Unit::Elem),
        "rows" => Method::SourceRows,
        "ragged" => Method::Ragged,
        "shared" => Method::Shared,
        "is_some" => Method::IsSome(true),
        "is_none" => Method::IsSome(false),
        _ => return None,
    })
}
