//! The text form of operations without regions: mnemonic, attributes, arrangement of the operands.
//!
//! Printer and parser share this file, so that they always agree. The mnemonics are those of the op table.

use super::{form_barrier, form_local, form_ttg};
use crate::ir::{
    AmdOp, ArgOp, AtomicOp, BinOp, Elem, NvOp, OpKind, Pred, ReduceOp, RegionOp, TileShape, TtgOp, Ty, UnOp, Unit,
};

/// The arrangement of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `op %a, %b`
    Plain,
    /// `op %t[%i, %j]`
    At,
    /// `op %t[%i, %j] or %padding`
    AtOr,
    /// `op %t[%i, %j], %v`
    AtValue,
    /// `op %t[%i, %j], %a, %b`: an index for each axis of the tensor
    AtMany,
    /// `op "text", %a, %b`
    TextFirst,
    /// `op %a, "text"`
    TextLast,
}

impl Form {
    /// An example of the arrangement, for messages.
    pub(super) const fn example(self) -> &'static str {
        match self {
            Form::Plain => "%a, %b, …",
            Form::At => "%t[%i, …]",
            Form::AtOr => "%t[%i, …] or %padding",
            Form::AtValue => "%t[%i, …], %value",
            Form::AtMany => "%t[%i, …], %a, …",
            Form::TextFirst => "\"text\", %a, …",
            Form::TextLast => "%condition, \"text\"",
        }
    }
}

/// The arrangement of an operation's operands, of which the first has the type `first`.
pub(super) const fn form(kind: &OpKind, first: Option<Ty>) -> Form {
    match kind {
        // A bulk copy of a tile of a tensor, which has a source as operand.
        OpKind::Nv(NvOp::BulkLoad { .. } | NvOp::BulkStore { .. }) if matches!(first, Some(Ty::Source(..))) => {
            Form::Plain
        }
        OpKind::Get => Form::At,
        OpKind::Load(..)
        | OpKind::GatherRows { .. }
        | OpKind::Gather
        | OpKind::Ttg(TtgOp::Source(..) | TtgOp::SourceRows { .. }) => Form::AtOr,
        OpKind::Store(_)
        | OpKind::Set
        | OpKind::ScatterRows
        | OpKind::Scatter
        | OpKind::Atomic(_)
        | OpKind::AtomicTile(_)
        | OpKind::Ttg(TtgOp::StoreIssue(_)) => Form::AtValue,
        OpKind::Nv(NvOp::BulkLoad { .. } | NvOp::BulkStore { .. } | NvOp::CpAsync { .. })
        | OpKind::Amd(AmdOp::BufferLoadLds { .. }) => Form::AtMany,
        OpKind::Print(_) | OpKind::Region(RegionOp::Call(_)) => Form::TextFirst,
        OpKind::Assert(_) => Form::TextLast,
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
        | OpKind::Segment
        | OpKind::Shared
        | OpKind::Unflatten
        | OpKind::UnflattenGrouped(_)
        | OpKind::RaggedCount { .. }
        | OpKind::RaggedTile { .. }
        | OpKind::For(_)
        | OpKind::Loop
        | OpKind::If
        | OpKind::Yield
        | OpKind::Break(_)
        | OpKind::Continue(_)
        | OpKind::Return
        | OpKind::Ttg(_)
        | OpKind::Local(_)
        | OpKind::Region(_)
        | OpKind::Nv(_)
        | OpKind::Amd(_) => Form::Plain,
    }
}

/// The integers in angle brackets after the mnemonic. `rank` is the rank of the first operand.
pub(super) fn attributes(kind: &OpKind, rank: usize) -> Vec<i64> {
    match kind {
        OpKind::ProgramId(a)
        | OpKind::NumPrograms(a)
        | OpKind::Dim(a)
        | OpKind::Index(a)
        | OpKind::Slice(a)
        | OpKind::Reduce(_, a)
        | OpKind::ArgReduce(_, a)
        | OpKind::ReduceWith(a)
        | OpKind::Scan(_, a)
        | OpKind::ScanWith(a) => vec![i64::from(*a)],
        OpKind::Iota(n) | OpKind::UnflattenGrouped(n) => vec![i64::from(*n)],
        OpKind::Ttg(op) => form_ttg::attributes(op),
        OpKind::Local(op) => form_local::attributes(*op),
        OpKind::Broadcast { axis, n } => vec![i64::from(*axis), i64::from(*n)],
        OpKind::RaggedCount { rows, cols } | OpKind::RaggedTile { rows, cols } => {
            vec![i64::from(*rows), i64::from(*cols)]
        }
        OpKind::Permute(perm) => {
            let tail_is_identity = (rank..4).all(|i| usize::from(perm[i]) == i);
            let n = if tail_is_identity { rank.min(4) } else { 4 };
            perm[..n].iter().map(|p| i64::from(*p)).collect()
        }
        OpKind::Break(n) | OpKind::Continue(n) => {
            if *n == 0 {
                vec![]
            } else {
                vec![i64::from(*n)]
            }
        }
        OpKind::Const(_)
        | OpKind::Present
        | OpKind::Splat(_)
        | OpKind::Unary(_)
        | OpKind::Binary(_)
        | OpKind::Cmp(_)
        | OpKind::Select
        | OpKind::MulAdd
        | OpKind::Cast(_)
        | OpKind::Bitcast(_)
        | OpKind::Reshape(_)
        | OpKind::Interleave
        | OpKind::Split
        | OpKind::Mma
        | OpKind::Segment
        | OpKind::Shared
        | OpKind::Load(..)
        | OpKind::Store(_)
        | OpKind::Get
        | OpKind::Set
        | OpKind::GatherRows { .. }
        | OpKind::ScatterRows
        | OpKind::Gather
        | OpKind::Scatter
        | OpKind::Atomic(_)
        | OpKind::AtomicTile(_)
        | OpKind::Unflatten
        | OpKind::Print(_)
        | OpKind::Assert(_)
        | OpKind::For(_)
        | OpKind::Loop
        | OpKind::If
        | OpKind::Yield
        | OpKind::Return
        | OpKind::Region(_)
        | OpKind::Nv(_)
        | OpKind::Amd(_) => vec![],
    }
}

