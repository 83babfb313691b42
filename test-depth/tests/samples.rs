//! What a sample has, in both depths.

use std::collections::BTreeSet;
use test_depth::{cases, covering, is_full, is_row_of_sample, sample, sample_each};

#[test]
fn a_sample_keeps_the_order_and_has_the_size_that_was_asked_for() {
    let some = sample(0..1000, 10);
    assert!(some.is_sorted());
    assert_eq!(some.len(), if is_full() { 1000 } else { 10 });
    assert_eq!(some, sample(0..1000, 10), "the seed is fixed");
    assert_eq!(cases(1000, 10), some.len());
}

#[test]
fn a_sample_is_spread_over_all_items() {
    let some = sample(0..1000, 40);
    let tenths: BTreeSet<i32> = some.iter().map(|n| n / 100).collect();
    assert!(tenths.len() >= 9, "{some:?}");
}

#[test]
fn every_kind_is_met() {
    // Kind 0 has one item, kind 1 has two, and so on.
    let items: Vec<(usize, usize)> = (0..20).flat_map(|kind| (0..=kind).map(move |n| (kind, n))).collect();
    let some = sample_each(items.clone(), 3, |&(kind, _)| kind);
    for kind in 0..20 {
        let (all, found) = (items.iter().filter(|i| i.0 == kind), some.iter().filter(|i| i.0 == kind));
        let all = all.count();
        assert_eq!(found.count(), if is_full() { all } else { all.min(3) }, "kind {kind}");
    }
}

#[test]
fn fewer_items_than_asked_for_are_all_taken() {
    assert_eq!(sample(0..3, 10), [0, 1, 2]);
    assert_eq!(sample(0..0, 10), []);
}

#[test]
fn a_covering_sample_has_every_trait_and_few_items() {
    let items: Vec<[usize; 3]> =
        (0..4).flat_map(|a| (0..3).flat_map(move |b| (0..2).map(move |c| [a, b, c]))).collect();
    let traits = |item: &[usize; 3]| item.iter().copied().enumerate().collect();
    let some = covering(items.clone(), traits);
    let met =
        |items: &[[usize; 3]]| items.iter().flat_map(traits as fn(&[usize; 3]) -> Vec<_>).collect::<BTreeSet<_>>();
    assert_eq!(met(&some), met(&items));
    assert_eq!(some.len(), if is_full() { 24 } else { 4 }, "{some:?}");
    assert!(some.is_sorted());
    assert_eq!(covering(Vec::<[usize; 3]>::new(), traits), Vec::<[usize; 3]>::new());
}

#[test]
fn a_row_of_a_sample_has_no_other_counts_than_that_of_all_cases() {
    let all = "| a copy is gone |  | 20 | 20 | 11 | 0 |  |";
    for (sample, agrees) in [
        (all, true),
        ("| a copy is gone |  | 3 | 3 | 0 | 0 |  |", true),
        // Of all cases, each is refused.
        ("| a copy is gone |  | 3 | 2 | 0 | 0 |  |", false),
        ("| a copy is gone |  | 3 | 3 | 0 | 1 |  |", false),
        ("| a copy is gone |  | 3 | 3 | 0 | 0 | 1 |", false),
        ("| a copy is gone |  | 21 | 21 | 11 | 0 |  |", false),
        ("| a copy is gone |  | 13 | 13 | 12 | 0 |  |", false),
        ("| another copy is gone |  | 3 | 3 | 0 | 0 |  |", false),
        ("| a copy is gone | ✓ | 3 | 3 | 0 | 0 |  |", false),
        ("| a copy is gone |  | 3 | 3 | 0 | 0 |", false),
    ] {
        assert_eq!(is_row_of_sample(sample, all), agrees, "{sample}");
    }
}
