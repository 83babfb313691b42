//! Thresholds: the iteration below which a condition is true for every element, or a tile has no element beyond the end of its tensor.
//!
//! The sides of the condition are sums: one that increases with the loop, `c · j + r` with `0 ≤ l ≤ r ≤ h`, and one that does not, `x + r`
//! with `la ≤ r ≤ ha` and a value `x` from outside of the loop. With `s = h - la` (one more for `<`), the condition
//! `x + r ≥ c · j + r'` is true for all elements if `x ≥ c · j + s`:
//!
//! ```text
//! %key = iota<64> + %j * 64       c = 64, l = 0, h = 63
//! lt %key, %NK                    x = %NK, la = ha = 0, s = 64: holds for j < (%NK - 64) / 64 + 1 if %NK ≥ 64, else for none
//! ```
//!
//! 32-bit sums may overflow, but not in the iterations in question: `x + la` and `x + ha` are in range if `s ≤ x ≤ 2³¹ - 1 - ha`, which the
//! program checks, and then `c · j + h` is less than `x + la`; no iteration number is negative.

use crate::analysis::affine::Range;
use crate::collections::SortedSet;
use crate::ir::{BinOp, Block, Kernel, LocalOp, Op, OpKind, Pred, TtgOp, Ty, Unit, Value};
use crate::pipeline::edit::Edit;

/// The iteration below which a property holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Threshold {
    /// `(x - slack) / step + 1` if `slack ≤ x ≤ most`, else 0.
    Sum { x: Value, slack: i64, most: i64, step: i64 },
    /// `extent / tile - ahead`, for the extent of a tensor along an axis.
    Tiles { tensor: Value, axis: u8, tile: i64, ahead: i64 },
}

/// The maximum constant of a sum.
const MOST: i64 = 1 << 24;

/// `per_step · j + x + r`, with `r` in the range.
#[derive(Clone, Copy, Debug)]
struct Sum {
    per_step: i64,
    x: Option<Value>,
    range: Range,
}

impl Sum {
    fn constant(n: i64) -> Sum {
        Sum { per_step: 0, x: None, range: Range::point(n) }
    }

    fn plus(self, other: Sum) -> Option<Sum> {
        let x = match (self.x, other.x) {
            (Some(_), Some(_)) => return None,
            (x, y) => x.or(y),
        };
        let per_step = self.per_step.checked_add(other.per_step)?;
        Sum { per_step, x, range: self.range.plus(other.range)? }.small()
    }

    /// The product with a constant; `None` for a value from outside of the loop, whose product might overflow.
    fn times(self, n: i64) -> Option<Sum> {
        if n != 1 && self.x.is_some() {
            return None;
        }
        let range = self.range.times(Range::point(n))?;
        Sum { per_step: self.per_step.checked_mul(n)?, x: self.x, range }.small()
    }

    fn small(self) -> Option<Sum> {
        let limits = Range { lo: -MOST, hi: MOST };
        (self.range.within(limits) && limits.lo <= self.per_step && self.per_step <= limits.hi).then_some(self)
    }
}

/// A loop: its body, and the values that are defined in it.
type Loop<'a> = (Block, &'a SortedSet<Value>);

/// The threshold of a comparison.
pub(super) fn of_condition(kernel: &Kernel, looped: Loop<'_>, pred: Pred, args: &[Value]) -> Option<Threshold> {
    let [a, b] = args else { return None };
    if kernel.ty(*a).elem() != crate::ir::Elem::I32 {
        return None;
    }
    let (greater, less, strict) = match pred {
        Pred::Ge => (a, b, 0),
        Pred::Gt => (a, b, 1),
        Pred::Le => (b, a, 0),
        Pred::Lt => (b, a, 1),
        Pred::Eq | Pred::Ne => return None,
    };
    let (fixed, moving) = (sum(kernel, looped, *greater, 0)?, sum(kernel, looped, *less, 0)?);
    // Only a side that grows from iteration to iteration gives a threshold: below it the condition holds, and above it
    // nothing is said.
    let grows = moving.per_step > 0 && moving.x.is_none() && moving.range.lo >= 0;
    let x = fixed.x.filter(|_| grows && fixed.per_step == 0)?;
    // x + r ≥ c · j + r' for all elements if x + la ≥ c · j + h, so if x ≥ c · j + (h - la). `most` keeps x + ha within
    // 32 bits.
    let (slack, most) = (moving.range.hi + strict - fixed.range.lo, i64::from(i32::MAX) - fixed.range.hi.max(0));
    Some(Threshold::Sum { x, slack, most, step: moving.per_step })
}

