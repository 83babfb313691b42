//! The two depths of this repository's tests. The quick depth runs samples with fixed seeds, in which every rule, layer, kind of
//! mutation, kernel and error code is still met; the full depth runs every case.
//!
//! `cargo xtask test` and `cargo test` are quick, `cargo xtask test --full` sets `TITAN_TESTS=full`. A test is sampled only if its time
//! makes it worthwhile; CONTRIBUTING lists those that are.
//!
//! Deliberately absent: samples that change from run to run. A failure must be reproducible from its message alone.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

/// The environment variable that selects the depth.
pub const VARIABLE: &str = "TITAN_TESTS";

/// The value of [`VARIABLE`] that selects the full depth.
pub const FULL: &str = "full";

/// The environment variable with which tests write the files that they compare with.
const BLESS: &str = "TITAN_BLESS";

/// Whether every case runs: in the full depth, and where the results of all cases are written to files.
#[must_use]
pub fn is_full() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == FULL) || std::env::var_os(BLESS).is_some()
}

/// The number of random cases: `full` of them in the full depth, `quick` otherwise.
#[must_use]
pub fn cases<N>(full: N, quick: N) -> N {
    if is_full() { full } else { quick }
}

/// All items in the full depth, otherwise `quick` of them, chosen with a fixed seed, in their order.
#[must_use]
pub fn sample<T>(items: impl IntoIterator<Item = T>, quick: usize) -> Vec<T> {
    sample_each(items, quick, |_| ())
}

/// All items in the full depth, otherwise `quick` of each kind, chosen with a fixed seed, in their order. Of a kind with fewer items,
/// all are taken: a kind that occurs among the items occurs in the sample, if `quick` is not zero.
#[must_use]
pub fn sample_each<T, K: Ord>(items: impl IntoIterator<Item = T>, quick: usize, kind: impl Fn(&T) -> K) -> Vec<T> {
    let items = items.into_iter().collect();
    if is_full() { items } else { choose(items, quick, kind) }
}

/// The sample of the quick depth. Items draw random numbers in their order, and of each kind those with the least numbers are taken, so
/// that every subset of that size is equally likely.
fn choose<T, K: Ord>(items: Vec<T>, quick: usize, kind: impl Fn(&T) -> K) -> Vec<T> {
    let mut drawn: std::collections::BTreeMap<K, Vec<(u64, usize)>> = std::collections::BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        drawn.entry(kind(item)).or_default().push((scramble(index as u64), index));
    }
    let mut is_taken = vec![false; items.len()];
    for numbers in drawn.values_mut() {
        numbers.sort_unstable();
        numbers.iter().take(quick).for_each(|&(_, index)| is_taken[index] = true);
    }
    items.into_iter().zip(is_taken).filter_map(|(item, is_taken)| is_taken.then_some(item)).collect()
}

/// All items in the full depth, otherwise few of them in which every trait of the items is met: what an item combines is named by
/// `traits`, such as `["f16", "transposed", "sm_90a"]`. Names must tell different dimensions apart.
///
/// The product of four layouts, three operands and two targets has 24 items, of which four have all nine traits.
#[must_use]
pub fn covering<T, K: Ord>(items: impl IntoIterator<Item = T>, traits: impl Fn(&T) -> Vec<K>) -> Vec<T> {
    let items = items.into_iter().collect();
    if is_full() { items } else { cover(items, traits) }
}

/// The cover of the quick depth: as long as a trait is not met, the item is taken that adds the most. It ends because each step adds at
/// least one trait.
fn cover<T, K: Ord>(items: Vec<T>, traits: impl Fn(&T) -> Vec<K>) -> Vec<T> {
    let traits: Vec<std::collections::BTreeSet<K>> = items.iter().map(|i| traits(i).into_iter().collect()).collect();
    let mut is_met: std::collections::BTreeSet<&K> = std::collections::BTreeSet::new();
    let mut is_taken = vec![false; items.len()];
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|index| scramble(*index as u64));
    loop {
        let gain = |index: &usize| traits[*index].iter().filter(|t| !is_met.contains(t)).count();
        // Of several that add as much, the first in the random order.
        let Some(best) = order.iter().rev().copied().max_by_key(gain).filter(|best| gain(best) > 0) else { break };
        is_taken[best] = true;
        is_met.extend(&traits[best]);
    }
    items.into_iter().zip(is_taken).filter_map(|(item, is_taken)| is_taken.then_some(item)).collect()
}

/// Whether a row of counts of a sample can be that of all cases in a table of the documentation: no count is larger, a count that is 0 or
/// the first count of the row is so in both, and other cells are equal. `|` separates cells, and an empty cell stands for 0.
#[must_use]
pub fn is_row_of_sample(sample: &str, all: &str) -> bool {
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let count = |cell: &String| if cell.is_empty() { Some(0) } else { cell.parse::<u64>().ok() };
    let first = |row: &[String]| row.iter().find_map(|cell| cell.parse::<u64>().ok());
    let (sample, all) = (cells(sample), cells(all));
    let agree = |(some, every): (&String, &String)| match (count(some), count(every)) {
        (Some(some), Some(every)) if Some(every) == first(&all) => Some(some) == first(&sample),
        (Some(some), Some(every)) => some <= every,
        _ => some == every,
    };
    let total = first(&sample) <= first(&all);
    sample.len() == all.len() && total && sample.iter().zip(&all).all(agree)
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014), a bijection.
fn scramble(index: u64) -> u64 {
    let z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
