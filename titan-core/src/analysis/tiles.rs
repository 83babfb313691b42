//! Tile numbers in loops over the tiles of an extent, such as `for k in pipelined(0..cdiv(K, 64))`.
//!
//! Such a number is not negative, and exceeds the last tile by at most a few, if the loop prefetches. So the coordinate of the tile, a
//! product, exceeds the extent by so little that `extent - coordinate` does not overflow, and needs no check for that.
//!
//! ```text
//! %NK = cdiv(%K, 64)
//! for %k = 0 to %NK step 1 {
//!     %next = add %k, 3            0 ≤ %next < cdiv(%K, 64) + 3, so %K - 64 · %next ≥ -255
//!     %more = lt %k, sub(%NK, 3)   if false, %next ≥ cdiv(%K, 64): tile %next has no element
//! }
//! ```
//!
//! Deliberately absent: extents that are not those of a tensor (they may be negative), tiles of one element (`cdiv` may then be 2³¹ - 1,
//! and sums overflow), and numbers that loops carry.

use super::uses::Tree;
use crate::ir::{BinOp, Def, Elem, Kernel, OpKind, Pred, Value};

/// `cdiv(extent, tile)`, for the extent of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The extent, a result of the operation `dim`.
    pub extent: Value,
    /// The extent of a tile, at least 2.
    pub tile: u32,
}

/// The maximum number of tiles by which a number may exceed the last tile.
const MOST_BEYOND: i64 = 64;

/// The counts of tiles to which a number is near: `0 ≤ number < cdiv(extent, tile) + 64`.
#[must_use]
pub fn counts_near(kernel: &Kernel, tree: &Tree, number: Value) -> Vec<Count> {
    let (index, ahead) = plus_constant(kernel, number);
    match bounds_of(kernel, tree, index) {
        Some((_, to)) if (0..=MOST_BEYOND).contains(&ahead) => counts_above(kernel, to),
        Some(_) | None => Vec::new(),
    }
}

/// The extents and tiles for which a number is that of a tile completely inside the extent: `0 ≤ number < extent / tile`.
#[must_use]
pub fn whole(kernel: &Kernel, tree: &Tree, number: Value) -> Vec<Count> {
    let (index, ahead) = plus_constant(kernel, number);
    let Some((from, to)) = bounds_of(kernel, tree, index).filter(|_| (0..=MOST_BEYOND).contains(&ahead)) else {
        return Vec::new();
    };
    let (mut open, mut found) = (vec![to], Vec::new());
    while let Some(value) = open.pop() {
        // An index below a minimum is below both of its operands.
        if let Some(sides) = sides(kernel, BinOp::Min, value) {
            open.extend(sides);
            continue;
        }
        // An index below `max(from, x)` that is not below `from` is below `x`.
        if let Some([a, b]) = sides(kernel, BinOp::Max, value).as_deref() {
            open.extend(if *a == from { Some(*b) } else { None });
            continue;
        }
        let (quotient, behind) = minus_constant(kernel, value);
        let division = kernel.def_op(quotient).filter(|op| op.kind == OpKind::Binary(BinOp::Div));
        if let Some([extent, tile]) = division.map(|op| &op.args[..])
            && let Some(tile) = kernel.int_constant(*tile).and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= 2)
            && (ahead..=MOST_BEYOND).contains(&behind)
            && is_extent(kernel, *extent)
        {
            found.push(Count { extent: *extent, tile });
        }
    }
    found
}

/// The bounds of the loop of which a value is the index, if the loop starts at a non-negative number and has a positive step.
fn bounds_of(kernel: &Kernel, tree: &Tree, index: Value) -> Option<(Value, Value)> {
    let Def::BlockArg(block, 0) = kernel.value(index).def else { return None };
    let looped = kernel.op(tree.owner(block)?);
    let (OpKind::For(_), [from, to, step, ..]) = (&looped.kind, &looped.args[..]) else { return None };
    let is_positive = kernel.int_constant(*step).is_some_and(|step| step > 0);
    (is_positive && starts_at_zero_or_later(kernel, *from, *to)).then_some((*from, *to))
}

/// Whether a value is a non-negative constant, or a sum of two small ones.
#[must_use]
pub fn is_natural(kernel: &Kernel, value: Value) -> bool {
    let within = |value: Value, most: i64| kernel.int_constant(value).is_some_and(|n| (0..=most).contains(&n));
    let sum = kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(BinOp::Add));
    within(value, i64::from(i32::MAX)) || sum.is_some_and(|op| op.args.iter().all(|v| within(*v, 1 << 16)))
}

/// Whether the first index of a loop is not negative: a constant, or `min(to, max(constant, ..))`, which is `to` or not negative.
fn starts_at_zero_or_later(kernel: &Kernel, from: Value, to: Value) -> bool {
    if is_natural(kernel, from) {
        return true;
    }
    let is_large =
        |value: &Value| sides(kernel, BinOp::Max, *value).is_some_and(|of| of.iter().any(|v| is_natural(kernel, *v)));
    sides(kernel, BinOp::Min, from).is_some_and(|of| of.contains(&to) && of.iter().any(is_large))
}

