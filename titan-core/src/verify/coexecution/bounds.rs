//! Absence of overflow: which sums of 32-bit arithmetic equal the unbounded sums.
//!
//! A [`Linear`] is an unbounded integer. The result of an addition, subtraction or multiplication of a kernel becomes a `Linear` only
//! if it cannot overflow `i32`. That follows from one of:
//!
//! * the facts and the ranges of the atoms: extents are `0 ..= 2³¹ − 1`, loaded values are in `i32`, a quotient is smaller;
//! * a condition on the arguments of the launch, which [`Symbols::required`] collects: it is checked before the launch.
//!   `t + 3 < n` in a loop over `0..n` needs `n + 2 <= 2147483647`.
//!
//! Otherwise the result is an atom: an unknown that is equal wherever the same expression is computed.

use super::key::{Arg, Key};
use super::linear::{Atom, Condition, Facts, Linear};
use super::values::Symbols;
use crate::ir::{BinOp, Def, HostExpr, HostOp, OpKind, ParamKind, Ty};

const LEAST: i64 = i32::MIN as i64;
const GREATEST: i64 = i32::MAX as i64;

/// A condition is imposed on launches only if small arguments satisfy it with this margin.
const SPARE: i64 = 1 << 16;

/// The maximum number of facts that are combined to derive a condition on launch arguments.
const STEPS: usize = 4;

/// The maximum number of atoms in a product, and of products in a sum.
const FACTORS: usize = 4;
const PRODUCTS: usize = 16;

