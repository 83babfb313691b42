//! Symbolic integers, and inequalities between them.
//!
//! A [`Linear`] is `c + Σ kᵢ·aᵢ` over *atoms*: extents, loop counters, quotients, anything else. Equal expressions are equal
//! atoms in all roles, so two roles that count the same way have equal counts. [`Facts`] are inequalities; whether
//! another one follows is decided by adding up a few of them, which suffices for loop bounds and guards. Both outcomes of an
//! undecided condition are tried.
//!
//! A [`Linear`] is an integer, not an integer modulo 2³². That a sum of 32-bit arithmetic does not overflow is proved where the sum
//! is created (`values`, `bounds`).

use crate::analysis::affine::greatest_divisor;
use crate::collections::SortedMap;
use crate::ir::Pred;

/// The largest constant or coefficient of a number of the kernel. Facts and differences of such numbers do not overflow `i64`.
const LARGEST: u64 = 1 << 40;

/// An unknown, constrained by the facts only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Atom(
    /// Its number.
    pub usize,
);

/// `constant + Σ coefficient · atom`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Linear {
    constant: i64,
    /// Sorted by atom; no coefficient is zero.
    terms: Vec<(Atom, i64)>,
}

impl Linear {
    /// A number.
    #[must_use]
    pub fn constant(constant: i64) -> Linear {
        Linear { constant, terms: Vec::new() }
    }

    /// An unknown alone.
    #[must_use]
    pub fn atom(atom: Atom) -> Linear {
        Linear { constant: 0, terms: vec![(atom, 1)] }
    }

