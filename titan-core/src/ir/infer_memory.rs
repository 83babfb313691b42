//! Result types of operations on views and memory. The constructors of errors are those of [`super::infer`].

use super::infer::{TypeError, all_i32, bad_axis, mismatch, not_for, operands, tile};
use super::{Elem, FetchOp, TileShape, Ty};
use crate::diag::Code;

type Types = Result<Vec<Ty>, TypeError>;

/// `result`, if the only operand is a tensor.
pub(super) fn tensor_only(result: Ty, args: &[Ty]) -> Types {
    let (_, _, rest) = tensor(args)?;
    if rest.is_empty() { Ok(vec![result]) } else { Err(operands("a tensor only", args)) }
}

pub(super) fn dim(axis: u8, args: &[Ty]) -> Types {
    let (_, rank, _) = tensor(args)?;
    let result = tensor_only(Ty::I32, args)?;
    if axis < rank { Ok(result) } else { Err(bad_axis(axis, rank.into())) }
}

pub(super) fn index(axis: u8, args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    counted(rest, 1, args)?;
    if axis >= rank {
        return Err(bad_axis(axis, rank.into()));
    }
    if rank == 1 {
        return Err(rank_error("a view of a rank-1 tensor has no axis left; `get` reads one element".to_owned()));
    }
    Ok(vec![Ty::Tensor(e, rank - 1)])
}

pub(super) fn slice(axis: u8, args: &[Ty]) -> Types {
    let (_, rank, rest) = tensor(args)?;
    counted(rest, 2, args)?;
    if axis < rank { Ok(vec![args[0]]) } else { Err(bad_axis(axis, rank.into())) }
}

pub(super) fn segment(args: &[Ty]) -> Types {
    match tensor(args)? {
        (_, _, [Ty::Tensor(Elem::I32, 1), Ty::I32]) => Ok(vec![args[0]]),
        _ => Err(operands("a tensor, a `Tensor<i32, 1>` of offsets and an index", args)),
    }
}

pub(super) fn load(shape: TileShape, args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    same_rank(shape, rank.into())?;
    let (indices, pad) = last(rest);
    counted(indices, rank.into(), args)?;
    padding(pad, e, args)?;
    Ok(vec![tile(e, Some(shape))?])
}

pub(super) fn store(args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    // Only barrier programs store tiles that are in shared memory.
    let stores = match rest {
        [ix @ .., Ty::Smem(t, shape)] => stored(&[ix, &[Ty::Tile(*t, *shape)]].concat(), rank.into(), e, args),
        _ => stored(rest, rank.into(), e, args),
    };
    stores.map(|()| vec![])
}

pub(super) fn atomic_tile(args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    stored(rest, rank.into(), e, args)?;
    atomic_elem(e)
}

pub(super) fn get(args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    counted(rest, rank.into(), args).map(|()| vec![Ty::Scalar(e)])
}

pub(super) fn set(args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    let (indices, value) = last(rest);
    counted(indices, rank.into(), args)?;
    if value == Some(Ty::Scalar(e)) { Ok(vec![]) } else { Err(operands("an element of the tensor's type last", args)) }
}

pub(super) fn gather_rows(rows: i32, width: i32, args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    let (indices, pad) = last(rest);
    row_indices(indices, rank.into(), rows, args)?;
    padding(pad, e, args)?;
    Ok(vec![tile(e, TileShape::new(&[rows, width]))?])
}

pub(super) fn scatter_rows(args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    match last(rest) {
        (indices, Some(Ty::Tile(t, s))) if t == e && s.rank() == 2 => {
            row_indices(indices, rank.into(), s[0], args).map(|()| vec![])
        }
        _ => Err(operands("a rank-2 tile of the tensor's type last", args)),
    }
}

pub(super) fn gather(args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    let (indices, pad) = last(rest);
    let shape = lanes(indices, rank.into(), args)?;
    padding(pad, e, args)?;
    Ok(vec![tile(e, Some(shape))?])
}

/// The types of a scatter of the elements of a tile to positions given by index tiles; `allowed` checks the element type.
pub(super) fn scatter(args: &[Ty], allowed: fn(Elem) -> Types) -> Types {
    let (e, rank, rest) = tensor(args)?;
    let (indices, values) = last(rest);
    let shape = lanes(indices, rank.into(), args)?;
    if values != Some(Ty::Tile(e, shape)) {
        return Err(operands("a tile of the tensor's type, shaped as the indices, last", args));
    }
    allowed(e)
}

/// The types of an atomic update that returns what it found: a tile as the stored one.
pub(super) fn fetch(op: FetchOp, args: &[Ty]) -> Types {
    let allowed = match op {
        FetchOp::Add | FetchOp::Max | FetchOp::Min | FetchOp::Swap => atomic_elem,
        FetchOp::And | FetchOp::Or | FetchOp::Xor => atomic_bits,
    };
    scatter(args, allowed).map(|_| args.last().copied().into_iter().collect())
}

