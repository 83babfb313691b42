//! Result types of parts of tiles and of tiles that are put together.

use super::infer::{TypeError, bad_axis, describe, mismatch, operands, tile};
use super::{TileShape, Ty};
use crate::diag::Code;

type Types = Result<Vec<Ty>, TypeError>;

/// The elements `from .. from + n` along an axis.
pub(super) fn cut(axis: u8, (from, n): (i32, i32), args: &[Ty]) -> Types {
    let [Ty::Tile(e, s)] = args else { return Err(operands("a tile", args)) };
    let mut dims = s.to_vec();
    let Some(extent) = dims.get_mut(usize::from(axis)) else { return Err(bad_axis(axis, s.rank())) };
    let end = i64::from(from) + i64::from(n);
    if from < 0 || n < 1 || end > i64::from(*extent) {
        let message =
            format!("elements {from} to {} along axis {axis} of {}, which has {extent}", end - 1, describe(args[0]));
        return Err(TypeError::new(Code::TilePart, message).help("a part is inside of its tile"));
    }
    *extent = n;
    Ok(vec![tile(*e, TileShape::new(&dims))?])
}

/// Two tiles that differ in their extents along one axis only.
pub(super) fn concat(axis: u8, args: &[Ty]) -> Types {
    let [Ty::Tile(e, a), Ty::Tile(f, b)] = args else { return Err(operands("two tiles", args)) };
    if e != f || a.rank() != b.rank() {
        return Err(mismatch(args));
    }
    let axis_of = usize::from(axis);
    let mut dims = a.to_vec();
    let (Some(extent), Some(more)) = (dims.get_mut(axis_of), b.get(axis_of)) else {
        return Err(bad_axis(axis, a.rank()));
    };
    *extent = extent.saturating_add(*more);
    if (0..a.rank()).any(|other| other != axis_of && a[other] != b[other]) {
        return Err(mismatch(args));
    }
    Ok(vec![tile(*e, TileShape::new(&dims))?])
}
