//! The values of expressions during lowering: SSA values, or compounds of them that exist only at compile time.

use proc_macro2::Span;
use titan_core::ir::{Fill, ForKind, Pipe, TileShape, Value};

#[derive(Debug, Clone)]
pub(super) enum Val {
    Unit,
    /// A scalar or a tile.
    Value(Value),
    /// A rank-1 tile that is broadcast as a row or a column.
    Row(Value),
    Col(Value),
    /// A tensor or a view.
    Tensor(Value),
    Own(OwnVal),
    /// The tiles of an output, to loop over.
    Tiles(Tiles),
    Range(RangeVal),
    Array(Vec<Val>),
    Tuple(Vec<Val>),
    Pipe(PipeVal),
}

/// The values of pipelines that are not SSA values. Tokens are SSA values.
#[derive(Debug, Clone)]
pub(super) enum PipeVal {
    Ring(Pipe),
    /// `ring.produce(range)` or, with `fills` false, `ring.consume(range)`
    Side {
        pipe: Pipe,
        range: RangeVal,
        fills: bool,
        span: Span,
    },
    /// A slot and its contents after the copy.
    Filling {
        slot: Value,
        contents: Contents,
        span: Span,
    },
    /// The pending wait of `wait_filled`.
    Filled(Value),
    Work(Tiles),
    /// `work.indices()`
    Indices(Tiles),
}

/// The contents of a slot after a copy.
#[derive(Debug, Clone)]
pub(super) enum Contents {
    /// Copy sources; with a condition, and the contents if it does not hold.
    Copy(Vec<Value>, Option<(Value, Fill)>),
    Fill(Fill),
}

/// `lo..hi`
#[derive(Debug, Clone, Copy)]
pub(super) struct RangeVal {
    pub(super) lo: Value,
    pub(super) hi: Value,
    pub(super) kind: ForKind,
}

/// An output tile, which only this program may access.
#[derive(Debug, Clone)]
pub(super) struct OwnVal {
    /// Its number in the table of output tiles.
    pub(super) id: usize,
    pub(super) tensor: Value,
    pub(super) index: Vec<Value>,
    pub(super) group: Option<Value>,
    pub(super) shape: TileShape,
}

/// `c.tiles::<..>()`, `y.ragged::<..>(off)` or those of `c.work::<..>()`
#[derive(Debug, Clone)]
pub(super) struct Tiles {
    pub(super) tensor: Value,
    pub(super) shape: TileShape,
    /// The number of rows of tiles in a group; 1 is row-major order.
    pub(super) group: i32,
    pub(super) offsets: Option<Value>,
    /// The numbers of tiles along each axis and in total, if they were computed before `match role()`, for all roles.
    pub(super) counts: Option<(Vec<Value>, Value)>,
}

impl Val {
    /// Appends the SSA values of scalars, tiles and compounds of them; `false` if there are other values inside.
    pub(super) fn flatten(&self, out: &mut Vec<Value>) -> bool {
        match self {
            Val::Unit => true,
            Val::Value(v) | Val::Row(v) | Val::Col(v) => {
                out.push(*v);
                true
            }
            Val::Array(list) | Val::Tuple(list) => list.iter().all(|v| v.flatten(out)),
            Val::Tensor(_) | Val::Own(_) | Val::Tiles(_) | Val::Range(_) | Val::Pipe(_) => false,
        }
    }

    /// The same compound with other SSA values, taken in the order of [`Val::flatten`].
    pub(super) fn rebuild(&self, from: &mut dyn Iterator<Item = Value>) -> Val {
        let mut next = |old: Value| from.next().unwrap_or(old);
        match self {
            Val::Value(v) => Val::Value(next(*v)),
            Val::Row(v) => Val::Row(next(*v)),
            Val::Col(v) => Val::Col(next(*v)),
            Val::Array(list) => Val::Array(list.iter().map(|v| v.rebuild(from)).collect()),
            Val::Tuple(list) => Val::Tuple(list.iter().map(|v| v.rebuild(from)).collect()),
            Val::Unit | Val::Tensor(_) | Val::Own(_) | Val::Tiles(_) | Val::Range(_) | Val::Pipe(_) => self.clone(),
        }
    }
}
