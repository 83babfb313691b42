//! What holds in every iteration `j` with `from ≤ j < end` of a loop, where `end` is computed from minima, maxima, quotients and selections.
//!
//! Worked example: keys `iota<64> + 64 · j` before the end `n` of a tensor, with
//! `end = min(to, max(0, select(n ≥ 64 & n ≤ 2³¹ − 1, (n − 64) / 64 + 1, 0)))`:
//!
//! | from | follows |
//! |---|---|
//! | `j < min(to, x)` | `j < to`, `j < x` |
//! | `0 ≤ j < max(0, y)` | `j < y`, since `j < 0` is false |
//! | `0 ≤ j < select(c, z, 0)` | `c` is true, and `j < z` |
//! | `c` | `n ≥ 64`, so that `n − 64` does not overflow and is not negative |
//! | `j < (n − 64) / 64 + 1` | `j ≤ (n − 64) / 64`, so that `64 · j ≤ n − 64` |
//! | the elements are at most `63 + 64 · j` | at most `n − 1`; no sum overflows, and each is less than `n` |
//!
//! Sums of `i32` wrap: a number is a sum only where the facts show that it does not overflow, and an unknown otherwise.
//!
//! Deliberately absent: conditions other than comparisons of `i32`; loops that begin at a number that may be negative.

use crate::analysis::tiles::is_natural;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{BinOp, Block, Elem, Kernel, LocalOp, Op, OpId, OpKind, Pred, TtgOp, Ty, Value};
use crate::verify::coexecution::linear::{Atom, Condition, Facts, Linear};

/// What is known in such iterations.
pub(super) struct Below<'k> {
    kernel: &'k Kernel,
    /// The loop whose counter `j` is, and the values that are defined in it.
    inside: SortedSet<Value>,
    facts: Facts,
    atoms: SortedMap<Value, Atom>,
    /// Conditions, and whether they were found true for every element.
    known: SortedMap<Value, bool>,
}

