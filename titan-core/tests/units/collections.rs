//! Sorted maps and sets against those of the standard library: after every operation both have the same contents, and give the same
//! answers.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use titan_core::collections::{SortedMap, SortedSet};

/// Keys are few, so that operations meet those of others.
const KEYS: u8 = 24;

fn key() -> impl Strategy<Value = u8> {
    0..KEYS
}

fn bounds() -> impl Strategy<Value = (Bound<u8>, Bound<u8>)> {
    let bound = |v: u8| prop_oneof![Just(Bound::Included(v)), Just(Bound::Excluded(v)), Just(Bound::Unbounded)];
    // The standard library's collections panic if a range ends before it begins, or excludes one key from both sides.
    let is_valid = |(a, b): &(Bound<u8>, Bound<u8>)| match (a, b) {
        (Bound::Excluded(a), Bound::Excluded(b)) => a < b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a <= b,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
    };
    (key(), key()).prop_flat_map(move |(a, b)| (bound(a), bound(b))).prop_filter("bounds in order", is_valid)
}

/// An operation on a map.
#[derive(Clone, Debug)]
enum MapStep {
    Insert(u8, u32),
    Remove(u8),
    Change(u8, u32),
    OrInsert(u8, u32),
    OrInsertWith(u8, u32),
    OrDefault(u8),
    AndModify(u8, u32),
    ChangeAll(u32),
    Retain(u8),
    Extend(Vec<(u8, u32)>),
    Clear,
}

fn map_step() -> impl Strategy<Value = MapStep> {
    let pair = || (key(), any::<u32>());
    prop_oneof![
        8 => pair().prop_map(|(k, v)| MapStep::Insert(k, v)),
        4 => key().prop_map(MapStep::Remove),
        2 => pair().prop_map(|(k, v)| MapStep::Change(k, v)),
        2 => pair().prop_map(|(k, v)| MapStep::OrInsert(k, v)),
        2 => pair().prop_map(|(k, v)| MapStep::OrInsertWith(k, v)),
        2 => key().prop_map(MapStep::OrDefault),
        2 => pair().prop_map(|(k, v)| MapStep::AndModify(k, v)),
        1 => any::<u32>().prop_map(MapStep::ChangeAll),
        1 => (2..5u8).prop_map(MapStep::Retain),
        1 => vec(pair(), 0..8).prop_map(MapStep::Extend),
        1 => Just(MapStep::Clear),
    ]
}

/// Does the same to both maps, and compares what is returned.
fn do_to_maps(ours: &mut SortedMap<u8, u32>, theirs: &mut BTreeMap<u8, u32>, step: &MapStep) {
    match step.clone() {
        MapStep::Insert(k, v) => assert_eq!(ours.insert(k, v), theirs.insert(k, v)),
        MapStep::Remove(k) => assert_eq!(ours.remove(&k), theirs.remove(&k)),
        MapStep::Change(k, v) => {
            let change = |value: Option<&mut u32>| value.map(|old| std::mem::replace(old, v));
            assert_eq!(change(ours.get_mut(&k)), change(theirs.get_mut(&k)));
        }
        MapStep::OrInsert(k, v) => assert_eq!(ours.entry(k).or_insert(v), theirs.entry(k).or_insert(v)),
        MapStep::OrInsertWith(k, v) => {
            let (mut asked, mut wanted) = (0, 0);
            let count = |times: &mut u32| {
                *times += 1;
                v
            };
            let found = *ours.entry(k).or_insert_with(|| count(&mut asked));
            assert_eq!(found, *theirs.entry(k).or_insert_with(|| count(&mut wanted)));
            assert_eq!(asked, wanted, "the value is computed only if there is none");
        }
        MapStep::OrDefault(k) => assert_eq!(ours.entry(k).or_default(), theirs.entry(k).or_default()),
        MapStep::AndModify(k, v) => {
            let found = *ours.entry(k).and_modify(|old| *old ^= v).or_insert(v);
            assert_eq!(found, *theirs.entry(k).and_modify(|old| *old ^= v).or_insert(v));
        }
        MapStep::ChangeAll(by) => {
            ours.values_mut().for_each(|v| *v = v.wrapping_add(by));
            theirs.values_mut().for_each(|v| *v = v.wrapping_add(by));
            ours.iter_mut().for_each(|(k, v)| *v ^= u32::from(*k));
            for (k, v) in &mut *theirs {
                *v ^= u32::from(*k);
            }
        }
        MapStep::Retain(by) => {
            let mut keep = |k: &u8, v: &mut u32| {
                *v = v.rotate_left(1);
                !k.is_multiple_of(by)
            };
            ours.retain(&mut keep);
            theirs.retain(&mut keep);
        }
        MapStep::Extend(more) => {
            ours.extend(more.clone());
            theirs.extend(more);
        }
        MapStep::Clear => {
            ours.clear();
            theirs.clear();
        }
    }
}

