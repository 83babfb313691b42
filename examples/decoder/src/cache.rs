//! The paged cache of keys and values, and the allocator of its pages on the host.
//!
//! A page holds the keys, or the values, of `PAGE` positions of one sequence in one layer; all layers use the same numbers of pages, so
//! that one table of pages describes a sequence. A sequence gets pages as it grows and returns them when it ends. Deliberately absent:
//! pages that several sequences share, and eviction: when no page is free, growing is an error, and nothing has changed then.

use crate::{Config, Error};
use std::collections::BTreeMap;
use titan::prelude::*;

/// The number of a sequence in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence(u32);

/// The pages of one sequence, in the order of positions.
#[derive(Debug, Default)]
struct Owned {
    pages: Vec<i32>,
    length: usize,
}

/// The allocator of pages.
#[derive(Debug)]
pub struct Pages {
    free: Vec<i32>,
    /// Positions of a page.
    size: usize,
    sequences: BTreeMap<Sequence, Owned>,
    next: u32,
}

impl Pages {
    /// An allocator of `count` pages of `size` positions.
    #[must_use]
    pub fn new(count: i32, size: usize) -> Self {
        Self { free: (0..count).rev().collect(), size, sequences: BTreeMap::new(), next: 0 }
    }

    /// A new sequence, without positions.
    pub fn begin(&mut self) -> Sequence {
        let sequence = Sequence(self.next);
        self.next += 1;
        self.sequences.insert(sequence, Owned::default());
        sequence
    }

    /// Adds `n` positions to a sequence.
    ///
    /// # Errors
    /// If there are fewer free pages than needed, or the sequence has ended.
    pub fn extend(&mut self, sequence: Sequence, n: usize) -> Result<(), Error> {
        let Some(owned) = self.sequences.get_mut(&sequence) else { return Err(ended(sequence)) };
        let wanted = (owned.length + n).div_ceil(self.size) - owned.pages.len();
        let free = self.free.len();
        if wanted > free {
            return Err(Error::NoPages { wanted, free });
        }
        owned.pages.extend(self.free.drain(free - wanted..).rev());
        owned.length += n;
        Ok(())
    }

    /// Ends a sequence; its pages are free again.
    pub fn end(&mut self, sequence: Sequence) {
        self.free.extend(self.sequences.remove(&sequence).unwrap_or_default().pages);
    }

    /// The number of positions of a sequence.
    #[must_use]
    pub fn length(&self, sequence: Sequence) -> usize {
        self.sequences.get(&sequence).map_or(0, |owned| owned.length)
    }

    /// The pages of a sequence, in the order of positions.
    #[must_use]
    pub fn pages(&self, sequence: Sequence) -> &[i32] {
        self.sequences.get(&sequence).map_or(&[], |owned| &owned.pages)
    }

    /// The number of free pages.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.len()
    }
}

fn ended(sequence: Sequence) -> Error {
    Error::Request(format!("{sequence:?} is not in the cache"))
}

/// The cache on a device, with its allocator.
#[derive(Debug)]
pub struct Cache<T: Float> {
    /// Keys and values of each layer, `[pages, positions of a page, kv_heads, head_dim]`.
    pub layers: Vec<(Tensor<T, 4>, Tensor<T, 4>)>,
    /// The allocator.
    pub pages: Pages,
}

impl<T: Float> Cache<T> {
    /// A cache of `count` pages of `size` positions.
    ///
    /// # Errors
    /// If the device has not enough memory.
    pub fn new(device: &Device, config: &Config, count: u16, size: usize) -> Result<Self, Error> {
        let shape = [usize::from(count), size, config.kv_heads, config.head_dim];
        let layer = |_| Ok((device.zeros(shape)?, device.zeros(shape)?));
        let layers = (0..config.layers).map(layer).collect::<titan::Result<_>>()?;
        Ok(Self { layers, pages: Pages::new(i32::from(count), size) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_taken_as_a_sequence_grows_and_are_free_when_it_ends() {
        let mut pages = Pages::new(5, 4);
        let (a, b) = (pages.begin(), pages.begin());
        pages.extend(a, 4).unwrap();
        pages.extend(b, 5).unwrap();
        pages.extend(a, 1).unwrap();
        assert_eq!((pages.pages(a), pages.pages(b)), (&[0, 3][..], &[1, 2][..]));
        assert_eq!((pages.length(a), pages.length(b), pages.free()), (5, 5, 1));
        pages.end(b);
        assert_eq!((pages.free(), pages.length(b)), (3, 0));
        assert!(matches!(pages.extend(b, 1), Err(Error::Request(_))));
    }

    #[test]
    fn a_sequence_that_finds_no_page_is_unchanged() {
        let mut pages = Pages::new(2, 4);
        let (a, b) = (pages.begin(), pages.begin());
        pages.extend(a, 4).unwrap();
        assert!(matches!(pages.extend(b, 5), Err(Error::NoPages { wanted: 2, free: 1 })));
        assert_eq!((pages.length(b), pages.free()), (0, 1));
        pages.extend(b, 4).unwrap();
    }
}
