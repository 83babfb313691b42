//! Ordered maps and sets, as sorted vectors.
//!
//! The compiler has well over a hundred types of maps, nearly all of them small and filled in the order of their keys, which are
//! indices into arenas. The code of a B-tree for each of them was two fifths of everything that was generated for this crate, and
//! everybody who builds a kernel builds it. A sorted vector needs a twentieth of that code, and is faster at these sizes.
//!
//! Costs: a look-up is a binary search; insertion at the end is constant, elsewhere it moves the entries behind, as removal does. The
//! interface is that of the standard library's ordered collections, as far as it is used here. Deliberately absent: hashing, whose
//! order would depend on the keys' hashes.

mod map;
mod set;

pub use map::{Entry, Iter, IterMut, SortedMap};
pub use set::SortedSet;
use std::ops::{Bound, RangeBounds};

/// Where `key` is in entries that are sorted by `key_of`, or where it would have to be inserted.
fn find<E, Q: Ord + ?Sized>(entries: &[E], key: &Q, key_of: impl Fn(&E) -> &Q) -> Result<usize, usize> {
    match entries.last() {
        // Most insertions are of a key behind all others.
        Some(last) if key_of(last) < key => Err(entries.len()),
        Some(_) => entries.binary_search_by(|entry| key_of(entry).cmp(key)),
        None => Err(0),
    }
}

/// The indices of the entries whose keys are in `range`. As in the standard library, the bounds must be in order.
fn span<E, Q: Ord>(
    entries: &[E],
    range: &impl RangeBounds<Q>,
    key_of: impl Fn(&E) -> &Q + Copy,
) -> std::ops::Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(key) => find(entries, key, key_of).unwrap_or_else(|at| at),
        Bound::Excluded(key) => find(entries, key, key_of).map_or_else(|at| at, |at| at + 1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(key) => find(entries, key, key_of).map_or_else(|at| at, |at| at + 1),
        Bound::Excluded(key) => find(entries, key, key_of).unwrap_or_else(|at| at),
        Bound::Unbounded => entries.len(),
    };
    start..end.max(start)
}