/// The types of a comparison and exchange: what was found, and a mask.
pub(super) fn compare_exchange(args: &[Ty]) -> Types {
    let (e, rank, rest) = tensor(args)?;
    let (rest, new) = last(rest);
    let (indices, current) = last(rest);
    let shape = lanes(indices, rank.into(), args)?;
    let held = Ty::Tile(e, shape);
    if [current, new] != [Some(held); 2] {
        return Err(operands("two tiles of the tensor's type, shaped as the indices, last", args));
    }
    atomic_elem(e).map(|_| vec![held, held.with_elem(Elem::Bool)])
}

pub(super) fn ragged_count(args: &[Ty]) -> Types {
    match tensor(args)? {
        (_, 2, [Ty::Tensor(Elem::I32, 1)]) => Ok(vec![Ty::I32]),
        _ => Err(operands("a rank-2 tensor and a `Tensor<i32, 1>` of offsets", args)),
    }
}

pub(super) fn ragged_tile(args: &[Ty]) -> Types {
    match tensor(args)? {
        (_, 2, [Ty::Tensor(Elem::I32, 1), Ty::I32]) => Ok(vec![Ty::I32; 3]),
        _ => Err(operands("a rank-2 tensor, a `Tensor<i32, 1>` of offsets and a number", args)),
    }
}

fn tensor(args: &[Ty]) -> Result<(Elem, u8, &[Ty]), TypeError> {
    match args {
        [Ty::Tensor(e, r), rest @ ..] => Ok((*e, *r, rest)),
        _ => Err(operands("a tensor first", args)),
    }
}

/// Splits off the last operand.
fn last(rest: &[Ty]) -> (&[Ty], Option<Ty>) {
    match rest {
        [init @ .., last] => (init, Some(*last)),
        [] => (rest, None),
    }
}

/// Checks that `rest` is one `i32` index for each axis.
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

/// Checks that `rest` is one index for each axis and then a tile of the tensor's element type.
fn stored(rest: &[Ty], rank: usize, e: Elem, args: &[Ty]) -> Result<(), TypeError> {
    match rest {
        [ix @ .., Ty::Tile(t, shape)] => {
            same_rank(*shape, rank)?;
            counted(ix, rank, args)?;
            if *t == e { Ok(()) } else { Err(mismatch(&[args[0], Ty::Tile(*t, *shape)])) }
        }
        _ => Err(operands("a tile last", args)),
    }
}

/// Checks that `ix` is an index tile or a scalar for each leading axis, followed by a scalar column.
fn row_indices(ix: &[Ty], rank: usize, rows: i32, args: &[Ty]) -> Result<(), TypeError> {
    if rank < 2 || ix.len() != rank {
        return Err(operands("an index for each leading axis and a column", args));
    }
    let fits = ix[..rank - 1].iter().all(|t| match t {
        Ty::Scalar(Elem::I32) => true,
        Ty::Tile(Elem::I32, s) => s[..] == [rows],
        Ty::Scalar(_)
        | Ty::Tile(..)
        | Ty::Tensor(..)
        | Ty::Source(..)
        | Ty::Smem(..)
        | Ty::Compute(..)
        | Ty::Acc(..)
        | Ty::Token(..)
        | Ty::Barrier(_) => false,
    });
    if !fits {
        return Err(operands("`i32` scalars or `Tile<i32, N>` as row indices", args));
    }
    all_i32(&ix[rank - 1..])
}

/// The shape of the index tiles `ix`: one for each axis, all of one shape.
fn lanes(ix: &[Ty], rank: usize, args: &[Ty]) -> Result<TileShape, TypeError> {
    match ix {
        [Ty::Tile(Elem::I32, s), ..] if ix.len() == rank && ix.iter().all(|t| t == &ix[0]) => Ok(*s),
        _ => Err(operands("one `i32` index tile per axis, all of one shape", args)),
    }
}

pub(super) fn atomic_elem(e: Elem) -> Types {
    let ok = e.is_arith() && (e.bits() >= 16 || e.is_float());
    if ok { Ok(vec![]) } else { Err(not_for("an atomic", e)) }
}

fn atomic_bits(e: Elem) -> Types {
    if e.is_int() && e.is_arith() && e.bits() >= 16 { Ok(vec![]) } else { Err(not_for("an atomic of bits", e)) }
}

pub(super) fn whole_bytes(e: Elem) -> Types {
    if e.bits() >= 8 { Ok(vec![]) } else { Err(not_for("a scatter", e)) }
}