impl Symbols<'_> {
    /// The same number, if 32-bit arithmetic computes it without overflow.
    pub(super) fn exact(&mut self, l: Linear, facts: &mut Facts) -> Option<Linear> {
        if !l.is_small() {
            return None;
        }
        // Both must not be negative: up to the greatest number, and down to the least one.
        for room in [Linear::constant(GREATEST).minus(&l), l.plus_const(-LEAST)] {
            if facts.is_not_negative_within(&room, &|atom| self.range(atom)) {
                continue;
            }
            // The launch is asked for something that implies it, in terms of arguments. For `t + 3` with t ≤ n - 1 it
            // is 2³¹ - 1 - (n + 2) ≥ 0.
            match self.asked_of_launch(&room, facts, STEPS).filter(|_| !self.speculative) {
                Some(needed) => {
                    facts.assume(&Condition::NotNegative(needed.clone(), true), true);
                    self.require(needed);
                }
                None if self.as_written => {}
                None => return None,
            }
        }
        Some(l)
    }

    /// A number that a launch can check to be non-negative, and for which that implies that `room` is.
    fn asked_of_launch(&self, room: &Linear, facts: &Facts, steps: usize) -> Option<Linear> {
        let inner = room.terms().map(|(atom, _)| atom).filter(|atom| !self.is_of_launch(*atom)).last();
        match inner {
            // A condition that fails for small arguments would refuse launches that are right: then the sum stays
            // opaque instead.
            None => (room.base() >= SPARE).then(|| room.clone()),
            Some(_) if steps == 0 => None,
            Some(atom) => facts.without(room, atom).find_map(|rest| self.asked_of_launch(&rest, facts, steps - 1)),
        }
    }

    /// Whether it contains a sum that may overflow `i32`.
    pub(in crate::verify) fn may_wrap(&self, l: &Linear) -> bool {
        l.terms().any(|(atom, _)| {
            self.may_wrap.contains(&atom)
                || match self.key(atom) {
                    Some(Key::Quotient(of, _)) => self.may_wrap(of),
                    Some(Key::Product(atoms)) => atoms.iter().any(|atom| self.may_wrap(&Linear::atom(*atom))),
                    Some(Key::Op(_, args)) => args.iter().any(|arg| match arg {
                        Arg::Int(l) => self.may_wrap(l),
                        Arg::Condition(_) | Arg::Param(_) | Arg::Value(..) => false,
                    }),
                    Some(Key::Symbol(_) | Key::Dim(..) | Key::Value(..) | Key::Counter(_)) | None => false,
                }
        })
    }

    /// Records a number that must not be negative; of two that differ by a constant, the lower one is kept.
    fn require(&mut self, needed: Linear) {
        for old in &mut self.required {
            // n + 2 ≤ m and n + 5 ≤ m are one condition, the second.
            if let Some(more) = needed.minus(old).as_constant() {
                *old = old.plus_const(more.min(0));
                return;
            }
        }
        self.required.push(needed);
    }

    /// The conditions on a launch, as host expressions.
    pub(in crate::verify) fn conditions(&self) -> Vec<HostExpr> {
        // The sum of the negative terms must be at most that of the positive ones.
        let one = |needed: &Linear| {
            let (mut most, mut sum) = (Linear::constant(needed.base()), Linear::default());
            for (atom, k) in needed.terms() {
                let term = Linear::atom(atom).times(k.checked_abs()?);
                *(if k > 0 { &mut most } else { &mut sum }) = (if k > 0 { &most } else { &sum }).plus(1, &term);
            }
            let (op, a, b) = if sum == Linear::default() {
                (HostOp::Ge, most.plus_const(-most.base()), Linear::constant(most.base().checked_neg()?))
            } else {
                (HostOp::Le, sum, most)
            };
            Some(HostExpr::binary(op, self.expression(&a)?, self.expression(&b)?))
        };
        self.required.iter().filter_map(one).collect()
    }

    /// The minimum and maximum of an atom, if they are known.
    pub(in crate::verify) fn range(&self, atom: Atom) -> (Option<i64>, Option<i64>) {
        match self.key(atom) {
            // Extents of tensors, and of parts of them.
            Some(Key::Symbol(_) | Key::Dim(..) | Key::Op(OpKind::Slice(_) | OpKind::Segment, _)) => {
                (Some(0), Some(GREATEST))
            }
            // The number of iterations of a loop may exceed `i32`.
            Some(Key::Op(OpKind::For(_), args)) if args.len() == 3 => (Some(0), None),
            Some(Key::Op(OpKind::Binary(BinOp::And), args)) => match &args[..] {
                // The result has only bits of the mask.
                [Arg::Int(a), Arg::Int(b)] => match b.as_constant().or(a.as_constant()).filter(|mask| *mask >= 0) {
                    Some(mask) => (Some(0), Some(mask)),
                    None => (Some(LEAST), Some(GREATEST)),
                },
                _ => (Some(LEAST), Some(GREATEST)),
            },
            // A scalar argument of a launch may have another width.
            Some(Key::Value(value, _)) if self.kernel().ty(*value) != Ty::I32 => (None, None),
            Some(Key::Value(..) | Key::Op(..)) => (Some(LEAST), Some(GREATEST)),
            Some(Key::Quotient(of, by)) => (Some(0), self.greatest(of).and_then(|n| n.checked_div(*by))),
            Some(Key::Product(atoms)) => atoms.iter().fold((Some(1), Some(1)), |(low, high), atom| {
                let (l, h) = self.range(*atom);
                // The greatest product of numbers is that of the greatest ones only if none is negative.
                let known = l.is_some_and(|l| l >= 0);
                let times = |a: Option<i64>, b: Option<i64>| a?.checked_mul(b?).filter(|_| known);
                (times(low, l), times(high, h))
            }),
            Some(Key::Counter(_)) | None => (None, None),
        }
    }

    fn greatest(&self, l: &Linear) -> Option<i64> {
        l.terms().try_fold(l.base(), |sum, (atom, k)| {
            let (low, high) = self.range(atom);
            sum.checked_add(k.checked_mul(if k > 0 { high? } else { low? })?)
        })
    }

    /// Whether a launch can compute the atom, whichever optional arguments are present.
    pub(super) fn is_of_launch(&self, atom: Atom) -> bool {
        let given = |param: usize| match self.kernel().sig.params.get(param).map(|p| &p.kind) {
            Some(ParamKind::Tensor { optional, .. }) => !optional,
            Some(ParamKind::Scalar(_)) => true,
            None => false,
        };
        let inside = |l: &Linear| l.terms().all(|(atom, _)| self.is_of_launch(atom));
        match self.key(atom) {
            Some(Key::Symbol(symbol)) => self.binder(*symbol).is_some_and(given),
            Some(Key::Dim(param, _)) => given(*param),
            Some(Key::Value(value, _)) => matches!(self.kernel().value(*value).def, Def::Param(p) if given(p)),
            Some(Key::Quotient(of, _)) => inside(of),
            Some(Key::Product(atoms)) => atoms.iter().all(|atom| self.is_of_launch(*atom)),
            Some(Key::Counter(_) | Key::Op(..)) | None => false,
        }
    }

    /// The symbolic integer as a host expression.
    pub(super) fn expression(&self, l: &Linear) -> Option<HostExpr> {
        let mut sum: Option<HostExpr> = None;
        let mut terms: Vec<(Atom, i64)> = l.terms().collect();
        terms.sort_by_key(|(_, k)| *k < 0);
        for (atom, k) in terms {
            let one = self.atom_expression(atom)?;
            let size = k.checked_abs()?;
            let term = if size == 1 { one } else { HostExpr::binary(HostOp::Mul, HostExpr::Const(size), one) };
            sum = Some(match (sum, k > 0) {
                (None, true) => term,
                (None, false) => HostExpr::binary(HostOp::Sub, HostExpr::Const(0), term),
                (Some(sum), true) => HostExpr::binary(HostOp::Add, sum, term),
                (Some(sum), false) => HostExpr::binary(HostOp::Sub, sum, term),
            });
        }
        Some(match (sum, l.base()) {
            (None, c) => HostExpr::Const(c),
            (Some(sum), 0) => sum,
            (Some(sum), c) if c > 0 => HostExpr::binary(HostOp::Add, sum, HostExpr::Const(c)),
            (Some(sum), c) => HostExpr::binary(HostOp::Sub, sum, HostExpr::Const(c.checked_neg()?)),
        })
    }

    fn atom_expression(&self, atom: Atom) -> Option<HostExpr> {
        match self.key(atom)? {
            Key::Symbol(symbol) => Some(HostExpr::Symbol(*symbol)),
            Key::Dim(param, axis) => Some(HostExpr::Dim(*param, *axis)),
            Key::Value(value, _) => match self.kernel().value(*value).def {
                Def::Param(param) => Some(HostExpr::Scalar(param)),
                Def::BlockArg(..) | Def::Result(..) => None,
            },
            Key::Quotient(of, by) => {
                let up = of.plus_const(1 - by);
                let (op, of) = if of.base() == by - 1 { (HostOp::Cdiv, &up) } else { (HostOp::Div, of) };
                Some(HostExpr::binary(op, self.expression(of)?, HostExpr::Const(*by)))
            }
            Key::Product(atoms) => {
                let mut all = atoms.iter().map(|atom| self.atom_expression(*atom));
                let first = all.next()??;
                all.try_fold(first, |a, b| Some(HostExpr::binary(HostOp::Mul, a, b?)))
            }
            Key::Counter(_) | Key::Op(..) => None,
        }
    }

    /// The product, as a sum of products of atoms: equal products are equal sums. `None` if there would be too many.
    pub(in crate::verify) fn product(&mut self, a: &Linear, b: &Linear, facts: &mut Facts) -> Option<Linear> {
        match (a.as_constant(), b.as_constant()) {
            (Some(k), _) => return b.checked_times(k),
            (_, Some(k)) => return a.checked_times(k),
            (None, None) => {}
        }
        let mut sum = Linear::constant(a.base().checked_mul(b.base())?);
        let (of_a, of_b): (Vec<_>, Vec<_>) = (a.terms().collect(), b.terms().collect());
        if of_a.len() * of_b.len() > PRODUCTS {
            return None;
        }
        for (atom, k) in &of_a {
            sum = sum.plus(k.checked_mul(b.base())?, &Linear::atom(*atom));
        }
        for (atom, k) in &of_b {
            sum = sum.plus(k.checked_mul(a.base())?, &Linear::atom(*atom));
        }
        for (x, k) in &of_a {
            for (y, m) in &of_b {
                let mut factors = [self.factors(*x), self.factors(*y)].concat();
                factors.sort_unstable();
                if factors.len() > FACTORS {
                    return None;
                }
                // The sign of a product is known only if those of its factors are.
                let positive = factors.iter().all(|f| facts.is_not_negative(&Linear::atom(*f)));
                let new = self.intern(Key::Product(factors.clone()));
                let one = Linear::atom(new);
                // A requirement may mention the product before the signs of its factors are known.
                if positive && !facts.states(&one) {
                    facts.assume(&Condition::NotNegative(one.clone(), true), true);
                    self.bound_product(&factors, facts);
                }
                sum = sum.plus(k.checked_mul(*m)?, &one);
            }
        }
        Some(sum)
    }

    /// A bound of a counter gives a bound of its product with a non-negative number: `x · y ≤ u · y` if `x ≤ u`.
    fn bound_product(&mut self, factors: &[Atom], facts: &mut Facts) {
        for (i, counter) in factors.iter().enumerate() {
            if !matches!(self.key(*counter), Some(Key::Counter(_))) {
                continue;
            }
            // With 0 ≤ i ≤ n - 1 and m ≥ 0, (n - 1 - i) · m ≥ 0: the loop over tiles has executed at most (n - 1) · m
            // steps before its last tile.
            for room in facts.upper(*counter) {
                let others = factors.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, f)| Linear::atom(*f));
                let mut product = Some(room);
                for other in others {
                    product = product.and_then(|p| self.product(&p, &other, facts));
                }
                if let Some(product) = product {
                    facts.assume(&Condition::NotNegative(product, true), true);
                }
            }
        }
    }

    fn factors(&self, atom: Atom) -> Vec<Atom> {
        match self.key(atom) {
            Some(Key::Product(atoms)) => atoms.clone(),
            Some(
                Key::Symbol(_) | Key::Dim(..) | Key::Value(..) | Key::Counter(_) | Key::Quotient(..) | Key::Op(..),
            )
            | None => vec![atom],
        }
    }
}
