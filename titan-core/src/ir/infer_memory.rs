//! Result types of views and memory operations. Shares the error constructors of [`super::infer`].

use super::infer::{TypeError, all_i32, bad_axis, mismatch, not_for, operands, tile};
use super::op::OpKind;
use super::{Elem, TileShape, Ty};
use crate::diag::Code;

type Types = Result<Vec<Ty>, TypeError>;

/// Views and facts of a tensor.
pub(super) fn view(kind: &OpKind, args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    match kind {
        OpKind::Dim(axis) => {
            none(rest, args)?;
            if *axis < rank { Ok(vec![Ty::I32]) } else { Err(bad_axis(*axis, rank.into())) }
        }
        OpKind::Present => none(rest, args).map(|()| vec![Ty::BOOL]),
        OpKind::Shared => none(rest, args).map(|()| vec![args[0]]),
        OpKind::Index(axis) => {
            counted(rest, 1, args)?;
            if *axis >= rank {
                return Err(bad_axis(*axis, rank.into()));
            }
            if rank == 1 {
                return Err(rank_error("a view of a rank-1 tensor has no axis left; `get` reads one element".to_owned()));
            }
            Ok(vec![Ty::Tensor(e, rank - 1)])
        }
        OpKind::Slice(axis) => {
            counted(rest, 2, args)?;
            if *axis < rank { Ok(vec![args[0]]) } else { Err(bad_axis(*axis, rank.into())) }
        }
        OpKind::Segment => match rest {
            [Ty::Tensor(Elem::I32, 1), Ty::I32] => Ok(vec![args[0]]),
            _ => Err(operands("a tensor, a `Tensor<i32, 1>` of offsets and an index", args)),
        },
        _ => Err(operands("a view", args)),
    }
}

/// Loads, stores, gathers, scatters and atomics.
pub(super) fn access(kind: &OpKind, args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    let r = usize::from(rank);
    match kind {
        OpKind::Load(_, shape) => {
            same_rank(*shape, r)?;
            let pad = rest.last().copied();
            counted(&rest[..rest.len().saturating_sub(1)], r, args)?;
            padding(pad, e, args)?;
            Ok(vec![tile(e, Some(*shape))?])
        }
        OpKind::Store(_) => stored(rest, r, e, args).map(|_| vec![]),
        OpKind::AtomicTile(_) => {
            stored(rest, r, e, args)?;
            atomic_elem(e)
        }
        OpKind::Get => counted(rest, r, args).map(|()| vec![Ty::Scalar(e)]),
        OpKind::Set => {
            counted(&rest[..rest.len().saturating_sub(1)], r, args)?;
            if rest.last() == Some(&Ty::Scalar(e)) { Ok(vec![]) } else { Err(operands("an element of the tensor's type last", args)) }
        }
        OpKind::GatherRows { rows, width } => {
            let pad = rest.last().copied();
            row_indices(&rest[..rest.len().saturating_sub(1)], r, Some(*rows), args)?;
            padding(pad, e, args)?;
            Ok(vec![tile(e, TileShape::new(&[*rows, *width]))?])
        }
        OpKind::ScatterRows => match rest.last() {
            Some(Ty::Tile(t, s)) if *t == e && s.rank() == 2 => {
                row_indices(&rest[..rest.len() - 1], r, Some(s[0]), args).map(|()| vec![])
            }
            _ => Err(operands("a rank-2 tile of the tensor's type last", args)),
        },
        OpKind::Gather => {
            let pad = rest.last().copied();
            let shape = lanes(&rest[..rest.len().saturating_sub(1)], r, args)?;
            padding(pad, e, args)?;
            Ok(vec![tile(e, Some(shape))?])
        }
        OpKind::Scatter | OpKind::Atomic(_) => {
            let shape = lanes(&rest[..rest.len().saturating_sub(1)], r, args)?;
            if rest.last() != Some(&Ty::Tile(e, shape)) {
                return Err(operands("a tile of the tensor's type, shaped as the indices, last", args));
            }
            if matches!(kind, OpKind::Atomic(_)) { atomic_elem(e) } else { whole_bytes(e) }
        }
        OpKind::RaggedCount { .. } => match rest {
            [Ty::Tensor(Elem::I32, 1)] if rank == 2 => Ok(vec![Ty::I32]),
            _ => Err(operands("a rank-2 tensor and a `Tensor<i32, 1>` of offsets", args)),
        },
        OpKind::RaggedTile { .. } => match rest {
            [Ty::Tensor(Elem::I32, 1), Ty::I32] if rank == 2 => Ok(vec![Ty::I32; 3]),
            _ => Err(operands("a rank-2 tensor, a `Tensor<i32, 1>` of offsets and a number", args)),
        },
        _ => Err(operands("a memory operation", args)),
    }
}

