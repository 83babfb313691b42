//! Result types of pipeline operations. Whether they agree with the declared tiles of a ring's stages is checked by the verifier.

use super::infer::{TypeError, all_i32, operands, tile};
use super::infer_memory as memory;
use super::ttg::{Token, TtgOp};
use super::{BarrierTy, Elem, OpKind, Pipe, Ty, infer::infer};
use crate::diag::Code;

type Types = Result<Vec<Ty>, TypeError>;

/// The result types of an operation of the dialect.
pub(super) fn ttg(op: &TtgOp, args: &[Ty]) -> Types {
    match op {
        TtgOp::Source(_, shape) => memory::load(*shape, args).map(sources),
        TtgOp::SourceRows { rows, width } => memory::gather_rows(*rows, *width, args).map(sources),
        TtgOp::Acquire(pipe) => clocked(Ty::Token(Token::Slot, *pipe), args),
        TtgOp::Ready(pipe) => clocked(Ty::Token(Token::Ready, *pipe), args),
        TtgOp::AsyncProduce { skipped, .. } => produce(skipped.is_some(), args),
        TtgOp::Fill(_) => token(args, Token::Slot, "the slot to fill").map(|_| vec![]),
        TtgOp::WaitReady => next(args, Token::Ready, Token::Stage, "the pending wait of `ready`"),
        TtgOp::Poisoned => token(args, Token::Stage, "the stage").map(|_| vec![Ty::BOOL]),
        TtgOp::ReadPerm => next(args, Token::Stage, Token::Rperm, "the stage"),
        TtgOp::Split(parts) => match token(args, Token::Rperm, "the permission to read")? {
            pipe if (2..=16).contains(parts) => Ok(vec![Ty::Token(Token::Part, pipe); usize::from(*parts)]),
            _ => Err(wrong(format!("a read permission is split into 2 to 16 parts, not {parts}"))),
        },
        TtgOp::Join => match args {
            [Ty::Token(Token::Part, pipe), _, ..] if args.iter().all(|a| a == &args[0]) => {
                Ok(vec![Ty::Token(Token::Rperm, *pipe)])
            }
            _ => Err(operands("the parts of one read permission", args)),
        },
        TtgOp::View { elem, shape, .. } => match args {
            [Ty::Token(Token::Rperm | Token::Part, _)] => {
                tile(*elem, Some(*shape)).map(|_| vec![Ty::Smem(*elem, *shape)])
            }
            _ => Err(operands("the permission to read a stage", args)),
        },
        TtgOp::Read => match args {
            [Ty::Smem(e, s)] => Ok(vec![Ty::Tile(*e, *s)]),
            _ => Err(operands("a tile in shared memory", args)),
        },
        TtgOp::Consumed => match args {
            [Ty::Token(Token::Rperm | Token::Stage, pipe)] => Ok(vec![Ty::Token(Token::Consumed, *pipe)]),
            _ => Err(operands("the stage, or the whole permission to read it", args)),
        },
        TtgOp::Release => token(args, Token::Consumed, "the result of `consumed`").map(|_| vec![]),
        TtgOp::ComputeIssue | TtgOp::ComputeWait | TtgOp::AccStart(_) | TtgOp::AccMma | TtgOp::AccFinish => {
            compute(op, args)
        }
        TtgOp::Write => match args {
            [Ty::Token(Token::Slot, pipe), rest @ ..]
                if !rest.is_empty() && rest.iter().all(|t| matches!(t, Ty::Tile(..))) =>
            {
                Ok(vec![Ty::Token(Token::Written, *pipe)])
            }
            _ => Err(operands("a slot and the tiles to fill it with", args)),
        },
        TtgOp::StoreIssue(_) => store(args),
        TtgOp::StoreWait => token(args, Token::Store, "the store").map(|_| vec![]),
        TtgOp::Roles | TtgOp::Finalize | TtgOp::Fence { .. } => match args {
            [] => Ok(vec![]),
            _ => Err(operands("nothing", args)),
        },
        TtgOp::Claim(..) => match args {
            [Ty::Barrier(BarrierTy::Region), Ty::I32] | [Ty::Barrier(BarrierTy::Region), Ty::I32, Ty::I32] => {
                Ok(vec![])
            }
            _ => Err(operands(
                "the memory of a ring, a slot, and the number of rounds if several roles use the ring",
                args,
            )),
        },
        TtgOp::Rematerialize => match args {
            [t @ (Ty::Scalar(_) | Ty::Tile(..))] => Ok(vec![*t]),
            _ => Err(operands("one scalar or tile", args)),
        },
    }
}

fn wrong(message: String) -> TypeError {
    TypeError { code: Code::Operands, message, help: None }
}

