//! What the asynchronous proxy sees of bytes that threads stored.
//!
//! Ordinary stores go by the generic proxy, and so do the writes of `cp.async`. Bulk copies and `wgmma` read and write by
//! the asynchronous one: they see a store only if `fence.proxy.async` came between, in the thread that stored or in the
//! one that issues the operation. Otherwise they see what was there before. So each byte remembers its last stores:
//!
//! | step | thread reads | `wgmma` of thread 5 reads | `wgmma` of thread 7 reads |
//! |---|---|---|---|
//! | byte is 1 | 1 | 1 | 1 |
//! | thread 6 stores 2 | 2 | 1 | 1 |
//! | thread 5 executes the fence | 2 | 2 | 1 |
//! | thread 6 executes the fence | 2 | 2 | 2 |
//!
//! Whether the threads have also synchronised is the observer's of races to tell. By the memory model, a fence of a third
//! thread between the two would do as well (PTX ISA, "Causality order", third clause of proxy-preserved base causality
//! order); here it does not.

use super::async_op::Reach;
use std::collections::{BTreeMap, BTreeSet};

/// A byte: the number of its memory, and its address there.
pub(crate) type Key = (u32, u64);

/// The number of global memory; smaller ones are the shared memories of a cluster's blocks.
pub(crate) const GLOBAL: u32 = u32::MAX;

/// Stores that a byte remembers.
const DEPTH: usize = 3;

/// A store to a byte: what was there before, `None` if it was never written; who stored, and when.
#[derive(Clone, Copy, Debug)]
struct Store {
    before: Option<u8>,
    writer: u64,
    time: u64,
}

/// When a thread last executed a fence that reaches each memory.
#[derive(Clone, Copy, Debug, Default)]
struct Fences {
    rank: u32,
    /// Shared memory of its own block, of all blocks of the cluster, and global memory.
    block: u64,
    cluster: u64,
    global: u64,
}

impl Fences {
    fn reaching(&self, space: u32) -> u64 {
        match space {
            GLOBAL => self.global,
            rank if rank == self.rank => self.block.max(self.cluster),
            _ => self.cluster,
        }
    }
}

/// What an asynchronous operation does not see as threads do: bytes that it reads, with what it sees, and bytes on top of
/// which a store lies that it writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) reads: BTreeMap<Key, Option<u8>>,
    pub(crate) hidden: BTreeSet<Key>,
}

impl View {
    /// Corrects what was read of memory.
    pub(crate) fn correct(&self, space: u32, address: u64, value: &mut [u8], written: &mut [bool]) {
        for (i, (value, written)) in (0..).zip(value.iter_mut().zip(written)) {
            if let Some(old) = self.reads.get(&(space, address + i)) {
                (*value, *written) = (old.unwrap_or(0), old.is_some());
            }
        }
    }
}

/// Stores that asynchronous operations may not see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stores {
    bytes: BTreeMap<Key, Vec<Store>>,
    /// The bytes of each writer since its last fence.
    by: BTreeMap<u64, Vec<Key>>,
    fences: BTreeMap<u64, Fences>,
    time: u64,
}

impl Stores {
    /// A thread is about to store to bytes, which now are `value` where they are `written`.
    pub(crate) fn store(&mut self, writer: u64, space: u32, address: u64, (value, written): (&[u8], &[bool])) {
        self.time += 1;
        let mine = self.by.entry(writer).or_default();
        for (i, (value, written)) in (0..).zip(value.iter().zip(written)) {
            let key = (space, address + i);
            let stores = self.bytes.entry(key).or_default();
            stores.push(Store { before: written.then_some(*value), writer, time: self.time });
            if stores.len() > DEPTH {
                stores.remove(0);
            }
            mine.push(key);
        }
    }

    /// A thread of block `rank` executes a fence.
    pub(crate) fn fence(&mut self, thread: u64, reach: Reach, rank: u32) {
        self.time += 1;
        let fences = self.fences.entry(thread).or_default();
        fences.rank = rank;
        let (block, cluster, global) = match reach {
            Reach::All => (true, true, true),
            Reach::Global => (false, false, true),
            Reach::Block => (true, false, false),
            Reach::Cluster => (true, true, false),
        };
        for (is, at) in [(block, &mut fences.block), (cluster, &mut fences.cluster), (global, &mut fences.global)] {
            if is {
                *at = self.time;
            }
        }
        // What its own stores did, everybody sees from now on.
        let (fences, bytes) = (*fences, &mut self.bytes);
        if let Some(mine) = self.by.get_mut(&thread) {
            mine.retain(|key| {
                let reached = fences.reaching(key.0) == self.time;
                if reached && bytes.get(key).is_some_and(|s| s.last().is_some_and(|s| s.writer == thread)) {
                    bytes.remove(key);
                }
                !reached
            });
        }
    }