/// The threshold of a tile that is loaded, along the axis in which it moves with the loop.
pub(super) fn of_tile(kernel: &Kernel, looped: Loop<'_>, op: &Op) -> Option<Threshold> {
    let (OpKind::Load(Unit::Tile, shape) | OpKind::Ttg(TtgOp::Source(Unit::Tile, shape))) = &op.kind else {
        return None;
    };
    let (tensor, extents) = (*op.args.first()?, Vec::<u32>::from(*shape));
    let mut found = None;
    for (axis, extent) in extents.iter().enumerate() {
        let Some(sum) = sum(kernel, looped, *op.args.get(1 + axis)?, 0) else { continue };
        if sum.per_step != 0 && found.is_none() {
            // The tile of iteration j is tile j + ahead of the axis: it has no element beyond the end if (j + ahead +
            // 1) · tile ≤ extent.
            let one = sum.per_step == 1 && sum.x.is_none() && sum.range.lo == sum.range.hi && sum.range.lo >= 0;
            let ahead = Some(sum.range.lo).filter(|_| one && !looped.1.contains(&tensor))?;
            found = Some(Threshold::Tiles { tensor, axis: u8::try_from(axis).ok()?, tile: i64::from(*extent), ahead });
        }
    }
    found
}

/// A value of a loop as a sum.
fn sum(kernel: &Kernel, looped: Loop<'_>, value: Value, depth: usize) -> Option<Sum> {
    let (body, inside) = looped;
    if kernel.block(body).args.first() == Some(&value) {
        return Some(Sum { per_step: 1, x: None, range: Range::point(0) });
    }
    if let Some(n) = kernel.int_constant(value) {
        return Sum::constant(n).small();
    }
    if matches!(kernel.ty(value), Ty::Scalar(_)) && !inside.contains(&value) {
        return Some(Sum { per_step: 0, x: Some(value), range: Range::point(0) });
    }
    let op = kernel.def_op(value).filter(|_| depth < 32)?;
    let arg = |i: usize| sum(kernel, looped, *op.args.get(i)?, depth + 1);
    let constant = |s: Sum| (s.per_step == 0 && s.x.is_none() && s.range.lo == s.range.hi).then_some(s.range.lo);
    if let OpKind::Iota(n) = op.kind {
        return Sum { per_step: 0, x: None, range: Range { lo: 0, hi: i64::from(n).max(1) - 1 } }.small();
    }
    let same = matches!(
        op.kind,
        OpKind::Splat(_)
            | OpKind::Broadcast { .. }
            | OpKind::Reshape(_)
            | OpKind::Permute(_)
            | OpKind::Ttg(TtgOp::Rematerialize)
            // A part of a tile has some of its numbers.
            | OpKind::Local(LocalOp::Convert | LocalOp::Slice { .. })
    );
    if same {
        return arg(0);
    }
    let OpKind::Binary(binary) = op.kind else { return None };
    let (a, b) = (arg(0)?, arg(1)?);
    match binary {
        BinOp::Add => a.plus(b),
        BinOp::Sub => a.plus(if b.x.is_none() { b.times(-1)? } else { return None }),
        BinOp::Mul => match (constant(a), constant(b)) {
            (_, Some(n)) => a.times(n),
            (Some(n), None) => b.times(n),
            (None, None) => None,
        },
        BinOp::Div
        | BinOp::Rem
        | BinOp::Min
        | BinOp::Max
        | BinOp::And
        | BinOp::Or
        | BinOp::Xor
        | BinOp::Shl
        | BinOp::Shr
        | BinOp::MulHi
        | BinOp::Powf => None,
    }
}

impl Threshold {
    /// Computes the threshold.
    pub(super) fn value(self, edit: &mut Edit) -> Option<Value> {
        let binary = |edit: &mut Edit, op: BinOp, a: Value, n: i64| {
            let n = edit.i32(n)?;
            edit.one(OpKind::Binary(op), &[a, n])
        };
        match self {
            Threshold::Sum { x, slack, most, step } => {
                let compared = |edit: &mut Edit, pred: Pred, n: i64| {
                    let n = edit.i32(n)?;
                    edit.one(OpKind::Cmp(pred), &[x, n])
                };
                let none = edit.i32(0)?;
                let (enough, fits) = (compared(edit, Pred::Ge, slack)?, compared(edit, Pred::Le, most)?);
                let some = edit.one(OpKind::Binary(BinOp::And), &[enough, fits])?;
                // May wrap if x is small. Then `some` is false, and the number is not used.
                let steps = binary(edit, BinOp::Sub, x, slack)?;
                let steps = binary(edit, BinOp::Div, steps, step)?;
                let number = binary(edit, BinOp::Add, steps, 1)?;
                edit.one(OpKind::Select, &[some, number, none])
            }
            Threshold::Tiles { tensor, axis, tile, ahead } => {
                let extent = edit.one(OpKind::Dim(axis), &[tensor])?;
                let whole = binary(edit, BinOp::Div, extent, tile)?;
                binary(edit, BinOp::Sub, whole, ahead)
            }
        }
    }
}
