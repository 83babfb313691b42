//! Tile numbers in loops over the tiles of an extent, such as `for k in pipelined(0..cdiv(K, 64))`.
//!
//! Such a number is not negative and at most a few tiles behind the last one, if the loop copies ahead. So the coordinate of the
//! tile, a product, exceeds the extent by so little that `extent - coordinate` does not wrap, and needs no check of its own.
//!
//! ```text
//! %NK = cdiv(%K, 64)
//! for %k = 0 to %NK step 1 {
//!     %next = add %k, 3            0 ≤ %next < cdiv(%K, 64) + 3, so %K - 64 · %next ≥ -255
//!     %more = lt %k, sub(%NK, 3)   if false, %next ≥ cdiv(%K, 64): tile %next has no element
//! }
//! ```
//!
//! Deliberately absent: extents that are not those of a tensor (they may be negative), tiles of one element (then `cdiv` may be
//! 2³¹ - 1, and sums wrap), and numbers that loops carry.

use super::uses::Tree;
use crate::ir::{BinOp, Def, Elem, Kernel, OpKind, Pred, Value};

/// `cdiv(extent, tile)`, for the extent of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The extent, as the operation `dim` gives it.
    pub extent: Value,
    /// The extent of a tile, at least 2.
    pub tile: u32,
}

/// The furthest that a number may be behind the last tile.
const MOST_BEYOND: i64 = 64;

/// The counts of tiles, in front of each of which a number is: `0 ≤ number < cdiv(extent, tile) + 64`.
#[must_use]
pub fn counts_near(kernel: &Kernel, tree: &Tree, number: Value) -> Vec<Count> {
    let (index, ahead) = plus_constant(kernel, number);
    let Def::BlockArg(block, 0) = kernel.value(index).def else { return Vec::new() };
    let looped = tree.owner(block).map(|id| kernel.op(id)).filter(|op| matches!(op.kind, OpKind::For(_)));
    let Some([from, to, step, ..]) = looped.map(|op| op.args.as_slice()) else { return Vec::new() };
    let constant = |value: Value| kernel.int_constant(value).unwrap_or(-1);
    if constant(*from) < 0 || constant(*step) < 1 || !(0..=MOST_BEYOND).contains(&ahead) {
        return Vec::new();
    }
    counts_above(kernel, *to)
}

/// Whether a tile that begins at a number has no element where a condition is false, and of which tiles that is so.
#[must_use]
pub fn empty_unless(kernel: &Kernel, tree: &Tree, condition: Value, number: Value) -> Option<Count> {
    let compared = kernel.def_op(condition).filter(|op| op.kind == OpKind::Cmp(Pred::Lt))?;
    let [less, limit] = compared.args[..] else { return None };
    let (limit, behind) = minus_constant(kernel, limit);
    let ((of_number, ahead), (of_less, before)) = (plus_constant(kernel, number), plus_constant(kernel, less));
    let count = count(kernel, limit)?;
    // Neither side of the comparison wraps, nor does the number.
    let small = [behind, ahead, before].iter().all(|n| (0..=MOST_BEYOND).contains(n));
    let bounded = !counts_near(kernel, tree, number).is_empty() && !counts_near(kernel, tree, less).is_empty();
    // False: less ≥ count - behind, so number = less - before + ahead ≥ count.
    (small && bounded && of_number == of_less && ahead - before >= behind).then_some(count)
}

/// The counts that a value is at most.
fn counts_above(kernel: &Kernel, value: Value) -> Vec<Count> {
    match kernel.def_op(value) {
        Some(op) if op.kind == OpKind::Binary(BinOp::Min) => {
            op.args.iter().flat_map(|side| counts_above(kernel, *side)).collect()
        }
        Some(_) | None => count(kernel, value).into_iter().collect(),
    }
}

/// The count that a value is: `extent / tile + (extent % tile > 0)`.
fn count(kernel: &Kernel, value: Value) -> Option<Count> {
    let args = |value: Value, kind: OpKind| kernel.def_op(value).filter(|op| op.kind == kind).map(|op| &op.args[..]);
    let [whole, more] = args(value, OpKind::Binary(BinOp::Add))? else { return None };
    let [extent, tile] = args(*whole, OpKind::Binary(BinOp::Div))? else { return None };
    let [more] = args(*more, OpKind::Cast(Elem::I32))? else { return None };
    let [rest, zero] = args(*more, OpKind::Cmp(Pred::Gt)).or_else(|| args(*more, OpKind::Cmp(Pred::Ne)))? else {
        return None;
    };
    let [of, by] = args(*rest, OpKind::Binary(BinOp::Rem))? else { return None };
    let divisor = kernel.int_constant(*tile)?;
    let is_count = of == extent && kernel.int_constant(*by) == Some(divisor) && kernel.int_constant(*zero) == Some(0);
    let is_extent = matches!(kernel.def_op(*extent)?.kind, OpKind::Dim(_));
    let tile = u32::try_from(divisor).ok().filter(|tile| *tile >= 2 && is_count && is_extent)?;
    Some(Count { extent: *extent, tile })
}

/// A value as another one plus a constant.
fn plus_constant(kernel: &Kernel, value: Value) -> (Value, i64) {
    let Some(op) = kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(BinOp::Add)) else { return (value, 0) };
    let [a, b] = op.args[..] else { return (value, 0) };
    match (kernel.int_constant(a), kernel.int_constant(b)) {
        (_, Some(n)) => (a, n),
        (Some(n), None) => (b, n),
        (None, None) => (value, 0),
    }
}

/// A value as another one minus a constant.
fn minus_constant(kernel: &Kernel, value: Value) -> (Value, i64) {
    let Some(op) = kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(BinOp::Sub)) else { return (value, 0) };
    let [a, b] = op.args[..] else { return (value, 0) };
    kernel.int_constant(b).map_or((value, 0), |n| (a, n))
}

#[cfg(test)]
mod tests;
