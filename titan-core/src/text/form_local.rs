//! The text form of the operations of laid-out kernels. The parser handles `ttg.local.fold_with`, which has a block.

use super::form::{Head, HeadError, narrow};
use crate::ir::{ArgOp, Fold, LocalOp, ReduceOp, Ty};

/// The integers in angle brackets.
pub(super) fn attributes(op: LocalOp) -> Vec<i64> {
    match op {
        LocalOp::Slice { axis, n } => vec![i64::from(axis), i64::from(n)],
        LocalOp::Fold { axis, parts, .. } => vec![i64::from(axis), i64::from(parts)],
        LocalOp::Alloc { .. }
        | LocalOp::Store
        | LocalOp::Load
        | LocalOp::Copy { .. }
        | LocalOp::Guard
        | LocalOp::Stack
        | LocalOp::Reshape(_)
        | LocalOp::Mma
        | LocalOp::Convert => {
            vec![]
        }
    }
}

/// The operation with a mnemonic; `None` if it is of another dialect.
pub(super) fn kind(name: &str, head: &Head<'_>) -> Option<Result<LocalOp, HeadError>> {
    let fold = |f| {
        let [axis, parts] = head.ints("the axis and the parts of a line")?;
        Ok(LocalOp::Fold { f, axis: narrow(axis)?, parts: narrow(parts)? })
    };
    let bare = |op| head.ints::<0>("nothing").map(|[]| op);
    let kind = match name {
        "ttg.local.alloc" => match head.ty {
            Some(Ty::Smem(elem, shape)) => bare(LocalOp::Alloc { elem, shape }),
            Some(_) | None => Err(HeadError::NeedsType("as in `smem<64x64xf16>`")),
        },
        "ttg.local.store" => bare(LocalOp::Store),
        "ttg.local.load" => bare(LocalOp::Load),
        "ttg.local.copy" => bare(LocalOp::Copy { asynchronous: false }),
        "ttg.local.copy_async" => bare(LocalOp::Copy { asynchronous: true }),
        "ttg.local.guard" => bare(LocalOp::Guard),
        "ttg.local.stack" => bare(LocalOp::Stack),
        "ttg.local.mma" => bare(LocalOp::Mma),
        "ttg.local.reshape" => match head.ty {
            Some(Ty::Smem(_, shape)) => bare(LocalOp::Reshape(shape)),
            Some(_) | None => Err(HeadError::NeedsType("as in `smem<64x64xf16>`")),
        },
        "ttg.local.convert" => bare(LocalOp::Convert),
        "ttg.local.slice" => head
            .ints("the axis and its extent")
            .and_then(|[axis, n]| Ok(LocalOp::Slice { axis: narrow(axis)?, n: narrow(n)? })),
        "ttg.local.fold_sum" => fold(Fold::Plain(ReduceOp::Sum)),
        "ttg.local.fold_prod" => fold(Fold::Plain(ReduceOp::Prod)),
        "ttg.local.fold_max" => fold(Fold::Plain(ReduceOp::Max)),
        "ttg.local.fold_min" => fold(Fold::Plain(ReduceOp::Min)),
        "ttg.local.fold_argmax" => fold(Fold::Arg(ArgOp::Max)),
        "ttg.local.fold_argmin" => fold(Fold::Arg(ArgOp::Min)),
        "ttg.local.fold_with" => fold(Fold::With),
        _ => return None,
    };
    if head.named.is_empty() { Some(kind) } else { Some(Err(HeadError::Named(""))) }
}