/// The attributes in braces.
pub(super) fn named(kind: &OpKind) -> Vec<(&'static str, String)> {
    if let OpKind::Ttg(op) = kind { form_ttg::named(op) } else { form_barrier::braces_of(kind) }
}

/// The reason why a mnemonic with attributes is not an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeadError {
    /// No operation has this mnemonic.
    Unknown,
    /// The operation requires this number of integers in angle brackets, with this meaning.
    Attributes(usize, &'static str),
    /// An integer is out of range.
    Range(i64),
    /// The operation is determined by its result type, which is missing or of another kind.
    NeedsType(&'static str),
    /// The operation requires a string in quotes.
    NeedsText,
    /// The operation requires these attributes in braces.
    Named(&'static str),
}

/// The parts of an operation before and after the operands.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) attrs: &'a [i64],
    /// The first stated result type.
    pub(super) ty: Option<Ty>,
    pub(super) text: Option<String>,
    /// The attributes in braces.
    pub(super) named: &'a [(String, Named)],
}

/// The value of an attribute in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// An integer.
    Int(i64),
    /// A word, such as the name of a proxy.
    Word(String),
}

impl Head<'_> {
    pub(super) fn ints<const N: usize>(&self, meaning: &'static str) -> Result<[i64; N], HeadError> {
        self.attrs.try_into().map_err(|_| HeadError::Attributes(N, meaning))
    }

    fn axis(&self) -> Result<u8, HeadError> {
        let [a] = self.ints("the axis")?;
        narrow(a)
    }

    fn box_of(&self) -> Result<(i32, i32), HeadError> {
        let [a, b] = self.ints("rows and columns of a tile")?;
        Ok((narrow(a)?, narrow(b)?))
    }

    fn level(&self) -> Result<u32, HeadError> {
        if self.attrs.is_empty() { Ok(0) } else { narrow(self.ints::<1>("how many loops to leave out")?[0]) }
    }

    fn bare(&self, kind: OpKind) -> Result<OpKind, HeadError> {
        self.ints::<0>("nothing")?;
        Ok(kind)
    }

    fn elem(&self) -> Result<Elem, HeadError> {
        match self.ty {
            Some(Ty::Scalar(e) | Ty::Tile(e, _)) => Ok(e),
            Some(
                Ty::Tensor(..)
                | Ty::Source(..)
                | Ty::Smem(..)
                | Ty::Compute(..)
                | Ty::Acc(..)
                | Ty::Token(..)
                | Ty::Barrier(_),
            )
            | None => Err(HeadError::NeedsType("a scalar or tile")),
        }
    }

    fn shape(&self) -> Result<TileShape, HeadError> {
        self.ty.and_then(Ty::tile_shape).ok_or(HeadError::NeedsType("a tile"))
    }

    fn text(&self) -> Result<String, HeadError> {
        self.text.clone().ok_or(HeadError::NeedsText)
    }
}

pub(super) fn narrow<T: TryFrom<i64>>(v: i64) -> Result<T, HeadError> {
    T::try_from(v).map_err(|_| HeadError::Range(v))
}

