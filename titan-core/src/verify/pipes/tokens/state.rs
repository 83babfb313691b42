//! What is known about tokens on one path.

use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Loc, OpId, Value};

/// The state of tokens on one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The tokens, each with the location where it was consumed, if it was.
    pub(super) tokens: SortedMap<Value, Option<Loc>>,
    /// The loop depth at which each token was created.
    pub(super) level: SortedMap<Value, usize>,
    /// For each MMA in flight or tile in shared memory, the stages that it reads.
    pub(super) borrows: SortedMap<Value, SortedSet<Value>>,
    /// The stages that are known not to be poisoned.
    pub(super) sound: SortedSet<Value>,
    /// For each part of a read permission, the operation that split it.
    pub(super) parts: SortedMap<Value, OpId>,
}

/// Every borrow of one of `from` becomes a borrow of all of `to`.
pub(super) fn borrow_of(state: &mut State, from: &[Value], to: &[Value]) {
    for stages in state.borrows.values_mut() {
        let before = stages.len();
        stages.retain(|s| !from.contains(s));
        if stages.len() != before {
            stages.extend(to);
        }
    }
}

/// Renames `from` to `to`, in borrows too.
pub(super) fn rename(state: &mut State, from: &[Value], to: &[Value]) {
    for (a, b) in from.iter().zip(to) {
        let stages = state.borrows.get(a).cloned();
        if let Some(stages) = stages {
            state.borrows.insert(*b, stages);
        }
    }
    for stages in state.borrows.values_mut() {
        for (a, b) in from.iter().zip(to) {
            if stages.remove(a) {
                stages.insert(*b);
            }
        }
    }
}
