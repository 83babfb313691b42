//! The last stores to each byte, by pages: threads store to neighbouring bytes, and fences and operations concern ranges.
//!
//! A page has a number of stores for each of its bytes, and layers: the oldest recorded store of each byte is in the first layer, the next one
//! in the second. Most bytes have one store before a fence ends it, so that most pages have one layer. Pages stay when they become
//! empty, because the same bytes are stored again.
//!
//! | stores to byte 5 | number | layers of byte 5 |
//! |---|---|---|
//! | a | 1 | a |
//! | a, b, c | 3 | a, b, c |
//! | a, b, c, d | 3 | b, c, d |

use std::collections::BTreeMap;
use std::ops::Range;

/// The number of stores that are recorded for a byte.
const DEPTH: usize = 3;
/// The number of bytes of a page.
const PAGE: usize = 256;

/// A store to a byte: the contents before it, `None` if it was never written; the thread that stored, and the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    pub(super) before: Option<u8>,
    pub(super) writer: u64,
    pub(super) time: u64,
}

/// What layers contain where there is no store.
const NONE: Store = Store { before: None, writer: 0, time: 0 };

#[derive(Clone, Debug)]
struct Page {
    /// The number of bytes with stores.
    used: usize,
    /// The number of stores of each byte.
    depths: [u8; PAGE],
    /// As many layers as the byte with the most stores needs.
    layers: Vec<Box<[Store; PAGE]>>,
}

impl Page {
    const fn new() -> Page {
        Page { used: 0, depths: [0; PAGE], layers: Vec::new() }
    }

    fn push(&mut self, i: usize, store: Store) {
        let depth = usize::from(self.depths[i]);
        if depth == DEPTH {
            for layer in 1..DEPTH {
                self.layers[layer - 1][i] = self.layers[layer][i];
            }
            self.layers[DEPTH - 1][i] = store;
            return;
        }
        if depth == self.layers.len() {
            self.layers.push(Box::new([NONE; PAGE]));
        }
        self.layers[depth][i] = store;
        self.depths[i] += 1;
        self.used += usize::from(depth == 0);
    }

    fn last_mut(&mut self, i: usize) -> Option<&mut Store> {
        let last = usize::from(self.depths[i]).checked_sub(1)?;
        self.layers.get_mut(last).map(|layer| &mut layer[i])
    }
}

/// The pages of all memories.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// By the number of the memory, and that of the page in it.
    pages: BTreeMap<(u32, u64), Page>,
    /// The number of bytes with stores.
    used: usize,
}

/// The parts of a range of bytes that are in one page: the number of the page, and the positions in it.
fn parts(address: u64, len: u64) -> impl Iterator<Item = (u64, Range<usize>)> {
    let end = address.saturating_add(len);
    let size = PAGE as u64;
    let within = move |at: u64, page: u64| usize::try_from(at.saturating_sub(page * size)).unwrap_or(PAGE).min(PAGE);
    (address / size..end.div_ceil(size)).map(move |page| (page, within(address, page)..within(end, page)))
}

impl Pages {
    /// Adds a store to each byte of a range, given in the order of their addresses.
    pub(super) fn push(&mut self, space: u32, address: u64, stores: impl ExactSizeIterator<Item = Store>) {
        let mut stores = stores;
        for (number, range) in parts(address, stores.len() as u64) {
            let page = self.pages.entry((space, number)).or_insert_with(Page::new);
            let before = page.used;
            range.zip(&mut stores).for_each(|(i, store)| page.push(i, store));
            self.used += page.used - before;
        }
    }

    /// Removes all stores to those bytes of a range whose last store is meant.
    pub(super) fn forget(&mut self, space: u32, address: u64, len: u64, meant: impl Fn(&Store) -> bool) {
        for (number, range) in parts(address, len) {
            let Some(page) = self.pages.get_mut(&(space, number)).filter(|page| page.used > 0) else { continue };
            for i in range {
                if page.last_mut(i).is_some_and(|last| meant(last)) {
                    page.depths[i] = 0;
                    page.used -= 1;
                    self.used -= 1;
                }
            }
        }
    }

    /// Calls `f` with the address of each byte of a range that has stores, and these, oldest first.
    pub(super) fn each(&self, space: u32, address: u64, len: u64, mut f: impl FnMut(u64, &[Store])) {
        if self.used == 0 {
            return;
        }
        let end = address.saturating_add(len);
        let numbers = address / PAGE as u64..end.div_ceil(PAGE as u64);
        // Bulk copies read large ranges of global memory, of which few pages are stored to.
        for ((_, number), page) in self.pages.range((space, numbers.start)..(space, numbers.end)) {
            if page.used == 0 {
                continue;
            }
            let first = number * PAGE as u64;
            let within = |at: u64| usize::try_from(at.saturating_sub(first)).unwrap_or(PAGE).min(PAGE);
            for i in within(address)..within(end) {
                let depth = usize::from(page.depths[i]);
                if depth > 0 {
                    let stores: [Store; DEPTH] =
                        std::array::from_fn(|l| if l < depth { page.layers[l][i] } else { NONE });
                    f(first + i as u64, &stores[..depth]);
                }
            }
        }
    }

    /// The last store to a byte.
    pub(super) fn last_mut(&mut self, space: u32, address: u64) -> Option<&mut Store> {
        let (number, range) = parts(address, 1).next()?;
        self.pages.get_mut(&(space, number))?.last_mut(range.start)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.used == 0
    }
}