impl<'k> Below<'k> {
    /// What holds in the iterations of a loop's body that are not less than `from` and less than `end`, which lies between `from` and `to` if
    /// `from ≤ to`; `None` if that is not shown.
    pub(super) fn of(kernel: &'k Kernel, (id, body): (OpId, Block), [from, end, to]: [Value; 3]) -> Option<Below<'k>> {
        // `min(to, max(from, m))` is between both, whatever `m` is.
        let [low, high] = [BinOp::Max, BinOp::Min];
        let more = kernel.def_op(end).filter(|op| op.kind == OpKind::Binary(high) && op.args.first() == Some(&to))?;
        let most = kernel.def_op(*more.args.get(1)?)?;
        if most.kind != OpKind::Binary(low) || most.args.first() != Some(&from) || !is_natural(kernel, from) {
            return None;
        }
        let mut inside: SortedSet<Value> = kernel.block(body).args.iter().copied().collect();
        kernel.walk_block(body, &mut |_, op| {
            inside.extend(op.results.iter().copied());
            op.regions.iter().for_each(|region| inside.extend(kernel.block(*region).args.iter().copied()));
        });
        let counter = *kernel.block(body).args.first()?;
        debug_assert!(kernel.op(id).regions.contains(&body), "the body of the loop");
        let mut below =
            Below { kernel, inside, facts: Facts::default(), atoms: SortedMap::new(), known: SortedMap::new() };
        let (j, from_number) = (below.number(counter), below.number(from));
        below.assume_not_negative(from_number.clone());
        below.assume_not_negative(j.minus(&from_number));
        below.is_less(&j, end, from);
        Some(below)
    }

    /// Whether a value is defined in the loop.
    pub(super) fn is_inside(&self, value: Value) -> bool {
        self.inside.contains(&value)
    }

    fn assume_not_negative(&mut self, l: Linear) {
        self.facts.assume(&Condition::NotNegative(l, true), true);
    }

    fn shows(&self, l: Linear) -> bool {
        self.facts.decide(&Condition::NotNegative(l, true)) == Some(true)
    }

    /// Adds what follows from `at < limit`, where `at` is the counter or the counter plus a constant, and the counter is not less than `from`,
    /// which is not negative. Each call looks at an operand of the limit, so that this ends; adding less is right too.
    fn is_less(&mut self, at: &Linear, limit: Value, from: Value) {
        let kernel = self.kernel;
        if let Some(n) = kernel.int_constant(limit) {
            return self.assume_not_negative(Linear::constant(n - 1).minus(at));
        }
        let Some(op) = kernel.def_op(limit).filter(|_| kernel.ty(limit) == Ty::I32) else {
            let limit = self.number(limit);
            return self.assume_not_negative(limit.minus(at).plus_const(-1));
        };
        match (&op.kind, &op.args[..]) {
            (OpKind::Binary(BinOp::Min), [a, b]) => {
                self.is_less(at, *a, from);
                self.is_less(at, *b, from);
            }
            // The counter is not less than `from`, so it is less than the other one.
            (OpKind::Binary(BinOp::Max), [a, b]) if *a == from => {
                let from_number = self.number(from);
                if self.shows(at.minus(&from_number)) {
                    self.is_less(at, *b, from);
                }
            }
            (OpKind::Select, [condition, then, other])
                if kernel.int_constant(*other).is_some_and(|n| self.shows(at.plus_const(-n))) =>
            {
                self.is_true(*condition);
                self.is_less(at, *then, from);
            }
            (OpKind::Binary(BinOp::Add), [a, b]) => match kernel.int_constant(*b) {
                // If the sum overflows it is negative, and no number that is not negative is less.
                Some(n @ 0..=0xFFFF) if self.shows(at.clone()) => self.is_less(&at.plus_const(-n), *a, from),
                Some(_) | None => {}
            },
            (OpKind::Binary(BinOp::Sub), [a, b]) => match kernel.int_constant(*b) {
                // A quotient by at least 2 is far enough from the least number.
                Some(n @ 0..=0xFFFF) if self.is_quotient(*a) => self.is_less(&at.plus_const(n), *a, from),
                Some(_) | None => {}
            },
            (OpKind::Binary(BinOp::Div), [a, b]) => {
                let Some(by @ 1..=0xFF_FFFF) = kernel.int_constant(*b) else { return };
                let (dividend, next) = (self.number(*a), at.plus_const(1));
                // With at + 1 ≤ a / by: a quotient that is positive is rounded down, and so is one of a number that is not negative.
                if self.shows(next.plus_const(-1)) || self.shows(dividend.clone()) {
                    self.assume_not_negative(dividend.minus(&next.times(by)));
                }
            }
            (_, _) => {
                let limit = self.number(limit);
                self.assume_not_negative(limit.minus(at).plus_const(-1));
            }
        }
    }

    fn is_quotient(&self, value: Value) -> bool {
        let by = |op: &Op| op.args.get(1).and_then(|by| self.kernel.int_constant(*by));
        self.kernel
            .def_op(value)
            .is_some_and(|op| op.kind == OpKind::Binary(BinOp::Div) && by(op).is_some_and(|n| n >= 2))
    }

    /// Adds a condition that is true.
    fn is_true(&mut self, condition: Value) {
        let kernel = self.kernel;
        let Some(op) = kernel.def_op(condition) else { return };
        match (&op.kind, &op.args[..]) {
            (OpKind::Binary(BinOp::And), [a, b]) => {
                self.is_true(*a);
                self.is_true(*b);
            }
            (OpKind::Cmp(pred), [a, b]) if kernel.ty(*a) == Ty::I32 => {
                let (a, b) = (self.number(*a), self.number(*b));
                self.facts.assume(&Condition::compare(*pred, &a, &b), true);
            }
            (_, _) => {}
        }
    }

    /// The number that a scalar is: a sum of unknowns, if that is shown not to overflow.
    fn number(&mut self, value: Value) -> Linear {
        let kernel = self.kernel;
        if let Some(n) = kernel.int_constant(value) {
            return Linear::constant(n);
        }
        if let Some(op) = kernel.def_op(value).filter(|_| kernel.ty(value) == Ty::I32)
            && let (OpKind::Binary(f @ (BinOp::Add | BinOp::Sub | BinOp::Mul)), [a, b]) = (&op.kind, &op.args[..])
        {
            let sides = [self.number(*a), self.number(*b)];
            if let Some(l) = combined(*f, &sides).filter(|l| self.fits(l)) {
                return l;
            }
        }
        if !self.atoms.contains_key(&value) {
            let atom = Atom(self.atoms.len());
            self.atoms.insert(value, atom);
            let l = Linear::atom(atom);
            let is_extent = kernel.def_op(value).is_some_and(|op| matches!(op.kind, OpKind::Dim(_)));
            self.assume_not_negative(l.plus_const(if is_extent { 0 } else { -i64::from(i32::MIN) }));
            self.assume_not_negative(Linear::constant(i32::MAX.into()).minus(&l));
        }
        self.atoms.get(&value).map_or_else(Linear::default, |atom| Linear::atom(*atom))
    }

    /// Whether a number is shown to be in the range of `i32`.
    fn fits(&self, l: &Linear) -> bool {
        let [least, most] = [i32::MIN, i32::MAX].map(i64::from);
        self.shows(Linear::constant(most).minus(l)) && self.shows(l.plus_const(-least))
    }

    /// Bounds of the elements of a tile of `i32`, as integers that do not wrap. If they are in the range of `i32`, they are bounds of the elements
    /// as they are computed, since sums and products that wrap are equal modulo 2³², whatever wraps on the way.
    fn elements(&mut self, tile: Value) -> Option<[Linear; 2]> {
        let op = self.kernel.def_op(tile)?;
        match (&op.kind, &op.args[..]) {
            (OpKind::Iota(n), []) => Some([Linear::constant(0), Linear::constant(i64::from(*n).max(1) - 1)]),
            (OpKind::Splat(_), [scalar]) => {
                let l = self.number(*scalar);
                Some([l.clone(), l])
            }
            (
                OpKind::Broadcast { .. }
                | OpKind::Permute(_)
                | OpKind::Reshape(_)
                | OpKind::Local(LocalOp::Convert | LocalOp::Slice { .. })
                | OpKind::Ttg(TtgOp::Rematerialize),
                [of],
            ) => self.elements(*of),
            (OpKind::Binary(f @ (BinOp::Add | BinOp::Sub | BinOp::Mul)), [a, b]) => {
                let (of_a, of_b) = (self.elements(*a)?, self.elements(*b)?);
                // Both factors of a product have a least and a greatest element, but which of them give the least product depends on their
                // signs, unless one factor is a constant that is not negative.
                let is_factor =
                    |[least, most]: &[Linear; 2]| least == most && least.as_constant().is_some_and(|n| n >= 0);
                let ordered = *f != BinOp::Mul || is_factor(&of_a) || is_factor(&of_b);
                let ([a_least, a_most], [b_least, b_most]) = (of_a, of_b);
                let [least, most] = if *f == BinOp::Sub {
                    [[a_least, b_most], [a_most, b_least]]
                } else {
                    [[a_least, b_least], [a_most, b_most]]
                };
                let [least, most] = [combined(*f, &least)?, combined(*f, &most)?];
                ordered.then_some([least, most])
            }
            (_, _) => None,
        }
    }

    /// Whether a condition is true for every element.
    pub(super) fn holds(&mut self, condition: Value) -> bool {
        if let Some(known) = self.known.get(&condition) {
            return *known;
        }
        let found = self.found_true(condition);
        self.known.insert(condition, found);
        found
    }

    fn found_true(&mut self, condition: Value) -> bool {
        if super::is_true(self.kernel, condition) {
            return true;
        }
        let kernel = self.kernel;
        let Some(op) = kernel.def_op(condition) else { return false };
        match (&op.kind, &op.args[..]) {
            (OpKind::Binary(BinOp::And), [a, b]) => self.holds(*a) && self.holds(*b),
            (OpKind::Binary(BinOp::Or), [a, b]) if kernel.ty(condition).elem() == Elem::Bool => {
                self.holds(*a) || self.holds(*b)
            }
            (
                OpKind::Splat(_)
                | OpKind::Broadcast { .. }
                | OpKind::Permute(_)
                | OpKind::Reshape(_)
                | OpKind::Local(LocalOp::Convert)
                | OpKind::Ttg(TtgOp::Rematerialize),
                [of],
            ) => self.holds(*of),
            (OpKind::Cmp(pred), [a, b])
                if kernel.ty(*a).elem() == Elem::I32 && matches!(kernel.ty(*a), Ty::Tile(..)) =>
            {
                let (greater, less, by) = match pred {
                    Pred::Ge => (a, b, 0),
                    Pred::Gt => (a, b, 1),
                    Pred::Le => (b, a, 0),
                    Pred::Lt => (b, a, 1),
                    Pred::Eq | Pred::Ne => return false,
                };
                let (Some(greater), Some(less)) = (self.elements(*greater), self.elements(*less)) else { return false };
                let fit = greater.iter().chain(&less).all(|l| self.fits(l));
                fit && self.shows(greater[0].minus(&less[1]).plus_const(-by))
            }
            (_, _) => false,
        }
    }
}

/// A sum, a difference or a product with a constant.
fn combined(f: BinOp, [a, b]: &[Linear; 2]) -> Option<Linear> {
    let l = match f {
        BinOp::Add => a.plus(1, b),
        BinOp::Sub => a.minus(b),
        BinOp::Mul => match (a.as_constant(), b.as_constant()) {
            (_, Some(n)) => a.checked_times(n)?,
            (Some(n), None) => b.checked_times(n)?,
            (None, None) => return None,
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
        | BinOp::Powf => return None,
    };
    Some(l).filter(Linear::is_small)
}
