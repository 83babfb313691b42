//! Integers that are known up to symbols, and what follows from what is assumed of them.
//!
//! A [`Linear`] is `c + Σ kᵢ·aᵢ` over *atoms*: extents, loop counters, quotients, anything else. Equal expressions are equal
//! atoms, whoever computes them, so two roles that count the same way are seen to do so. [`Facts`] are inequalities; whether
//! another one follows is decided by adding up a few of them, which is all that loop bounds and guards ask for. What is not
//! decided is tried both ways.
//!
//! Sums are taken as if they did not wrap: bounds of loops are extents and their quotients, and stay below 2³¹ with the
//! constants that kernels add to them.

use crate::ir::Pred;
use std::collections::BTreeMap;

/// Something of which nothing is known but what the facts say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) struct Atom(pub(in crate::verify) usize);

/// `constant + Σ coefficient · atom`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) struct Linear {
    constant: i64,
    /// By atom, and none of them zero.
    terms: Vec<(Atom, i64)>,
}

impl Linear {
    pub(in crate::verify) fn constant(constant: i64) -> Linear {
        Linear { constant, terms: Vec::new() }
    }

    pub(in crate::verify) fn atom(atom: Atom) -> Linear {
        Linear { constant: 0, terms: vec![(atom, 1)] }
    }

