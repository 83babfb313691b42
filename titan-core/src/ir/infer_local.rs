//! Result types of the operations of laid-out kernels. Whether the places of the operands agree is checked by the verifier.

use super::infer::{TypeError, all_i32, operands, tile};
use super::local::{Fold, LocalOp};
use super::{Elem, TileShape, Ty};
use crate::diag::Code;

type Types = Result<Vec<Ty>, TypeError>;

/// The result types of an operation of the dialect.
pub(super) fn local(op: LocalOp, args: &[Ty]) -> Types {
    match (op, args) {
        (LocalOp::Alloc { elem, shape }, []) => tile(elem, Some(shape)).map(|_| vec![Ty::Smem(elem, shape)]),
        (LocalOp::Store, [Ty::Tile(e, s), Ty::Smem(f, t)]) if e == f && s == t => Ok(vec![]),
        (LocalOp::Load, [Ty::Smem(e, s)]) => Ok(vec![Ty::Tile(*e, *s)]),
        (LocalOp::Copy { .. }, [Ty::Source(e, s), Ty::Smem(f, t)]) if e == f && s == t => Ok(vec![]),
        (LocalOp::Fetch { guarded: false }, [Ty::Source(e, s)]) => Ok(vec![Ty::Tile(*e, *s)]),
        (LocalOp::Fetch { guarded: true }, [Ty::Source(e, s), Ty::BOOL]) => Ok(vec![Ty::Tile(*e, *s)]),
        (LocalOp::Settle { .. }, all) if all.iter().all(|ty| matches!(ty, Ty::Smem(..))) => Ok(vec![]),
        (LocalOp::Guard, [source @ Ty::Source(..), Ty::BOOL]) => Ok(vec![*source]),
        (LocalOp::Slice { axis, n }, [of, at]) => {
            slice(*of, (axis, n)).and_then(|ty| all_i32(&[*at]).map(|()| vec![ty]))
        }
        (LocalOp::Reshape(to), [Ty::Smem(e, s)]) if to.len() == s.len() => {
            tile(*e, Some(to)).map(|_| vec![Ty::Smem(*e, to)])
        }
        (LocalOp::Mma, [Ty::Tile(_, a), Ty::Tile(_, b), Ty::Tile(acc, c)]) if is_mma(*a, *b, *c) => {
            Ok(vec![Ty::Tile(*acc, *c)])
        }
        (LocalOp::Stack, [Ty::Tile(e, s), ..]) if args.iter().all(|a| a == &args[0]) => {
            let n = i32::try_from(args.len()).unwrap_or(i32::MAX);
            tile(*e, s.with(0, n)).map(|ty| vec![ty])
        }
        (LocalOp::Convert, [ty @ Ty::Tile(..)]) => Ok(vec![*ty]),
        (LocalOp::Fold { f: Fold::Plain(_), axis, parts }, [Ty::Tile(e, s)]) => folded(*s, axis, parts, &[*e]),
        (LocalOp::Fold { f: Fold::Arg(_), axis, parts }, [Ty::Tile(e, s), Ty::Tile(Elem::I32, t)]) if s == t => {
            folded(*s, axis, parts, &[*e, Elem::I32])
        }
        (LocalOp::Fold { f: Fold::With, axis, parts }, [Ty::Tile(e, s), Ty::Scalar(f)]) if e == f => {
            folded(*s, axis, parts, &[*e])
        }
        (LocalOp::Alloc { .. }, _) => Err(operands("nothing", args)),
        (LocalOp::Store, _) => Err(operands("a tile and shared memory for it", args)),
        (LocalOp::Load, _) => Err(operands("a tile in shared memory", args)),
        (LocalOp::Copy { .. }, _) => Err(operands("a tile of a tensor and shared memory for it", args)),
        (LocalOp::Fetch { guarded: false }, _) => Err(operands("a tile of a tensor", args)),
        (LocalOp::Fetch { guarded: true }, _) => Err(operands("a tile of a tensor and a condition", args)),
        (LocalOp::Settle { .. }, _) => Err(operands("tiles in shared memory", args)),
        (LocalOp::Guard, _) => Err(operands("a tile of a tensor and a condition", args)),
        (LocalOp::Slice { .. }, _) => Err(operands("a tile and the offset of the part", args)),
        (LocalOp::Reshape(_), _) => Err(operands("a tile of as many elements in shared memory", args)),
        (LocalOp::Mma, _) => Err(operands("tiles of M × K, K × N and M × N elements", args)),
        (LocalOp::Stack, _) => Err(operands("tiles of one type", args)),
        (LocalOp::Convert, _) => Err(operands("a tile", args)),
        (LocalOp::Fold { f: Fold::Plain(_), .. }, _) => Err(operands("a tile", args)),
        (LocalOp::Fold { f: Fold::Arg(_), .. }, _) => Err(operands("a tile of values and one of indices", args)),
        (LocalOp::Fold { f: Fold::With, .. }, _) => Err(operands("a tile and a neutral element", args)),
    }
}

/// Whether these are the shapes of the operands of an MMA.
fn is_mma(a: TileShape, b: TileShape, c: TileShape) -> bool {
    matches!((&a[..], &b[..], &c[..]), ([m, k], [l, n], [p, q]) if k == l && m == p && n == q)
}

fn slice(of: Ty, (axis, n): (u8, i32)) -> Result<Ty, TypeError> {
    let (Ty::Tile(elem, shape) | Ty::Smem(elem, shape)) = of else {
        return Err(operands("a tile and the offset of the part", &[of]));
    };
    let mut extents = shape.to_vec();
    let Some(extent) = extents.get_mut(usize::from(axis)) else { return Err(no_axis(axis)) };
    *extent = n;
    let Ty::Tile(elem, shape) = tile(elem, TileShape::new(&extents))? else { return Ok(of) };
    Ok(if matches!(of, Ty::Smem(..)) { Ty::Smem(elem, shape) } else { Ty::Tile(elem, shape) })
}

fn folded(shape: TileShape, axis: u8, parts: u32, elems: &[Elem]) -> Types {
    if usize::from(axis) >= shape.rank() {
        return Err(no_axis(axis));
    }
    let mut extents = shape.to_vec();
    extents.remove(usize::from(axis));
    if parts > 1 {
        extents.insert(0, i32::try_from(parts).unwrap_or(i32::MAX));
    }
    if extents.is_empty() {
        return Ok(elems.iter().map(|e| Ty::Scalar(*e)).collect());
    }
    elems.iter().map(|e| tile(*e, TileShape::new(&extents))).collect()
}

fn no_axis(axis: u8) -> TypeError {
    TypeError { code: Code::BadAxis, message: format!("there is no axis {axis}"), help: None }
}
