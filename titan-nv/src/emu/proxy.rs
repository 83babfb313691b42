//! The view of the asynchronous proxy on bytes that threads stored.
//!
//! Ordinary stores go by the generic proxy, and so do the writes of `cp.async`. Bulk copies and `wgmma` read and write by
//! the asynchronous one: they see a store only if `fence.proxy.async` came between, in the thread that stored or in the
//! one that issues the operation. Otherwise they see the earlier contents. So the last stores to each byte are recorded:
//!
//! | step | thread reads | `wgmma` of thread 5 reads | `wgmma` of thread 7 reads |
//! |---|---|---|---|
//! | byte is 1 | 1 | 1 | 1 |
//! | thread 6 stores 2 | 2 | 1 | 1 |
//! | thread 5 executes the fence | 2 | 2 | 1 |
//! | thread 6 executes the fence | 2 | 2 | 2 |
//!
//! Whether the threads have also synchronised is checked by the race detector. By the memory model, a fence of a third
//! thread between the two would do as well (PTX ISA, "Causality order", third clause of proxy-preserved base causality
//! order); here it does not.

use super::async_op::Reach;
use std::collections::{BTreeMap, BTreeSet};

/// A byte: the number of its memory, and its address in that memory.
pub(crate) type Key = (u32, u64);

/// The number of global memory; smaller ones are the shared memories of a cluster's blocks.
pub(crate) const GLOBAL: u32 = u32::MAX;

/// The number of stores that are recorded for a byte.
const DEPTH: usize = 3;

/// A store to a byte: the contents before it, `None` if it was never written; the thread that stored, and the time.
#[derive(Clone, Copy, Debug)]
struct Store {
    before: Option<u8>,
    writer: u64,
    time: u64,
}

/// The times at which a thread last executed a fence that reaches each memory.
#[derive(Clone, Copy, Debug, Default)]
struct Fences {
    rank: u32,
    /// The fences for the shared memory of its own block, of all blocks of the cluster, and for global memory.
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

/// The difference between an asynchronous operation's view and that of threads: bytes that it reads, with the values it sees, and bytes
/// that it writes below a store that is not yet visible to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
    pub(crate) reads: BTreeMap<Key, Option<u8>>,
    /// The bytes that it writes below a store that is not yet visible to it: the memory, and the address.
    pub hidden: BTreeSet<Key>,
}

impl View {
    /// Replaces values that were read from memory by those that the operation sees.
    pub fn correct(&self, space: u32, address: u64, value: &mut [u8], written: &mut [bool]) {
        for (i, (value, written)) in (0..).zip(value.iter_mut().zip(written)) {
            if let Some(old) = self.reads.get(&(space, address + i)) {
                (*value, *written) = (old.unwrap_or(0), old.is_some());
            }
        }
    }
}

/// The recorded stores that asynchronous operations may not see.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    bytes: BTreeMap<Key, Vec<Store>>,
    /// The bytes that each thread has stored since its last fence.
    by: BTreeMap<u64, Vec<Key>>,
    fences: BTreeMap<u64, Fences>,
    time: u64,
}

impl Stores {
    /// Records a store, before it takes place, to bytes that have the contents `value` where they are `written`.
    pub fn store(&mut self, writer: u64, space: u32, address: u64, (value, written): (&[u8], &[bool])) {
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

    /// Records that a thread of block `rank` executes a fence.
    pub fn fence(&mut self, thread: u64, reach: Reach, rank: u32) {
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
        // The thread's own stores are visible to all operations from now on.
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

    /// The bytes of a range that an operation of `reader` sees differently than threads do.
    pub fn read(&self, reader: u64, space: u32, address: u64, len: u64, view: &mut View) {
        for (key, stores) in self.bytes.range((space, address)..(space, address.saturating_add(len))) {
            let unseen = stores.iter().rev().take_while(|s| !self.sees(reader, space, s));
            if let Some(first) = unseen.last() {
                view.reads.insert(*key, first.before);
            }
        }
    }

    /// Adds to `view` the bytes of a range whose latest store `writer` does not see: an asynchronous write leaves that store on top.
    pub fn write(&self, writer: u64, space: u32, address: u64, len: u64, view: &mut View) {
        for (key, stores) in self.bytes.range((space, address)..(space, address.saturating_add(len))) {
            if stores.last().is_some_and(|s| !self.sees(writer, space, s)) {
                view.hidden.insert(*key);
            }
        }
    }

    /// Records an asynchronous write to a byte: earlier stores no longer matter, unless they are to remain on top of it.
    pub fn written(&mut self, key: Key, new: u8, hidden: bool) {
        let Some(stores) = self.bytes.get_mut(&key) else { return };
        if !hidden {
            self.bytes.remove(&key);
        } else if let Some(last) = stores.last_mut() {
            last.before = Some(new);
        }
    }

    /// Whether no operation could see a difference.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