    pub(in crate::verify) fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self + times · other`
    pub(in crate::verify) fn plus(&self, times: i64, other: &Linear) -> Linear {
        let constant = self.constant.wrapping_add(times.wrapping_mul(other.constant));
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut own, mut others) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let next = own.peek().map(|t| t.0).into_iter().chain(others.peek().map(|t| t.0)).min();
            let Some(atom) = next else { return Linear { constant, terms } };
            let mine = own.next_if(|t| t.0 == atom).map_or(0, |t| t.1);
            let k = mine.wrapping_add(times.wrapping_mul(others.next_if(|t| t.0 == atom).map_or(0, |t| t.1)));
            if k != 0 {
                terms.push((atom, k));
            }
        }
    }

    pub(in crate::verify) fn minus(&self, other: &Linear) -> Linear {
        self.plus(-1, other)
    }

    pub(in crate::verify) fn plus_const(&self, c: i64) -> Linear {
        self.plus(1, &Linear::constant(c))
    }

    pub(in crate::verify) fn times(&self, k: i64) -> Linear {
        Linear::default().plus(k, self)
    }

    /// How often an atom is in it.
    pub(in crate::verify) fn coefficient(&self, atom: Atom) -> i64 {
        self.terms.iter().find(|(a, _)| *a == atom).map_or(0, |(_, k)| *k)
    }

    /// Its atoms, and how often each is in it.
    pub(in crate::verify) fn terms(&self) -> impl Iterator<Item = (Atom, i64)> + '_ {
        self.terms.iter().copied()
    }

    /// What is left when it is divided by a constant, if everything that it is a sum of divides.
    pub(in crate::verify) fn residue(&self, by: i64) -> Option<i64> {
        self.terms.iter().all(|(_, k)| k % by == 0).then(|| self.constant.rem_euclid(by))
    }

    /// It is `by · whole + rest`, with the least constant in `rest`.
    pub(in crate::verify) fn divided(&self, by: i64) -> (Linear, Linear) {
        let terms = self.terms.iter().filter(|(_, k)| k % by == 0).map(|(atom, k)| (*atom, k / by)).collect();
        let whole = Linear { constant: self.constant.div_euclid(by), terms };
        let rest = self.plus(-by, &whole);
        (whole, rest)
    }

    /// One atom and a constant.
    fn as_shifted_atom(&self) -> Option<(Atom, i64)> {
        if let [(atom, 1)] = self.terms[..] { Some((atom, self.constant)) } else { None }
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::verify) enum Condition {
    Known(bool),
    /// The integer is not negative, or that inverted.
    NotNegative(Linear, bool),
    /// The integer is zero, or that inverted.
    Zero(Linear, bool),
    /// Something else that holds or not.
    Opaque(Atom, bool),
}

impl Condition {
    pub(in crate::verify) fn compare(pred: Pred, a: &Linear, b: &Linear) -> Condition {
        match pred {
            Pred::Eq => Condition::Zero(a.minus(b), true),
            Pred::Ne => Condition::Zero(a.minus(b), false),
            Pred::Lt => Condition::NotNegative(b.minus(a).plus_const(-1), true),
            Pred::Le => Condition::NotNegative(b.minus(a), true),
            Pred::Gt => Condition::NotNegative(a.minus(b).plus_const(-1), true),
            Pred::Ge => Condition::NotNegative(a.minus(b), true),
        }
    }

    pub(in crate::verify) fn not(self) -> Condition {
        match self {
            Condition::Known(v) => Condition::Known(!v),
            Condition::NotNegative(l, v) => Condition::NotNegative(l, !v),
            Condition::Zero(l, v) => Condition::Zero(l, !v),
            Condition::Opaque(a, v) => Condition::Opaque(a, !v),
        }
    }

    /// Where a counter crosses from one truth to the other: the first count of the second truth.
    pub(in crate::verify) fn turning_point(&self, counter: Atom) -> Option<Linear> {
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

/// What is assumed.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Facts {
    /// Integers that are not negative.
    not_negative: Vec<Linear>,
    opaque: Vec<(Condition, bool)>,
    /// Quotients: the atom, what is divided, by what. Neither is negative.
    quotients: BTreeMap<Atom, (Linear, i64)>,
}

/// How many facts are added up.
const DEPTH: usize = 5;

impl Facts {
    pub(in crate::verify) fn assume(&mut self, condition: &Condition, holds: bool) {
        match condition {
            Condition::Known(_) => {}
            Condition::NotNegative(l, v) if *v == holds => self.not_negative.push(l.clone()),
            Condition::NotNegative(l, _) => self.not_negative.push(l.times(-1).plus_const(-1)),
            Condition::Zero(l, v) if *v == holds => self.not_negative.extend([l.clone(), l.times(-1)]),
            Condition::Zero(..) | Condition::Opaque(..) => self.opaque.push((condition.clone(), holds)),
        }
    }

    /// `atom` is `of / by`, neither negative.
    pub(in crate::verify) fn quotient(&mut self, atom: Atom, of: &Linear, by: i64) {
        if self.quotients.insert(atom, (of.clone(), by)).is_none() {
            let whole = Linear::atom(atom).times(by);
            self.not_negative.push(Linear::atom(atom));
            self.not_negative.push(of.minus(&whole));
            self.not_negative.push(whole.plus_const(by - 1).minus(of));
        }
    }

    pub(in crate::verify) fn decide(&self, condition: &Condition) -> Option<bool> {
        match condition {
            Condition::Known(v) => Some(*v),
            Condition::NotNegative(l, v) => {
                if self.is_not_negative(l) {
                    Some(*v)
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

    fn told(&self, condition: &Condition) -> Option<bool> {
        let other = condition.clone().not();
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
        self.follows(l, DEPTH)
    }

    /// Whether `l ≥ 0`: one of its atoms is bounded by a fact, and so on.
    fn follows(&self, l: &Linear, depth: usize) -> bool {
        let Some((atom, k)) = l.terms.first().copied() else { return l.constant >= 0 };
        if depth == 0 {
            return false;
        }
        if let Some((quotient, c)) = l.as_shifted_atom()
            && let Some((of, by)) = self.quotients.get(&quotient)
            && c <= 0
            && self.follows(&of.plus_const(c.wrapping_mul(*by)), depth - 1)
        {
            // q + c ≥ 0 if of ≥ −c · by.
            return true;
        }
        self.not_negative.iter().any(|fact| {
            let m = fact.coefficient(atom);
            // l − (k / m) · fact has the atom no more, and is not greater than l.
            m.signum() == k.signum() && m != 0 && k % m == 0 && self.follows(&l.plus(-(k / m), fact), depth - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x(n: usize) -> Linear {
        Linear::atom(Atom(n))
    }

    #[test]
    fn guards_of_loops_follow_from_their_bounds() {
        let (i, n) = (x(0), x(1));
        let mut facts = Facts::default();
        // 0 ≤ i and i ≤ n − 2
        facts.assume(&Condition::compare(Pred::Ge, &i, &Linear::default()), true);
        facts.assume(&Condition::compare(Pred::Le, &i, &n.plus_const(-2)), true);
        assert_eq!(facts.decide(&Condition::compare(Pred::Lt, &i.plus_const(1), &n)), Some(true));
        assert_eq!(facts.decide(&Condition::compare(Pred::Lt, &i.plus_const(2), &n)), None);
        assert_eq!(facts.decide(&Condition::compare(Pred::Ge, &i, &n)), Some(false));
        assert_eq!(facts.decide(&Condition::compare(Pred::Eq, &i, &n)), Some(false));
        assert_eq!(facts.decide(&Condition::compare(Pred::Gt, &n, &Linear::constant(1))), Some(true));
    }

    #[test]
    fn a_quotient_rounded_up_of_something_is_something() {
        let (s, q) = (x(0), x(1));
        let mut facts = Facts::default();
        facts.assume(&Condition::compare(Pred::Gt, &s, &Linear::default()), true);
        facts.quotient(Atom(1), &s.plus_const(127), 128);
        assert_eq!(facts.decide(&Condition::compare(Pred::Ge, &q, &Linear::constant(1))), Some(true));
        assert_eq!(facts.decide(&Condition::compare(Pred::Ge, &q, &Linear::constant(2))), None);
        assert_eq!(facts.decide(&Condition::compare(Pred::Le, &q, &s)), None, "true, but beyond a few facts");
    }

    #[test]
    fn what_was_tried_is_remembered_in_both_spellings() {
        let mut facts = Facts::default();
        let c = Condition::Opaque(Atom(7), true);
        assert_eq!(facts.decide(&c), None);
        facts.assume(&c, false);
        assert_eq!(facts.decide(&c), Some(false));
        assert_eq!(facts.decide(&c.not()), Some(true));
    }

    #[test]
    fn a_guard_turns_where_its_counter_reaches_it() {
        let (t, n) = (Atom(0), x(1));
        let below = Condition::compare(Pred::Lt, &Linear::atom(t), &n);
        assert_eq!(below.turning_point(t), Some(n.clone()));
        let from = Condition::compare(Pred::Ge, &Linear::atom(t), &Linear::constant(3));
        assert_eq!(from.turning_point(t), Some(Linear::constant(3)));
        assert_eq!(Condition::Zero(n, true).turning_point(t), None);
    }
}