    fn sees(&self, reader: u64, space: u32, store: &Store) -> bool {
        let fenced = |thread| self.fences.get(&thread).map_or(0, |f| f.reaching(space)) > store.time;
        fenced(store.writer) || fenced(reader)
    }

    /// What an operation of `reader` sees differently in a range that it reads.
    pub(crate) fn read(&self, reader: u64, space: u32, address: u64, len: u64, view: &mut View) {
        for (key, stores) in self.bytes.range((space, address)..(space, address.saturating_add(len))) {
            let unseen = stores.iter().rev().take_while(|s| !self.sees(reader, space, s));
            if let Some(first) = unseen.last() {
                view.reads.insert(*key, first.before);
            }
        }
    }

    /// Which bytes of a range that an operation of `writer` writes keep a store on top.
    pub(crate) fn write(&self, writer: u64, space: u32, address: u64, len: u64, view: &mut View) {
        for (key, stores) in self.bytes.range((space, address)..(space, address.saturating_add(len))) {
            if stores.last().is_some_and(|s| !self.sees(writer, space, s)) {
                view.hidden.insert(*key);
            }
        }
    }

    /// An asynchronous write to a byte has happened: earlier stores are over, unless they lie on top of it.
    pub(crate) fn written(&mut self, key: Key, new: u8, hidden: bool) {
        let Some(stores) = self.bytes.get_mut(&key) else { return };
        if !hidden {
            self.bytes.remove(&key);
        } else if let Some(last) = stores.last_mut() {
            last.before = Some(new);
        }
    }

    /// Whether there is nothing that an operation could see differently.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(s: &Stores, reader: u64, current: u8) -> Option<u8> {
        let mut view = View::default();
        s.read(reader, 0, 8, 1, &mut view);
        let (mut value, mut written) = ([current], [true]);
        view.correct(0, 8, &mut value, &mut written);
        written[0].then_some(value[0])
    }

    #[test]
    fn a_store_is_seen_after_a_fence_of_the_writer_or_the_reader() {
        let mut s = Stores::default();
        s.store(6, 0, 8, (&[1], &[true]));
        assert_eq!([5, 7].map(|t| seen(&s, t, 2)), [Some(1), Some(1)]);
        s.fence(5, Reach::Block, 0);
        assert_eq!([5, 7].map(|t| seen(&s, t, 2)), [Some(2), Some(1)]);
        s.fence(6, Reach::Block, 0);
        assert_eq!([5, 7].map(|t| seen(&s, t, 2)), [Some(2), Some(2)]);
        assert!(s.is_empty());
    }

    #[test]
    fn a_fence_reaches_what_it_says() {
        let mut s = Stores::default();
        s.store(6, 0, 8, (&[1], &[true]));
        s.fence(6, Reach::Global, 0);
        s.fence(6, Reach::Block, 1);
        assert_eq!(seen(&s, 7, 2), Some(1), "neither global memory nor another block");
        s.fence(6, Reach::Cluster, 1);
        assert_eq!(seen(&s, 7, 2), Some(2));
    }

    #[test]
    fn a_fence_before_the_store_is_none() {
        let mut s = Stores::default();
        s.fence(6, Reach::All, 0);
        s.fence(7, Reach::All, 0);
        s.store(6, 0, 8, (&[1], &[false]));
        assert_eq!(seen(&s, 7, 2), None, "it was never written as far as the copy engine knows");
    }

    #[test]
    fn each_of_several_stores_needs_a_fence() {
        let mut s = Stores::default();
        s.store(5, 0, 8, (&[1], &[true]));
        s.fence(7, Reach::All, 0);
        s.store(6, 0, 8, (&[2], &[true]));
        assert_eq!(seen(&s, 7, 3), Some(2), "the first is seen, the second is not");
        assert_eq!(seen(&s, 8, 3), Some(1));
        s.fence(5, Reach::All, 0);
        assert_eq!(seen(&s, 8, 3), Some(2));
    }

    #[test]
    fn an_unfenced_store_may_come_after_a_copy() {
        let mut s = Stores::default();
        s.store(5, 0, 8, (&[1], &[true]));
        let mut view = View::default();
        s.write(7, 0, 7, 2, &mut view);
        assert_eq!(view.hidden, BTreeSet::from([(0, 8)]));
        s.written((0, 8), 80, true);
        assert_eq!(seen(&s, 7, 2), Some(80));
        s.written((0, 8), 90, false);
        assert!(s.is_empty());
    }
}
