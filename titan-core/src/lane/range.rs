//! Range analysis: the interval of each 32-bit value as a signed number, derived from its operation alone.
//!
//! Ranges are computed while a function is built, when all operands are known except for those that loops carry, which have the full range.
//! They prove that sums do not wrap, so that comparisons may be solved for a constant.

use super::build::Builder;
use super::func::Value;
use super::op::{IntBin, OpKind, Ty};
use crate::ir::Pred;
use crate::launch::abi::Slot;

/// All integers from `low` to `high`, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) low: i64,
    pub(super) high: i64,
}

/// The full range of 32 bits.
const ANY: Range = Range { low: i32::MIN as i64, high: i32::MAX as i64 };

impl Range {
    /// The full range. Ranges of 64-bit values are not tracked; callers use only the ranges of 32-bit values.
    pub(super) const fn of_type(_: Ty) -> Range {
        ANY
    }

    /// The range of an induction variable that counts from `lo` to below `hi`.
    pub(super) fn below(lo: Range, hi: Range) -> Range {
        Range { low: lo.low, high: (hi.high - 1).max(lo.low) }
    }

    fn to(low: i64, high: i64) -> Range {
        Range { low, high }
    }

    fn not_negative() -> Range {
        Range { low: 0, ..ANY }
    }

    /// The range, if all its numbers fit in 32 bits; otherwise the full range.
    fn unless_wrapping(self) -> Range {
        if self.fits() { self } else { ANY }
    }

    /// Whether all its numbers fit in 32 bits.
    pub(super) fn fits(self) -> bool {
        self.low >= ANY.low && self.high <= ANY.high
    }

    pub(super) fn plus(self, other: Range) -> Range {
        Range { low: self.low + other.low, high: self.high + other.high }
    }

    pub(super) fn minus(self, other: Range) -> Range {
        Range { low: self.low - other.high, high: self.high - other.low }
    }

    fn times(self, by: Range) -> Range {
        let all = [self.low * by.low, self.low * by.high, self.high * by.low, self.high * by.high];
        let (first, rest) = (all[0], &all[1..]);
        Range { low: rest.iter().fold(first, |a, b| a.min(*b)), high: rest.iter().fold(first, |a, b| a.max(*b)) }
    }

    /// The range of one number.
    pub(super) const fn only(number: i64) -> Range {
        Range { low: number, high: number }
    }

    /// The result of a comparison, if it is the same for all numbers of the two ranges.
    pub(super) fn compare(self, pred: Pred, other: Range) -> Option<bool> {
        let (below, above) = (self.high < other.low, self.low > other.high);
        let (at_most, at_least) = (self.high <= other.low, self.low >= other.high);
        let known = |yes: bool, no: bool| {
            if yes {
                Some(true)
            } else if no {
                Some(false)
            } else {
                None
            }
        };
        match pred {
            Pred::Lt => known(below, at_least),
            Pred::Le => known(at_most, above),
            Pred::Gt => known(above, at_most),
            Pred::Ge => known(at_least, below),
            Pred::Eq | Pred::Ne => None,
        }
    }

    fn exactly(self) -> Option<i64> {
        (self.low == self.high).then_some(self.low)
    }
}

/// The range of the result of an operation that has only one.
pub(super) fn of(b: &Builder, kind: &OpKind, args: &[Value]) -> Range {
    let count = |n: u32| Range::to(0, i64::from(n) - 1);
    match (kind, args) {
        (OpKind::Const(Ty::B32, bits), []) => {
            let number = i64::from(u32::try_from(*bits).unwrap_or(0).cast_signed());
            Range::only(number)
        }
        (OpKind::ThreadId, []) => count(b.func().threads),
        (OpKind::LaneId, []) => count(b.func().lanes),
        (OpKind::WarpId, []) => count(b.func().threads.div_ceil(b.func().lanes.max(1))),
        (OpKind::Slot(slot), []) if matches!(b.func().slots.get(*slot as usize), Some(Slot::Extent(..))) => {
            Range::not_negative()
        }
        (OpKind::FromPred, [_]) => Range::to(0, 1),
        (OpKind::Int(op), [x, y]) if b.ty(*x) == Ty::B32 => of_int(*op, b.range(*x), b.range(*y)),
        (OpKind::Select, [_, x, y]) if b.ty(*x) == Ty::B32 => {
            let (x, y) = (b.range(*x), b.range(*y));
            Range::to(x.low.min(y.low), x.high.max(y.high))
        }
        _ => ANY,
    }
}

fn of_int(op: IntBin, x: Range, y: Range) -> Range {
    let positive = |by: i64| Some(by).filter(|by| *by > 0);
    match op {
        IntBin::Add => x.plus(y).unless_wrapping(),
        IntBin::Sub => x.minus(y).unless_wrapping(),
        IntBin::Mul => x.times(y).unless_wrapping(),
        IntBin::MinS => Range::to(x.low.min(y.low), x.high.min(y.high)),
        IntBin::MaxS => Range::to(x.low.max(y.low), x.high.max(y.high)),
        IntBin::DivS => match y.exactly().and_then(positive) {
            Some(by) => Range::to(x.low / by, x.high / by),
            None => ANY,
        },
        IntBin::RemS => match y.exactly().and_then(positive) {
            Some(by) => Range::to(if x.low < 0 { 1 - by } else { 0 }, if x.high > 0 { by - 1 } else { 0 }),
            None => ANY,
        },
        IntBin::DivU => match y.exactly().and_then(positive) {
            Some(by) if x.low >= 0 => Range::to(x.low / by, x.high / by),
            Some(_) | None => ANY,
        },
        IntBin::RemU => match y.exactly().and_then(positive) {
            Some(by) => Range::to(0, by - 1),
            None => ANY,
        },
        IntBin::And => match (x.low >= 0, y.low >= 0) {
            (true, true) => Range::to(0, x.high.min(y.high)),
            (true, false) => Range::to(0, x.high),
            (false, true) => Range::to(0, y.high),
            (false, false) => ANY,
        },
        IntBin::Shl => match y.exactly().filter(|by| (0..32).contains(by)) {
            Some(by) => Range::to(x.low << by, x.high << by).unless_wrapping(),
            None => ANY,
        },
        IntBin::ShrU => match y.exactly().filter(|by| (1..32).contains(by)) {
            Some(by) if x.low >= 0 => Range::to(x.low >> by, x.high >> by),
            Some(by) => Range::to(0, i64::from(u32::MAX >> by)),
            None => ANY,
        },
        IntBin::ShrS => match y.exactly().filter(|by| (0..32).contains(by)) {
            Some(by) => Range::to(x.low >> by, x.high >> by),
            None => ANY,
        },
        IntBin::MulHi | IntBin::Or | IntBin::Xor | IntBin::MinU | IntBin::MaxU => ANY,
    }
}