/// The types of the sources of tiles with these types.
fn sources(types: Vec<Ty>) -> Vec<Ty> {
    let source = |ty: Ty| ty.tile_shape().map_or(ty, |s| Ty::Source(ty.elem(), s));
    types.into_iter().map(source).collect()
}

/// The result type of an operation that advances a clock. It may have the ring time as an operand, which the verifier checks.
fn clocked(result: Ty, args: &[Ty]) -> Types {
    all_i32(args)?;
    if args.len() <= 1 { Ok(vec![result]) } else { Err(operands("nothing, or the time", args)) }
}

fn token(args: &[Ty], wanted: Token, what: &str) -> Result<Pipe, TypeError> {
    match args {
        [Ty::Token(found, pipe)] if *found == wanted => Ok(*pipe),
        _ => Err(operands(what, args)),
    }
}

fn next(args: &[Ty], from: Token, to: Token, what: &str) -> Types {
    token(args, from, what).map(|pipe| vec![Ty::Token(to, pipe)])
}

fn produce(conditional: bool, args: &[Ty]) -> Types {
    let sources = match args {
        [Ty::Token(Token::Slot, _), rest @ .., Ty::BOOL] if conditional => rest,
        [Ty::Token(Token::Slot, _), rest @ ..] if !conditional => rest,
        _ => return Err(operands("a slot, what to copy and, if it may be skipped, a condition", args)),
    };
    // What was fetched is there already, so that nothing of it can be skipped.
    let is_copied = |ty: &Ty| matches!(ty, Ty::Source(..)) || !conditional && matches!(ty, Ty::Tile(..));
    let fits = !sources.is_empty() && sources.iter().all(is_copied);
    if fits { Ok(vec![]) } else { Err(operands("a slot and what to copy", args)) }
}

/// Result types of asynchronous MMAs, which follow from those of `mma`.
fn compute(op: &TtgOp, args: &[Ty]) -> Types {
    let tiles = |args: &[Ty]| -> Vec<Ty> {
        let of = |t: &Ty| if let Ty::Smem(e, s) = t { Ty::Tile(*e, *s) } else { *t };
        args.iter().map(of).collect()
    };
    match (op, args) {
        (TtgOp::ComputeIssue, [_, Ty::Smem(..), Ty::Tile(e, s)]) => {
            infer(&OpKind::Mma, &tiles(args)).map(|_| vec![Ty::Compute(*e, *s)])
        }
        (TtgOp::ComputeIssue, _) => {
            Err(operands("two operands, the second in shared memory, and an accumulator", args))
        }
        (TtgOp::ComputeWait, [Ty::Compute(e, s)]) => Ok(vec![Ty::Tile(*e, *s)]),
        (TtgOp::ComputeWait, _) => Err(operands("an MMA in flight", args)),
        (TtgOp::AccStart(keep), [Ty::Tile(e, s)]) => Ok(vec![Ty::Acc(*e, *s, *keep)]),
        (TtgOp::AccStart(_), _) => Err(operands("a tile to start from", args)),
        (TtgOp::AccMma, [acc @ Ty::Acc(e, s, _), Ty::Token(Token::Rperm, _), a, b @ Ty::Smem(..)]) => {
            infer(&OpKind::Mma, &tiles(&[*a, *b, Ty::Tile(*e, *s)])).map(|_| vec![*acc])
        }
        (TtgOp::AccMma, _) => Err(operands(
            "an accumulator, the permission to read a stage, and two operands, the second from the stage",
            args,
        )),
        (TtgOp::AccFinish, [Ty::Acc(e, s, _)]) => Ok(vec![Ty::Tile(*e, *s)]),
        (_, _) => Err(operands("an accumulator", args)),
    }
}

fn store(args: &[Ty]) -> Types {
    match args {
        [Ty::Tensor(_, rank), indices @ .., Ty::Token(Token::Written, pipe)] if indices.len() == usize::from(*rank) => {
            all_i32(indices)?;
            Ok(vec![Ty::Token(Token::Store, *pipe)])
        }
        _ => Err(operands("a tensor, an index for each of its axes and a slot that was written", args)),
    }
}

/// The element type and shape of an operand of an MMA, in registers or shared memory.
pub(super) const fn operand(ty: Ty) -> Option<(Elem, super::TileShape)> {
    match ty {
        Ty::Tile(e, s) | Ty::Smem(e, s) => Some((e, s)),
        Ty::Scalar(_)
        | Ty::Tensor(..)
        | Ty::Source(..)
        | Ty::Compute(..)
        | Ty::Acc(..)
        | Ty::Token(..)
        | Ty::Barrier(_) => None,
    }
}