fn same_maps(ours: &SortedMap<u8, u32>, theirs: &BTreeMap<u8, u32>) {
    let entries: Vec<(&u8, &u32)> = theirs.iter().collect();
    assert_eq!(ours.iter().collect::<Vec<_>>(), entries);
    assert_eq!(ours.into_iter().rev().collect::<Vec<_>>(), theirs.iter().rev().collect::<Vec<_>>());
    assert_eq!((ours.len(), ours.is_empty(), ours.iter().len()), (theirs.len(), theirs.is_empty(), theirs.len()));
    assert!(ours.keys().eq(theirs.keys()) && ours.values().eq(theirs.values()));
    assert!(ours.keys().rev().eq(theirs.keys().rev()) && ours.values().rev().eq(theirs.values().rev()));
    assert_eq!((ours.first_key_value(), ours.last_key_value()), (theirs.first_key_value(), theirs.last_key_value()));
    assert_eq!(format!("{ours:?} {ours:#?}"), format!("{theirs:?} {theirs:#?}"));
    for k in 0..=KEYS {
        assert_eq!((ours.get(&k), ours.contains_key(&k)), (theirs.get(&k), theirs.contains_key(&k)));
        assert!(theirs.get(&k).is_none_or(|value| ours[&k] == *value));
    }
    assert!(ours.clone().into_iter().eq(theirs.clone()));
    assert!(ours.clone().into_keys().eq(theirs.clone().into_keys()));
    assert!(ours.clone().into_values().eq(theirs.clone().into_values()));
}

/// An operation on a set.
#[derive(Clone, Debug)]
enum SetStep {
    Insert(u8),
    Remove(u8),
    Retain(u8),
    Extend(Vec<u8>),
    ExtendByReference(Vec<u8>),
    Clear,
}

fn set_step() -> impl Strategy<Value = SetStep> {
    prop_oneof![
        8 => key().prop_map(SetStep::Insert),
        4 => key().prop_map(SetStep::Remove),
        1 => (2..5u8).prop_map(SetStep::Retain),
        1 => vec(key(), 0..8).prop_map(SetStep::Extend),
        1 => vec(key(), 0..8).prop_map(SetStep::ExtendByReference),
        1 => Just(SetStep::Clear),
    ]
}

fn do_to_sets(ours: &mut SortedSet<u8>, theirs: &mut BTreeSet<u8>, step: &SetStep) {
    match step.clone() {
        SetStep::Insert(item) => assert_eq!(ours.insert(item), theirs.insert(item)),
        SetStep::Remove(item) => assert_eq!(ours.remove(&item), theirs.remove(&item)),
        SetStep::Retain(by) => {
            ours.retain(|item| !item.is_multiple_of(by));
            theirs.retain(|item| !item.is_multiple_of(by));
        }
        SetStep::Extend(more) => {
            ours.extend(more.clone());
            theirs.extend(more);
        }
        SetStep::ExtendByReference(more) => {
            ours.extend(&more);
            theirs.extend(&more);
        }
        SetStep::Clear => {
            ours.clear();
            theirs.clear();
        }
    }
}

