//! Conditions that exclude each other, for values that are the same function of a tile and of the launch.
//!
//! An arm of a branch is executed only if its condition has one truth value. What follows from that is split into *claims*: both sides of
//! an `and` that holds, and of an `or` that does not, the operand of a `not`, and comparisons of integers. Two arms exclude each other if
//! some claim of one contradicts a claim of the other:
//!
//! * one is the negation of the other;
//! * both compare the same two numbers, and no outcome (less, equal, greater) is common to both;
//! * both compare the same number with constants, and no integer satisfies both: `r == 0` and `r == 1`.
//!
//! Deliberately absent: contradictions that take more than two claims, and comparisons of floats, which may be unordered.

use super::Turns;
use crate::ir::{BinOp, Const, Kernel, Op, OpKind, Pred, Ty, UnOp, Value};

/// How deep a condition is split.
const DEEP: u32 = 8;

/// A set of outcomes of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcomes {
    less: bool,
    equal: bool,
    greater: bool,
}

impl Outcomes {
    const fn of(pred: Pred) -> Outcomes {
        let (less, equal, greater) = match pred {
            Pred::Eq => (false, true, false),
            Pred::Ne => (true, false, true),
            Pred::Lt => (true, false, false),
            Pred::Le => (true, true, false),
            Pred::Gt => (false, false, true),
            Pred::Ge => (false, true, true),
        };
        Outcomes { less, equal, greater }
    }

    const fn negated(self) -> Outcomes {
        Outcomes { less: !self.less, equal: !self.equal, greater: !self.greater }
    }

    /// The outcomes with the operands exchanged.
    const fn swapped(self) -> Outcomes {
        Outcomes { less: self.greater, equal: self.equal, greater: self.less }
    }

    const fn exclude(self, other: Outcomes) -> bool {
        !(self.less && other.less || self.equal && other.equal || self.greater && other.greater)
    }

    /// The integers whose comparison with a constant has one of the outcomes, as inclusive ranges.
    fn integers(self, constant: i64) -> impl Iterator<Item = (i64, i64)> {
        let all = [
            (self.less, (i64::MIN, constant.saturating_sub(1))),
            (self.equal, (constant, constant)),
            (self.greater, (constant.saturating_add(1), i64::MAX)),
        ];
        all.into_iter().filter(|(possible, _)| *possible).map(|(_, range)| range)
    }
}

/// What is true in an arm of a branch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Claim {
    /// A comparison of two `i32`.
    Compared(Value, Value, Outcomes),
    /// A condition has this truth value.
    Is(Value, bool),
}

/// The claims that follow from a condition that has a truth value.
pub(super) fn claims(kernel: &Kernel, condition: Value, holds: bool) -> Vec<Claim> {
    let mut found = Vec::new();
    split(kernel, condition, holds, DEEP, &mut found);
    found
}

fn split(kernel: &Kernel, condition: Value, holds: bool, deep: u32, found: &mut Vec<Claim>) {
    found.push(Claim::Is(condition, holds));
    let Some(op) = kernel.def_op(condition).filter(|_| deep > 0) else { return };
    let mut also = |value: Value, holds: bool| split(kernel, value, holds, deep - 1, found);
    match (&op.kind, &op.args[..]) {
        (OpKind::Unary(UnOp::Not), [of]) => also(*of, !holds),
        (OpKind::Binary(kind), [a, b])
            if (*kind, holds) == (BinOp::And, true) || (*kind, holds) == (BinOp::Or, false) =>
        {
            also(*a, holds);
            also(*b, holds);
        }
        (OpKind::Cmp(pred), [a, b]) if kernel.ty(*a) == Ty::I32 => {
            let outcomes = Outcomes::of(*pred);
            let outcomes = if holds { outcomes } else { outcomes.negated() };
            found.push(Claim::Compared(*a, *b, outcomes));
        }
        // `a && b` is a branch on `a`, whose second arm yields `false`; `a || b` likewise.
        (OpKind::If, [first]) => {
            let nth = op.results.iter().position(|r| *r == condition).unwrap_or(0);
            for (arm, other) in [(0, 1), (1, 0)] {
                if let Some((own, rest)) = yielded(kernel, op, arm, nth).zip(yielded(kernel, op, other, nth))
                    && constant(kernel, rest) == Some(!holds)
                {
                    also(*first, arm == 0);
                    also(own, holds);
                }
            }
        }
        (_, _) => {}
    }
}

/// The value that an arm of a branch yields as one of its results.
fn yielded(kernel: &Kernel, op: &Op, arm: usize, nth: usize) -> Option<Value> {
    let last = kernel.block(*op.regions.get(arm)?).ops.last()?;
    let end = kernel.op(*last);
    end.args.get(nth).copied().filter(|_| end.kind == OpKind::Yield)
}

fn constant(kernel: &Kernel, value: Value) -> Option<bool> {
    match kernel.constant(value)? {
        Const::Int(_, v) if kernel.ty(value) == Ty::BOOL => Some(v != 0),
        Const::Int(..) | Const::Float(..) => None,
    }
}

impl Turns<'_> {
    /// Whether two claims contradict each other.
    pub(super) fn contradict(&self, one: Claim, other: Claim) -> bool {
        match (one, other) {
            (Claim::Is(a, x), Claim::Is(b, y)) => x != y && self.same(a, b),
            (Claim::Compared(a, b, x), Claim::Compared(c, d, y)) => {
                self.same(a, c) && self.same(b, d) && x.exclude(y)
                    || self.same(a, d) && self.same(b, c) && x.exclude(y.swapped())
                    || self.apart(self.beside_constant(a, b, x), self.beside_constant(c, d, y))
            }
            (Claim::Is(..), Claim::Compared(..)) | (Claim::Compared(..), Claim::Is(..)) => false,
        }
    }

    /// A comparison of a number with a constant.
    fn beside_constant(&self, a: Value, b: Value, outcomes: Outcomes) -> Option<(Value, i64, Outcomes)> {
        let constant = |v: Value| self.kernel.int_constant(v);
        match (constant(a), constant(b)) {
            (None, Some(c)) => Some((a, c, outcomes)),
            (Some(c), None) => Some((b, c, outcomes.swapped())),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// Whether two comparisons with constants are of the same number, and no integer satisfies both.
    fn apart(&self, one: Option<(Value, i64, Outcomes)>, other: Option<(Value, i64, Outcomes)>) -> bool {
        let Some(((a, c, x), (b, d, y))) = one.zip(other) else { return false };
        let meet = |(p, q): (i64, i64)| y.integers(d).any(|(r, s)| p.max(r) <= q.min(s));
        self.same(a, b) && !x.integers(c).any(meet)
    }
}