fn tensor(args: &[Ty]) -> Result<(Elem, u8, &[Ty]), TypeError> {
    match args {
        [Ty::Tensor(e, r), rest @ ..] => Ok((*e, *r, rest)),
        _ => Err(operands("a tensor first", args)),
    }
}

fn none(rest: &[Ty], args: &[Ty]) -> Result<(), TypeError> {
    if rest.is_empty() { Ok(()) } else { Err(operands("a tensor only", args)) }
}

/// `rest` is one index per axis.
fn counted(rest: &[Ty], rank: usize, args: &[Ty]) -> Result<(), TypeError> {
    if rest.len() == rank { all_i32(rest) } else { Err(operands(&format!("{rank} indices after the tensor"), args)) }
}

fn rank_error(message: String) -> TypeError {
    TypeError { code: Code::RankMismatch, message, help: None }
}

fn same_rank(shape: TileShape, rank: usize) -> Result<(), TypeError> {
    if shape.rank() == rank {
        return Ok(());
    }
    Err(rank_error(format!("a tile of rank {} from or into a tensor of rank {rank}", shape.rank())))
}

fn padding(pad: Option<Ty>, e: Elem, args: &[Ty]) -> Result<(), TypeError> {
    match pad {
        Some(Ty::Scalar(p)) if p == e => Ok(()),
        Some(p @ Ty::Scalar(_)) => Err(mismatch(&[args[0].with_elem(e), p])),
        _ => Err(operands("the padding last", args)),
    }
}

/// The rank's indices and a tile of the tensor's element type.
fn stored(rest: &[Ty], rank: usize, e: Elem, args: &[Ty]) -> Result<TileShape, TypeError> {
    match rest {
        [ix @ .., Ty::Tile(t, shape)] => {
            same_rank(*shape, rank)?;
            counted(ix, rank, args)?;
            if *t == e { Ok(*shape) } else { Err(mismatch(&[args[0], Ty::Tile(*t, *shape)])) }
        }
        _ => Err(operands("a tile last", args)),
    }
}

/// One index tile or scalar per leading axis, then the column.
fn row_indices(ix: &[Ty], rank: usize, rows: Option<i32>, args: &[Ty]) -> Result<(), TypeError> {
    if rank < 2 || ix.len() != rank {
        return Err(operands("an index for each leading axis and a column", args));
    }
    let fits = ix[..rank - 1].iter().all(|t| match t {
        Ty::Scalar(Elem::I32) => true,
        Ty::Tile(Elem::I32, s) => s.rank() == 1 && rows.is_none_or(|n| s[0] == n),
        Ty::Scalar(_) | Ty::Tile(..) | Ty::Tensor(..) => false,
    });
    if !fits {
        return Err(operands("`i32` scalars or `Tile<i32, N>` as row indices", args));
    }
    all_i32(&ix[rank - 1..])
}

/// Index tiles of one shape, one per axis.
fn lanes(ix: &[Ty], rank: usize, args: &[Ty]) -> Result<TileShape, TypeError> {
    match ix {
        [Ty::Tile(Elem::I32, s), ..] if ix.len() == rank && ix.iter().all(|t| t == &ix[0]) => Ok(*s),
        _ => Err(operands("one `i32` index tile per axis, all of one shape", args)),
    }
}

fn atomic_elem(e: Elem) -> Types {
    let ok = e.is_arith() && (e.bits() >= 16 || e.is_float());
    if ok { Ok(vec![]) } else { Err(not_for("an atomic", e)) }
}

fn whole_bytes(e: Elem) -> Types {
    if e.bits() >= 8 { Ok(vec![]) } else { Err(not_for("a scatter", e)) }
}
