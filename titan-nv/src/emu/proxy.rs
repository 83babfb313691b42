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
//!
//! `pages` has the stores by the pages of their bytes; here is which of them an operation sees.

mod pages;

use super::async_op::Reach;
use pages::{Pages, Store};
use std::collections::{BTreeMap, BTreeSet};

/// A byte: the number of its memory, and its address in that memory.
pub(crate) type Key = (u32, u64);

/// The number of global memory; smaller ones are the shared memories of a cluster's blocks.
pub(crate) const GLOBAL: u32 = u32::MAX;

/// The times at which a thread last executed a fence that reaches each memory.
#[derive(Clone, Copy, Debug, Default)]
struct Fences {
    rank: u32,
    /// The fences for the shared memory of its own block, of all blocks of the cluster, and for global memory.
    block: u64,
    cluster: u64,
    global: u64,
}

/// The fences of a thread, and the ranges that it has stored since the last one that reaches them: memory, address, number of bytes.
#[derive(Clone, Debug, Default)]
struct Thread {
    fences: Fences,
    stored: Vec<(u32, u64, u64)>,
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
    pages: Pages,
    threads: BTreeMap<u64, Thread>,
    time: u64,
}

impl Stores {
    /// Records a store, before it takes place, to bytes that have the contents `value` where they are `written`.
    pub fn store(&mut self, writer: u64, space: u32, address: u64, (value, written): (&[u8], &[bool])) {
        self.time += 1;
        let len = value.len().min(written.len()) as u64;
        let stored = &mut self.threads.entry(writer).or_default().stored;
        match stored.last_mut() {
            Some((s, from, n)) if *s == space && *from + *n == address => *n += len,
            Some(_) | None => stored.push((space, address, len)),
        }
        let time = self.time;
        let before = value.iter().zip(written).map(|(value, written)| written.then_some(*value));
        self.pages.push(space, address, before.map(|before| Store { before, writer, time }));
    }

    /// Records that a thread of block `rank` executes a fence.
    pub fn fence(&mut self, thread: u64, reach: Reach, rank: u32) {
        self.time += 1;
        let Thread { fences, stored } = self.threads.entry(thread).or_default();
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
        let pages = &mut self.pages;
        stored.retain(|(space, address, len)| {
            let reached = fences.reaching(*space) == self.time;
            if reached {
                pages.forget(*space, *address, *len, |last| last.writer == thread);
            }
            !reached
        });
    }

    fn sees(&self, reader: u64, space: u32, store: &Store) -> bool {
        let fenced = |thread| self.threads.get(&thread).map_or(0, |t| t.fences.reaching(space)) > store.time;
        fenced(store.writer) || fenced(reader)
    }

    /// The bytes of a range that an operation of `reader` sees differently than threads do.
    pub fn read(&self, reader: u64, space: u32, address: u64, len: u64, view: &mut View) {
        self.pages.each(space, address, len, |at, stores| {
            let unseen = stores.iter().rev().take_while(|s| !self.sees(reader, space, s));
            if let Some(first) = unseen.last() {
                view.reads.insert((space, at), first.before);
            }
        });
    }

    /// Adds to `view` the bytes of a range whose latest store `writer` does not see: an asynchronous write leaves that store on top.
    pub fn write(&self, writer: u64, space: u32, address: u64, len: u64, view: &mut View) {
        self.pages.each(space, address, len, |at, stores| {
            if stores.last().is_some_and(|s| !self.sees(writer, space, s)) {
                view.hidden.insert((space, at));
            }
        });
    }

    /// Records an asynchronous write to a byte: earlier stores no longer matter, unless they are to remain on top of it.
    pub fn written(&mut self, (space, address): Key, new: u8, hidden: bool) {
        if !hidden {
            self.pages.forget(space, address, 1, |_| true);
        } else if let Some(last) = self.pages.last_mut(space, address) {
            last.before = Some(new);
        }
    }

    /// Whether no operation could see a difference.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The same for these bytes.
    pub fn has_none(&self, space: u32, address: u64, len: u64) -> bool {
        let mut none = true;
        self.pages.each(space, address, len, |_, _| none = false);
        none
    }
}
