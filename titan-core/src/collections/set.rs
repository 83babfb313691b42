//! The ordered set.

use super::{find, span};
use std::borrow::Borrow;
use std::fmt;
use std::ops::RangeBounds;

/// An ordered set.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortedSet<T> {
    /// In strictly increasing order.
    items: Vec<T>,
}

impl<T> SortedSet<T> {
    /// An empty set.
    #[must_use]
    pub const fn new() -> Self {
        SortedSet { items: Vec::new() }
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// The items in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// The least item.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.items.first()
    }

    /// The greatest item.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.items.last()
    }

    /// Removes the items for which `keep` is false.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.retain(keep);
    }
}

impl<T: Ord> SortedSet<T> {
    /// Whether an item is in the set.
    pub fn contains<Q: Ord + ?Sized>(&self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        find(&self.items, item, |t| t.borrow()).is_ok()
    }

    /// Adds an item; whether it is new.
    pub fn insert(&mut self, item: T) -> bool {
        match find(&self.items, &item, |t| t) {
            Ok(_) => false,
            Err(at) => {
                self.items.insert(at, item);
                true
            }
        }
    }

    /// Removes an item; whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        find(&self.items, item, |t| t.borrow()).map(|at| self.items.remove(at)).is_ok()
    }

    /// The items in `range`, in order.
    pub fn range(&self, range: impl RangeBounds<T>) -> std::slice::Iter<'_, T> {
        self.items[span(&self.items, &range, |t| t)].iter()
    }

    /// The items that both sets have.
    pub fn intersection<'a>(&'a self, other: &'a SortedSet<T>) -> impl Iterator<Item = &'a T> {
        self.items.iter().filter(|item| other.contains(*item))
    }

    /// The items that the other set does not have.
    pub fn difference<'a>(&'a self, other: &'a SortedSet<T>) -> impl Iterator<Item = &'a T> {
        self.items.iter().filter(|item| !other.contains(*item))
    }

    /// Whether the other set has all items.
    #[must_use]
    pub fn is_subset(&self, other: &SortedSet<T>) -> bool {
        self.items.iter().all(|item| other.contains(item))
    }

    /// Whether the other set has no item of this one.
    #[must_use]
    pub fn is_disjoint(&self, other: &SortedSet<T>) -> bool {
        !self.items.iter().any(|item| other.contains(item))
    }
}

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for SortedSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl<T: Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.insert(item);
        }
    }
}

impl<'a, T: Ord + Copy + 'a> Extend<&'a T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, items: I) {
        for item in items {
            self.insert(*item);
        }
    }
}

impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut set = Self::new();
        set.extend(items);
        set
    }
}

impl<T: Ord, const N: usize> From<[T; N]> for SortedSet<T> {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<'a, T> IntoIterator for &'a SortedSet<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<T> IntoIterator for SortedSet<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}
