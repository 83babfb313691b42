//! The hash of states.

use std::collections::BTreeSet;
use titan_sim::engine::StateHasher;

#[test]
fn near_states_differ() {
    let mut seen = BTreeSet::new();
    for i in 0_u32..100 {
        for j in 0_u8..100 {
            assert!(seen.insert(StateHasher::of(&(i, vec![j; 3], [u64::from(j), u64::from(i)]))));
        }
    }
    assert_ne!(StateHasher::of(&[[1_u8, 2], [0, 0]]), StateHasher::of(&[[1_u8, 2], [0, 1]]));
    assert_ne!(StateHasher::of(&(vec![1_u8], vec![2_u8, 3])), StateHasher::of(&(vec![1_u8, 2], vec![3_u8])));
}

/// A pinned value: a change of it makes stored hashes of other builds worthless, so it is a decision.
#[test]
fn the_hash_is_the_same_in_every_build() {
    assert_eq!(StateHasher::of(&1_u32), StateHasher::of(&1_u64));
    assert_eq!(StateHasher::of(&(1_u32, 2_u64)), 303_328_770_664_547_214_516_260_300_023_728_380_712);
}
