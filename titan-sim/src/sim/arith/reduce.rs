//! Reductions and scans along an axis, in the order of the axis.

use super::float::round;
use super::shape::along;
use super::{binary, compare};
use crate::sim::value::{Cells, Num};
use titan_core::ir::{ArgOp, BinOp, Elem, Pred, ReduceOp, TileShape};

/// One step of a reduction, `a op b`, in the accumulator's type.
fn step(op: ReduceOp, elem: Elem, a: Num, b: Num) -> Num {
    let bin = match op {
        ReduceOp::Sum => BinOp::Add,
        ReduceOp::Prod => BinOp::Mul,
        ReduceOp::Max => BinOp::Max,
        ReduceOp::Min => BinOp::Min,
    };
    binary(bin, elem.accumulator(), a, b)
}

fn finish(elem: Elem, x: Num) -> Num {
    match x {
        Num::Float(x) => Num::Float(round(elem, x)),
        Num::Int(v) => Num::Int(v),
    }
}

/// The element that leaves every result as it is. For extremes of floats it is NaN, which loses against every number.
pub(in crate::sim) fn neutral(op: ReduceOp, elem: Elem) -> Num {
    let numbers = |float: f64, int: i64| if elem.is_float() { Num::Float(float) } else { Num::Int(int) };
    match op {
        ReduceOp::Sum => numbers(-0.0, 0),
        ReduceOp::Prod => numbers(1.0, 1),
        ReduceOp::Max => worst(ArgOp::Max, elem),
        ReduceOp::Min => worst(ArgOp::Min, elem),
    }
}

/// The element that every other one is better than: NaN, or the integer at the other end.
pub(in crate::sim) fn worst(op: ArgOp, elem: Elem) -> Num {
    if elem.is_float() {
        return Num::Float(f64::NAN);
    }
    let bits = elem.bits();
    let (least, greatest) = if elem.is_signed_int() {
        (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))
    } else {
        // Integers of 64 bits without a sign are held by their bits.
        (0, if bits == 64 { -1 } else { (1 << bits) - 1 })
    };
    Num::Int(match op {
        ArgOp::Max => least,
        ArgOp::Min => greatest,
    })
}

/// The row-major numbers of the elements of each line along an axis; lines are in row-major order of the remaining axes.
fn lines(shape: TileShape, axis: usize) -> impl Iterator<Item = Vec<usize>> {
    let (outer, n, inner) = along(shape, axis);
    (0..outer).flat_map(move |o| (0..inner).map(move |i| (0..n).map(|j| (o * n + j) * inner + i).collect()))
}

/// Reduces along an axis, which disappears.
pub(in crate::sim) fn reduce(op: ReduceOp, elem: Elem, cells: &Cells, shape: TileShape, axis: usize) -> Cells {
    let line = |line: Vec<usize>| {
        let mut nums = line.into_iter().map(|i| cells.get(i));
        let first = nums.next().unwrap_or(Num::Int(0));
        finish(elem, nums.fold(first, |a, b| step(op, elem, a, b)))
    };
    Cells::collect(elem, lines(shape, axis).map(line))
}

/// The extremum along an axis, and the first index at which it occurs.
pub(in crate::sim) fn arg_reduce(
    op: ArgOp,
    elem: Elem,
    cells: &Cells,
    shape: TileShape,
    axis: usize,
) -> (Cells, Cells) {
    let pred = match op {
        ArgOp::Max => Pred::Gt,
        ArgOp::Min => Pred::Lt,
    };
    let is_nan = |n: Num| matches!(n, Num::Float(x) if x.is_nan());
    let best = |line: Vec<usize>| {
        let mut best = 0;
        for j in 1..line.len() {
            let (new, old) = (cells.get(line[j]), cells.get(line[best]));
            if compare(pred, elem, new, old) || (is_nan(old) && !is_nan(new)) {
                best = j;
            }
        }
        (cells.get(line.get(best).copied().unwrap_or(0)), i64::try_from(best).unwrap_or(0))
    };
    let found: Vec<(Num, i64)> = lines(shape, axis).map(best).collect();
    let values = Cells::collect(elem, found.iter().map(|(x, _)| *x));
    (values, Cells::Int(found.into_iter().map(|(_, i)| i).collect()))
}

/// The inclusive scan along an axis: each element is combined with all before it.
pub(in crate::sim) fn scan(op: ReduceOp, elem: Elem, cells: &Cells, shape: TileShape, axis: usize) -> Cells {
    let mut out = vec![Num::Int(0); cells.len()];
    for line in lines(shape, axis) {
        let mut sum = None;
        for i in line {
            let next = sum.map_or(cells.get(i), |s| step(op, elem, s, cells.get(i)));
            (sum, out[i]) = (Some(next), finish(elem, next));
        }
    }
    Cells::collect(elem, out.into_iter())
}

/// Reduces along an axis with a function, starting with `init`; otherwise as [`reduce`].
///
/// # Errors
/// The errors of the function.
pub(in crate::sim) fn reduce_with<E>(
    elem: Elem,
    cells: &Cells,
    (shape, axis): (TileShape, usize),
    init: Num,
    mut f: impl FnMut(Num, Num) -> Result<Num, E>,
) -> Result<Cells, E> {
    let mut out = Vec::new();
    for line in lines(shape, axis) {
        let mut sum = init;
        for i in line {
            sum = f(sum, cells.get(i))?;
        }
        out.push(sum);
    }
    Ok(Cells::collect(elem, out.into_iter()))
}

/// Scans along an axis with a function, starting with `init`; otherwise as [`scan`].
///
/// # Errors
/// The errors of the function.
pub(in crate::sim) fn scan_with<E>(
    elem: Elem,
    cells: &Cells,
    (shape, axis): (TileShape, usize),
    init: Num,
    mut f: impl FnMut(Num, Num) -> Result<Num, E>,
) -> Result<Cells, E> {
    let mut out = vec![init; cells.len()];
    for line in lines(shape, axis) {
        let mut sum = init;
        for i in line {
            sum = f(sum, cells.get(i))?;
            out[i] = sum;
        }
    }
    Ok(Cells::collect(elem, out.into_iter()))
}