    pub(in crate::verify) fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self + times · other`
    #[must_use]
    pub fn plus(&self, times: i64, other: &Linear) -> Linear {
        let constant = self.constant.wrapping_add(times.wrapping_mul(other.constant));
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let mut own = &self.terms[..];
        for (atom, k) in &other.terms {
            // The terms before those of this atom stay.
            // Both lists are sorted, and the result is: terms of `self` below this atom come first. So equal sums are
            // equal as data.
            let before = own.iter().take_while(|t| t.0 < *atom).count();
            terms.extend_from_slice(&own[..before]);
            own = &own[before..];
            let mut sum = times.wrapping_mul(*k);
            if let Some(same) = own.first().filter(|t| t.0 == *atom) {
                sum = sum.wrapping_add(same.1);
                own = &own[1..];
            }
            if sum != 0 {
                terms.push((*atom, sum));
            }
        }
        terms.extend_from_slice(own);
        Linear { constant, terms }
    }

    pub(in crate::verify) fn minus(&self, other: &Linear) -> Linear {
        self.plus(-1, other)
    }

    /// The sum with a number.
    #[must_use]
    pub fn plus_const(&self, c: i64) -> Linear {
        self.plus(1, &Linear::constant(c))
    }

    /// The product with a number.
    #[must_use]
    pub fn times(&self, k: i64) -> Linear {
        Linear::default().plus(k, self)
    }

    /// As [`Linear::plus`], if every number of the result fits.
    fn checked_plus(&self, times: i64, other: &Linear) -> Option<Linear> {
        let fits = |own: i64, other: i64| times.checked_mul(other)?.checked_add(own);
        fits(self.constant, other.constant)?;
        for (atom, k) in &other.terms {
            fits(self.coefficient(*atom), *k)?;
        }
        Some(self.plus(times, other))
    }

    /// The product, if every number of the result fits.
    pub(in crate::verify) fn checked_times(&self, k: i64) -> Option<Linear> {
        Linear::default().checked_plus(k, self)
    }

    /// Whether no number in it is so large that a few sums and differences could overflow `i64`.
    pub(in crate::verify) fn is_small(&self) -> bool {
        let fits = |k: i64| k.unsigned_abs() <= LARGEST;
        fits(self.constant) && self.terms.iter().all(|(_, k)| fits(*k))
    }

    /// The constant term.
    pub(in crate::verify) fn base(&self) -> i64 {
        self.constant
    }

    /// Whether both have the same atoms, with coefficients that `fit`.
    fn alike(&self, other: &Linear, fit: impl Fn(i64, i64) -> bool) -> bool {
        let mut both = self.terms.iter().zip(&other.terms);
        self.terms.len() == other.terms.len() && both.all(|((a, k), (b, l))| a == b && fit(*k, *l))
    }

    /// Whether both are equal up to their constants.
    fn same_terms(&self, other: &Linear) -> bool {
        self.terms == other.terms
    }

    /// Whether the terms of the sum of both cancel out.
    fn opposite_terms(&self, other: &Linear) -> bool {
        self.alike(other, |k, l| k.checked_add(l) == Some(0))
    }

    /// The strongest equivalent `l ≥ 0` over the integers: divided by the common divisor of all coefficients, and rounded down.
    fn tight(mut self) -> Linear {
        // 2 a - 3 ≥ 0 says a ≥ 3/2 and, a being an integer, a ≥ 2: divided by 2 and rounded down, a - 2 ≥ 0.
        let by =
            self.terms.iter().fold(0, |g, (_, k)| if g == 0 { k.saturating_abs() } else { greatest_divisor(g, *k) });
        if by <= 1 {
            return self;
        }
        self.terms.iter_mut().for_each(|(_, k)| *k /= by);
        Linear { constant: self.constant.div_euclid(by), terms: self.terms }
    }

    /// The coefficient of an atom.
    pub(in crate::verify) fn coefficient(&self, atom: Atom) -> i64 {
        self.terms.iter().find(|(a, _)| *a == atom).map_or(0, |(_, k)| *k)
    }

    /// Its atoms, with their coefficients.
    pub(in crate::verify) fn terms(&self) -> impl Iterator<Item = (Atom, i64)> + '_ {
        self.terms.iter().copied()
    }

    /// The remainder of a division by a constant, if all other terms are divisible.
    pub(in crate::verify) fn residue(&self, by: i64) -> Option<i64> {
        self.terms.iter().all(|(_, k)| k % by == 0).then(|| self.constant.rem_euclid(by))
    }

    /// `(whole, rest)` with `self = by · whole + rest` and the least constant in `rest`.
    pub(in crate::verify) fn divided(&self, by: i64) -> (Linear, Linear) {
        let terms = self.terms.iter().filter(|(_, k)| k % by == 0).map(|(atom, k)| (*atom, k / by)).collect();
        let whole = Linear { constant: self.constant.div_euclid(by), terms };
        let rest = self.plus(-by, &whole);
        (whole, rest)
    }

    /// The atom and the constant, if it is the sum of one of each.
    fn as_shifted_atom(&self) -> Option<(Atom, i64)> {
        if let [(atom, 1)] = self.terms[..] { Some((atom, self.constant)) } else { None }
    }
}

/// A condition on symbolic integers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// A condition that is decided.
    Known(bool),
    /// The integer is not negative, or the negation.
    NotNegative(Linear, bool),
    /// The integer is zero, or the negation.
    Zero(Linear, bool),
    /// An unknown condition, or its negation.
    Opaque(Atom, bool),
}

impl Condition {
    /// The result of a comparison.
    #[must_use]
    pub fn compare(pred: Pred, a: &Linear, b: &Linear) -> Condition {
        match pred {
            Pred::Eq => Condition::Zero(a.minus(b), true),
            Pred::Ne => Condition::Zero(a.minus(b), false),
            Pred::Lt => Condition::NotNegative(b.minus(a).plus_const(-1), true),
            Pred::Le => Condition::NotNegative(b.minus(a), true),
            Pred::Gt => Condition::NotNegative(a.minus(b).plus_const(-1), true),
            Pred::Ge => Condition::NotNegative(a.minus(b), true),
        }
    }

    /// The negation.
    #[must_use]
    pub fn negated(self) -> Condition {
        match self {
            Condition::Known(v) => Condition::Known(!v),
            Condition::NotNegative(l, v) => Condition::NotNegative(l, !v),
            Condition::Zero(l, v) => Condition::Zero(l, !v),
            Condition::Opaque(a, v) => Condition::Opaque(a, !v),
        }
    }

    /// The count of a counter from which the condition has its other truth value.
    #[must_use]
    pub fn turning_point(&self, counter: Atom) -> Option<Linear> {
        let Condition::NotNegative(l, _) = self else { return None };
        let rest = |k: i64| l.plus(-k, &Linear::atom(counter));
        match l.coefficient(counter) {
            // counter + rest ≥ 0 from −rest on.
            1 => Some(rest(1).times(-1)),
            // rest − counter ≥ 0 up to rest.
            -1 => Some(rest(-1).plus_const(1)),
            _ => None,
        }
    }
}

/// The facts that are assumed.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Integers that are not negative.
    not_negative: Vec<Linear>,
    opaque: Vec<(Condition, bool)>,
    /// Quotients: the atom, the dividend, the divisor. Neither is negative.
    quotients: SortedMap<Atom, (Linear, i64)>,
}

/// The maximum number of facts that are added up.
const DEPTH: usize = 5;

/// A function that gives the minimum and maximum of an atom, if they are known.
pub(in crate::verify) type Bounds<'a> = &'a dyn Fn(Atom) -> (Option<i64>, Option<i64>);

impl Facts {
    /// Adds that a condition holds, or that it does not.
    pub fn assume(&mut self, condition: &Condition, holds: bool) {
        match condition {
            Condition::Known(_) => {}
            Condition::NotNegative(l, v) if *v == holds => self.add(l.clone()),
            // Not l ≥ 0 is l ≤ -1 for integers, so -l - 1 ≥ 0.
            Condition::NotNegative(l, _) => self.add(l.times(-1).plus_const(-1)),
            Condition::Zero(l, v) if *v == holds => {
                self.add(l.clone());
                self.add(l.times(-1));
            }
            Condition::Zero(l, _) => {
                // An integer that is not zero, and not negative, is positive: of `r` in 0..2, `r != 0` is `r == 1`.
                for side in [l.clone(), l.times(-1)] {
                    if self.is_not_negative(&side) {
                        self.add(side.plus_const(-1));
                    }
                }
                self.opaque.push((condition.clone(), holds));
            }
            Condition::Opaque(..) => self.opaque.push((condition.clone(), holds)),
        }
    }

    /// Adds `l ≥ 0`. Of facts that differ only in their constants, the strongest is kept: a loop whose iterations are peeled one by one
    /// then leaves one fact, not one for each iteration.
    fn add(&mut self, l: Linear) {
        let l = l.tight();
        match self.not_negative.iter_mut().find(|fact| fact.same_terms(&l)) {
            // terms + 3 ≥ 0 and terms - 1 ≥ 0: the second implies the first.
            Some(known) => known.constant = known.constant.min(l.constant),
            None => self.not_negative.push(l),
        }
    }

    /// Whether one of the facts alone is a contradiction.
    #[must_use]
    pub fn impossible(&self) -> bool {
        self.not_negative.iter().any(|fact| {
            fact.as_constant().is_some_and(|c| c < 0)
                || self
                    .not_negative
                    .iter()
                    .filter(|other| fact.opposite_terms(other))
                    // a - 3 ≥ 0 and 2 - a ≥ 0 add up to -1 ≥ 0.
                    .filter_map(|other| fact.constant.checked_add(other.constant))
                    .any(|c| c < 0)
        })
    }

    /// The same integer, with the atoms that the facts determine replaced by their values.
    pub(in crate::verify) fn resolved(&self, l: &Linear) -> Linear {
        let value = |atom: Atom| {
            let bound = |k: i64| {
                let all = self.not_negative.iter().filter(|f| f.terms[..] == [(atom, k)]).map(|f| -k * f.constant);
                if k > 0 { all.max() } else { all.min() }
            };
            bound(1).filter(|least| bound(-1) == Some(*least))
        };
        l.terms().fold(l.clone(), |sum, (atom, k)| match value(atom) {
            Some(c) => sum.minus(&Linear::atom(atom).times(k)).plus_const(k.wrapping_mul(c)),
            None => sum,
        })
    }

    /// `atom` is `of / by`, neither negative.
    pub fn quotient(&mut self, atom: Atom, of: &Linear, by: i64) {
        if self.quotients.insert(atom, (of.clone(), by)).is_none() {
            let whole = Linear::atom(atom).times(by);
            self.add(Linear::atom(atom));
            self.add(of.minus(&whole));
            // by · q ≤ of ≤ by · q + by - 1, which determines q.
            self.add(whole.plus_const(by - 1).minus(of));
        }
    }

    /// Whether a condition holds, if the facts decide it.
    #[must_use]
    pub fn decide(&self, condition: &Condition) -> Option<bool> {
        match condition {
            Condition::Known(v) => Some(*v),
            Condition::NotNegative(l, v) => {
                if self.is_not_negative(l) {
                    Some(*v)
                // The negation follows: l is at most -1. If neither follows, the condition is open, which is no
                // statement about it.
                } else if self.is_not_negative(&l.times(-1).plus_const(-1)) {
                    Some(!*v)
                } else {
                    None
                }
            }
            Condition::Zero(l, v) => {
                let (less, up) = (l.times(-1), self.is_not_negative(l));
                if up && self.is_not_negative(&less) {
                    return Some(*v);
                }
                let beyond = if up { l.plus_const(-1) } else { less.plus_const(-1) };
                if self.is_not_negative(&beyond) { Some(!*v) } else { self.told(condition) }
            }
            Condition::Opaque(..) => self.told(condition),
        }
    }

    /// The value of this integer, if two facts determine it.
    pub(in crate::verify) fn number(&self, l: &Linear) -> Option<i64> {
        if let Some(c) = l.as_constant() {
            return Some(c);
        }
        // l − at_least ≥ 0 and at_most − l ≥ 0
        let above = self.not_negative.iter().find(|fact| fact.same_terms(l))?;
        let below = self.not_negative.iter().find(|fact| fact.opposite_terms(l))?;
        let (at_least, at_most) = (l.constant.checked_sub(above.constant)?, l.constant.checked_add(below.constant)?);
        (at_least == at_most).then_some(at_least)
    }

    /// Whether one of the facts is that an integer is not negative, or more than that.
    pub(in crate::verify) fn states(&self, l: &Linear) -> bool {
        self.not_negative.iter().any(|fact| fact.same_terms(l) && fact.constant <= l.constant)
    }

    /// The facts `u − atom ≥ 0`.
    pub(in crate::verify) fn upper(&self, atom: Atom) -> Vec<Linear> {
        self.not_negative.iter().filter(|fact| fact.coefficient(atom) == -1).cloned().collect()
    }

    fn told(&self, condition: &Condition) -> Option<bool> {
        let other = condition.clone().negated();
        self.opaque.iter().find_map(|(c, holds)| {
            if c == condition {
                Some(*holds)
            } else if *c == other {
                Some(!*holds)
            } else {
                None
            }
        })
    }

    pub(in crate::verify) fn is_not_negative(&self, l: &Linear) -> bool {
        self.follows(l, DEPTH, None)
    }

    /// The same, with bounds of atoms in addition to the facts.
    pub(in crate::verify) fn is_not_negative_within(&self, l: &Linear, bounds: Bounds<'_>) -> bool {
        self.follows(l, DEPTH, Some(bounds))
    }

    /// Whether `l ≥ 0`: by the bounds of its atoms, or by a fact that bounds one of its atoms and recursion on the remainder.
    fn follows(&self, l: &Linear, depth: usize, bounds: Option<Bounds<'_>>) -> bool {
        // Without atoms, the number itself.
        if l.least(bounds).is_some_and(|least| least >= 0) {
            return true;
        }
        // Each step combines the goal with one fact, and eliminates one atom or replaces a quotient by its dividend.
        // The number of steps is bounded, so this ends; what would need more steps is not decided, and both cases are
        // tried.
        if depth == 0 {
            return false;
        }
        if let Some((quotient, c)) = l.as_shifted_atom()
            && let Some((of, by)) = self.quotients.get(&quotient)
            && let Some(needed) = c.checked_mul(*by).filter(|c| *c <= 0)
            && self.follows(&of.plus_const(needed), depth - 1, bounds)
        {
            // `q + c ≥ 0` holds if `of ≥ −c · by`.
            return true;
        }
        // Later atoms (quotients, counters) are bounded by earlier ones. The reverse rarely helps, and is tried for the original goal only,
        // not for the remaining ones.
        let (Some((first, _)), Some((last, _))) = (l.terms.first(), l.terms.last()) else { return false };
        let other = Some(*first).filter(|f| f != last && depth == DEPTH);
        // Without bounds of atoms, the last step must eliminate all atoms at once.
        std::iter::once(*last).chain(other).any(|atom| {
            let useful = |fact: &Linear| depth > 1 || bounds.is_some() || fact.alike(l, |_, _| true);
            self.combined(l, atom, useful).any(|rest| self.follows(&rest, depth - 1, bounds))
        })
    }

    /// The remaining goals of `l ≥ 0` after eliminating an atom with a fact that bounds it, for each such fact.
    ///
    /// With `k` the coefficient of the atom in `l`, `m` that in the fact and `g` their greatest common divisor, the remaining goal
    /// is `|m|/g · l + |m|/g − 1 − |k|/g · fact`. For integers `s · l + s − 1 ≥ 0` implies `l ≥ 0`.
    pub fn without<'a>(&'a self, l: &'a Linear, atom: Atom) -> impl Iterator<Item = Linear> + 'a {
        self.combined(l, atom, |_| true)
    }

    /// The same, with the facts that are `useful`.
    fn combined<'a>(
        &'a self,
        l: &'a Linear,
        atom: Atom,
        useful: impl Fn(&Linear) -> bool + 'a,
    ) -> impl Iterator<Item = Linear> + 'a {
        let k = l.coefficient(atom);
        self.not_negative.iter().filter(move |fact| useful(fact)).filter_map(move |fact| {
            let m = fact.coefficient(atom);
            if m == 0 || m.signum() != k.signum() {
                return None;
            }
            let g = greatest_divisor(k, m);
            let scale = (m / g).checked_abs()?;
            let times = -(k / g).checked_abs()?;
            // Most facts bound the atom with the coefficient that it has in the goal, which is then not scaled.
            let rest = if scale == 1 {
                l.checked_plus(times, fact)?
            } else {
                Linear::constant(scale - 1).checked_plus(scale, l)?.checked_plus(times, fact)?
            };
            Some(rest.tight())
        })
    }
}

impl Linear {
    /// The minimum, if the bounds of its atoms imply one.
    fn least(&self, bounds: Option<Bounds<'_>>) -> Option<i64> {
        self.terms.iter().try_fold(self.constant, |sum, (atom, k)| {
            let (low, high) = bounds?(*atom);
            sum.checked_add(k.checked_mul(if *k > 0 { low? } else { high? })?)
        })
    }
}