fn same_sets(ours: &SortedSet<u8>, theirs: &BTreeSet<u8>) {
    assert!(ours.iter().eq(theirs) && ours.into_iter().rev().eq(theirs.iter().rev()));
    assert_eq!((ours.len(), ours.is_empty()), (theirs.len(), theirs.is_empty()));
    assert_eq!((ours.first(), ours.last()), (theirs.first(), theirs.last()));
    assert_eq!(format!("{ours:?} {ours:#?}"), format!("{theirs:?} {theirs:#?}"));
    assert!((0..=KEYS).all(|item| ours.contains(&item) == theirs.contains(&item)));
    assert!(ours.clone().into_iter().eq(theirs.clone()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn maps_do_what_those_of_the_standard_library_do(steps in vec(map_step(), 0..60), range in bounds()) {
        let (mut ours, mut theirs) = (SortedMap::new(), BTreeMap::new());
        for step in &steps {
            do_to_maps(&mut ours, &mut theirs, step);
            same_maps(&ours, &theirs);
            prop_assert!(ours.range(range).eq(theirs.range(range)), "{:?} of {:?}", range, theirs);
            prop_assert!(ours.range(range).rev().eq(theirs.range(range).rev()), "{:?} of {:?}", range, theirs);
        }
    }

    #[test]
    fn sets_do_what_those_of_the_standard_library_do(steps in vec(set_step(), 0..60), range in bounds()) {
        let (mut ours, mut theirs) = (SortedSet::new(), BTreeSet::new());
        for step in &steps {
            do_to_sets(&mut ours, &mut theirs, step);
            same_sets(&ours, &theirs);
            prop_assert!(ours.range(range).eq(theirs.range(range)), "{:?} of {:?}", range, theirs);
            prop_assert!(ours.range(range).rev().eq(theirs.range(range).rev()), "{:?} of {:?}", range, theirs);
        }
    }

    /// However they are made, also of entries in any order in which keys are repeated; and two of them are compared alike.
    #[test]
    fn collections_of_lists(a in vec((key(), 0..3u32), 0..20), b in vec((key(), 0..3u32), 0..20)) {
        let ours = [&a, &b].map(|list| list.iter().copied().collect::<SortedMap<u8, u32>>());
        let theirs = [&a, &b].map(|list| list.iter().copied().collect::<BTreeMap<u8, u32>>());
        same_maps(&ours[0], &theirs[0]);
        prop_assert_eq!(ours[0].cmp(&ours[1]), theirs[0].cmp(&theirs[1]));
        prop_assert_eq!(ours[0] == ours[1], theirs[0] == theirs[1]);
        let ours = [&a, &b].map(|list| list.iter().map(|(k, _)| *k).collect::<SortedSet<u8>>());
        let theirs = [&a, &b].map(|list| list.iter().map(|(k, _)| *k).collect::<BTreeSet<u8>>());
        same_sets(&ours[0], &theirs[0]);
        prop_assert_eq!(ours[0].cmp(&ours[1]), theirs[0].cmp(&theirs[1]));
        prop_assert_eq!(ours[0] == ours[1], theirs[0] == theirs[1]);
        prop_assert!(ours[0].intersection(&ours[1]).eq(theirs[0].intersection(&theirs[1])));
        prop_assert!(ours[0].difference(&ours[1]).eq(theirs[0].difference(&theirs[1])));
        prop_assert_eq!(ours[0].is_subset(&ours[1]), theirs[0].is_subset(&theirs[1]));
        prop_assert_eq!(ours[0].is_disjoint(&ours[1]), theirs[0].is_disjoint(&theirs[1]));
    }
}

/// Subsets and disjoint sets, of which random ones are few.
#[test]
fn every_pair_of_small_sets() {
    let subset = |bits: u8| (0..4).filter(move |i| bits & (1 << i) != 0);
    for (a, b) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))) {
        let ours = [a, b].map(|bits| subset(bits).collect::<SortedSet<u8>>());
        assert_eq!(ours[0].is_subset(&ours[1]), a & b == a);
        assert_eq!(ours[0].is_disjoint(&ours[1]), a & b == 0);
        assert!(ours[0].intersection(&ours[1]).copied().eq(subset(a & b)));
        assert!(ours[0].difference(&ours[1]).copied().eq(subset(a & !b)));
    }
}

#[test]
fn keys_may_be_borrowed() {
    let mut map = SortedMap::from([("b".to_owned(), 2), ("a".to_owned(), 1), ("b".to_owned(), 3)]);
    assert_eq!((map.get("b"), map.get("c"), map["a"]), (Some(&3), None, 1));
    assert_eq!((map.contains_key("a"), map.remove("a"), map.remove("a")), (true, Some(1), None));
    let mut set = SortedSet::from(["x".to_owned(), "y".to_owned(), "x".to_owned()]);
    assert_eq!((set.len(), set.contains("x"), set.remove("x"), set.remove("x")), (2, true, true, false));
    assert_eq!((SortedMap::<u8, u8>::default().len(), SortedSet::<u8>::default().len()), (0, 0));
}

#[test]
#[should_panic(expected = "an entry with this key")]
fn an_index_is_a_key_of_the_map() {
    let map = SortedMap::from([(1, 2)]);
    assert_eq!(map[&3], 2);
}