/// Whether the tile with a number has no element inside the extent if a condition is false; returns the extents and tiles for which this
/// holds.
#[must_use]
pub fn empty_unless(kernel: &Kernel, tree: &Tree, condition: Value, number: Value) -> Option<Count> {
    let compared = kernel.def_op(condition).filter(|op| op.kind == OpKind::Cmp(Pred::Lt))?;
    let [less, limit] = compared.args[..] else { return None };
    let (limit, behind) = minus_constant(kernel, limit);
    let ((of_number, ahead), (of_less, before)) = (plus_constant(kernel, number), plus_constant(kernel, less));
    let count = count(kernel, limit)?;
    // Neither side of the comparison overflows, nor does the number.
    let small = [behind, ahead, before].iter().all(|n| (0..=MOST_BEYOND).contains(n));
    let bounded = !counts_near(kernel, tree, number).is_empty() && !counts_near(kernel, tree, less).is_empty();
    // If it is false, `less ≥ count - behind`, so `number = less - before + ahead ≥ count`.
    (small && bounded && of_number == of_less && ahead - before >= behind).then_some(count)
}

/// The counts that are at least a value; a count increases with the value that is divided.
fn counts_above(kernel: &Kernel, value: Value) -> Vec<Count> {
    if let Some(sides) = sides(kernel, BinOp::Min, value) {
        return sides.iter().flat_map(|side| counts_above(kernel, *side)).collect();
    }
    let Some((counted, tile)) = tiles(kernel, value) else { return Vec::new() };
    let (mut open, mut found) = (vec![counted], Vec::new());
    while let Some(counted) = open.pop() {
        match sides(kernel, BinOp::Min, counted) {
            Some(sides) => open.extend(sides),
            None if is_extent(kernel, counted) => found.push(Count { extent: counted, tile }),
            None => {}
        }
    }
    found
}

/// The count that a value is, if it is one.
fn count(kernel: &Kernel, value: Value) -> Option<Count> {
    let (extent, tile) = tiles(kernel, value)?;
    is_extent(kernel, extent).then_some(Count { extent, tile })
}

/// The number of tiles of at least two elements that cover `x`: `x` and the tile's extent.
fn tiles(kernel: &Kernel, value: Value) -> Option<(Value, u32)> {
    cdiv(kernel, value).filter(|(_, tile)| *tile >= 2)
}

/// `x` and `y` of `x / y + (x % y > 0)`, with a positive constant `y`. If `x` is negative, the result is negative or 0.
pub(super) fn cdiv(kernel: &Kernel, value: Value) -> Option<(Value, u32)> {
    let args = |value: Value, kind: OpKind| kernel.def_op(value).filter(|op| op.kind == kind).map(|op| &op.args[..]);
    let [whole, more] = args(value, OpKind::Binary(BinOp::Add))? else { return None };
    let [x, y] = args(*whole, OpKind::Binary(BinOp::Div))? else { return None };
    let [more] = args(*more, OpKind::Cast(Elem::I32))? else { return None };
    let [rest, zero] = args(*more, OpKind::Cmp(Pred::Gt)).or_else(|| args(*more, OpKind::Cmp(Pred::Ne)))? else {
        return None;
    };
    let [of, by] = args(*rest, OpKind::Binary(BinOp::Rem))? else { return None };
    let divisor = kernel.int_constant(*y)?;
    let is_cdiv = of == x && kernel.int_constant(*by) == Some(divisor) && kernel.int_constant(*zero) == Some(0);
    // With `!=`, negative remainders would be rounded up too.
    let rounds_up = matches!(kernel.def_op(*more)?.kind, OpKind::Cmp(Pred::Gt)) || is_extent(kernel, *x);
    let tile = u32::try_from(divisor).ok().filter(|tile| *tile >= 1 && is_cdiv && rounds_up)?;
    Some((*x, tile))
}

/// Whether a value is the extent of a tensor or view.
fn is_extent(kernel: &Kernel, value: Value) -> bool {
    kernel.def_op(value).is_some_and(|op| matches!(op.kind, OpKind::Dim(_)))
}

/// The operands of a minimum or maximum, if the value is one.
fn sides(kernel: &Kernel, of: BinOp, value: Value) -> Option<Vec<Value>> {
    kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(of)).map(|op| op.args.clone())
}

/// A value as the sum of another one and a constant.
fn plus_constant(kernel: &Kernel, value: Value) -> (Value, i64) {
    let Some(op) = kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(BinOp::Add)) else { return (value, 0) };
    let [a, b] = op.args[..] else { return (value, 0) };
    match (kernel.int_constant(a), kernel.int_constant(b)) {
        (_, Some(n)) => (a, n),
        (Some(n), None) => (b, n),
        (None, None) => (value, 0),
    }
}

/// A value as the difference of another one and a constant.
fn minus_constant(kernel: &Kernel, value: Value) -> (Value, i64) {
    let Some(op) = kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(BinOp::Sub)) else { return (value, 0) };
    let [a, b] = op.args[..] else { return (value, 0) };
    kernel.int_constant(b).map_or((value, 0), |n| (a, n))
}