/// The operation with a mnemonic. The parser handles `const` and operations with regions.
pub(super) fn kind(name: &str, head: &Head<'_>) -> Result<OpKind, HeadError> {
    if let Some(kind) = form_ttg::kind(name, head) {
        return kind.map(OpKind::Ttg);
    }
    if let Some(kind) = form_local::kind(name, head) {
        return kind.map(OpKind::Local);
    }
    if let Some(kind) = form_barrier::kind(name, head) {
        return kind;
    }
    if !head.named.is_empty() {
        return Err(HeadError::Named(""));
    }
    Ok(match name {
        "program_id" => OpKind::ProgramId(head.axis()?),
        "num_programs" => OpKind::NumPrograms(head.axis()?),
        "dim" => OpKind::Dim(head.axis()?),
        "index" => OpKind::Index(head.axis()?),
        "slice" => OpKind::Slice(head.axis()?),
        "iota" => OpKind::Iota(narrow(head.ints::<1>("the extent")?[0])?),
        "unflatten_grouped" => OpKind::UnflattenGrouped(narrow(head.ints::<1>("the rows of a group")?[0])?),
        "broadcast" => {
            let [axis, n] = head.ints("the new axis and its extent")?;
            OpKind::Broadcast { axis: narrow(axis)?, n: narrow(n)? }
        }
        "permute" => OpKind::Permute(permutation(head.attrs)?),
        "ragged_count" => head.box_of().map(|(rows, cols)| OpKind::RaggedCount { rows, cols })?,
        "ragged_tile" => head.box_of().map(|(rows, cols)| OpKind::RaggedTile { rows, cols })?,
        "break" => OpKind::Break(head.level()?),
        "continue" => OpKind::Continue(head.level()?),
        "splat" => head.bare(OpKind::Splat(head.shape()?))?,
        "reshape" => head.bare(OpKind::Reshape(head.shape()?))?,
        "cast" => head.bare(OpKind::Cast(head.elem()?))?,
        "bitcast" => head.bare(OpKind::Bitcast(head.elem()?))?,
        "load_tile" => head.bare(OpKind::Load(Unit::Tile, head.shape()?))?,
        "load_at" => head.bare(OpKind::Load(Unit::Elem, head.shape()?))?,
        "gather_rows" => match head.shape()?[..] {
            [rows, width] => head.bare(OpKind::GatherRows { rows, width })?,
            _ => return Err(HeadError::NeedsType("a rank-2 tile")),
        },
        "print" => head.bare(OpKind::Print(head.text()?))?,
        "assert" => head.bare(OpKind::Assert(head.text()?))?,
        _ => match simple(name) {
            Some(kind) => head.bare(kind)?,
            None => reduction(name).ok_or(HeadError::Unknown)?(head.axis()?),
        },
    })
}

/// Operations without attributes.
fn simple(name: &str) -> Option<OpKind> {
    Some(match name {
        "present" => OpKind::Present,
        "select" => OpKind::Select,
        "mul_add" => OpKind::MulAdd,
        "interleave" => OpKind::Interleave,
        "split" => OpKind::Split,
        "mma" => OpKind::Mma,
        "segment" => OpKind::Segment,
        "shared" => OpKind::Shared,
        "store_tile" => OpKind::Store(Unit::Tile),
        "store_at" => OpKind::Store(Unit::Elem),
        "get" => OpKind::Get,
        "set" => OpKind::Set,
        "scatter_rows" => OpKind::ScatterRows,
        "gather" => OpKind::Gather,
        "scatter" => OpKind::Scatter,
        "atomic_add" => OpKind::Atomic(AtomicOp::Add),
        "atomic_max" => OpKind::Atomic(AtomicOp::Max),
        "atomic_min" => OpKind::Atomic(AtomicOp::Min),
        "atomic_add_tile" => OpKind::AtomicTile(AtomicOp::Add),
        "atomic_max_tile" => OpKind::AtomicTile(AtomicOp::Max),
        "atomic_min_tile" => OpKind::AtomicTile(AtomicOp::Min),
        "unflatten" => OpKind::Unflatten,
        "yield" => OpKind::Yield,
        "return" => OpKind::Return,
        _ => {
            return BinOp::from_name(name)
                .map(OpKind::Binary)
                .or_else(|| UnOp::from_name(name).map(OpKind::Unary))
                .or_else(|| Pred::from_name(name).map(OpKind::Cmp));
        }
    })
}

/// Reductions and scans along an axis.
fn reduction(name: &str) -> Option<fn(u8) -> OpKind> {
    Some(match name {
        "reduce_sum" => |a| OpKind::Reduce(ReduceOp::Sum, a),
        "reduce_prod" => |a| OpKind::Reduce(ReduceOp::Prod, a),
        "reduce_max" => |a| OpKind::Reduce(ReduceOp::Max, a),
        "reduce_min" => |a| OpKind::Reduce(ReduceOp::Min, a),
        "scan_sum" => |a| OpKind::Scan(ReduceOp::Sum, a),
        "scan_prod" => |a| OpKind::Scan(ReduceOp::Prod, a),
        "scan_max" => |a| OpKind::Scan(ReduceOp::Max, a),
        "scan_min" => |a| OpKind::Scan(ReduceOp::Min, a),
        "argmax" => |a| OpKind::ArgReduce(ArgOp::Max, a),
        "argmin" => |a| OpKind::ArgReduce(ArgOp::Min, a),
        _ => return None,
    })
}

/// A permutation. Axes that are not stated stay in their places.
fn permutation(attrs: &[i64]) -> Result<[u8; 4], HeadError> {
    if attrs.is_empty() || attrs.len() > 4 {
        return Err(HeadError::Attributes(2, "the order of the axes, one to four integers"));
    }
    let mut perm = [0, 1, 2, 3];
    for (slot, a) in perm.iter_mut().zip(attrs) {
        *slot = narrow(*a)?;
    }
    Ok(perm)
}
