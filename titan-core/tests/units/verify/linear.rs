//! What follows from a few inequalities.

use titan_core::ir::Pred;
use titan_core::verify::internals::{Atom, Condition, Facts, Linear};

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
    assert_eq!(facts.decide(&Condition::compare(Pred::Le, &q, &s)), Some(true));
}

#[test]
fn halves_add_up() {
    // n / 2 + (n + 1) / 2 = n
    let (n, q, p) = (x(0), x(1), x(2));
    let mut facts = Facts::default();
    facts.assume(&Condition::compare(Pred::Ge, &n, &Linear::default()), true);
    facts.quotient(Atom(1), &n, 2);
    facts.quotient(Atom(2), &n.plus_const(1), 2);
    let sum = q.plus(1, &p);
    assert_eq!(facts.decide(&Condition::compare(Pred::Eq, &sum, &n)), Some(true));
    assert_eq!(facts.decide(&Condition::compare(Pred::Ge, &q, &p)), None);
}

#[test]
fn of_facts_alike_the_strongest_is_kept() {
    let n = x(0);
    let mut facts = Facts::default();
    for k in 0..100 {
        facts.assume(&Condition::compare(Pred::Gt, &n, &Linear::constant(k)), true);
    }
    assert_eq!(facts.without(&n, Atom(0)).count(), 1, "one fact bounds it");
    assert_eq!(facts.decide(&Condition::compare(Pred::Ge, &n, &Linear::constant(100))), Some(true));
    facts.assume(&Condition::compare(Pred::Lt, &n, &Linear::constant(7)), true);
    assert!(facts.impossible());
}

#[test]
fn numbers_that_do_not_fit_show_nothing() {
    let (n, m) = (x(0), x(1));
    let mut facts = Facts::default();
    facts.assume(&Condition::NotNegative(n.times(i64::MAX).plus(-3, &m), true), true);
    assert_eq!(facts.decide(&Condition::NotNegative(n.times(i64::MAX - 1), true)), None);
}

#[test]
fn what_was_tried_is_remembered_in_both_spellings() {
    let mut facts = Facts::default();
    let c = Condition::Opaque(Atom(7), true);
    assert_eq!(facts.decide(&c), None);
    facts.assume(&c, false);
    assert_eq!(facts.decide(&c), Some(false));
    assert_eq!(facts.decide(&c.negated()), Some(true));
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

#[test]
fn what_is_neither_zero_nor_negative_is_positive() {
    let r = x(0);
    let mut facts = Facts::default();
    // 0 ≤ r ≤ 2
    facts.assume(&Condition::NotNegative(r.clone(), true), true);
    facts.assume(&Condition::compare(Pred::Le, &r, &Linear::constant(2)), true);
    let is = |n: i64| Condition::compare(Pred::Eq, &r, &Linear::constant(n));
    facts.assume(&is(0), false);
    assert_eq!((facts.decide(&is(0)), facts.decide(&is(1)), facts.decide(&is(2))), (Some(false), None, None));
    facts.assume(&is(2), false);
    assert_eq!((facts.decide(&is(1)), facts.decide(&is(2))), (Some(true), Some(false)));
    assert!(!facts.impossible());
    facts.assume(&is(1), false);
    assert!(facts.impossible());
}
