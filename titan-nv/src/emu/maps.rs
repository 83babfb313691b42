//! The view of copies on tensor maps in global memory.
//!
//! Copies read their tensor map through a proxy of its own. A map that threads wrote is seen only after two fences: one by the thread
//! that wrote, `fence.proxy.tensormap::generic.release` or the one in `tensormap.cp_fenceproxy`, and after it one by the thread that issues the
//! copy, `fence.proxy.tensormap::generic.acquire` on this address. The scope of each must include the other thread. Here a thread sees a
//! map as of its last acquire:
//!
//! | step | the map is | a copy of thread 5 uses |
//! |---|---|---|
//! | at the launch | A | nothing: an error |
//! | thread 5 acquires | A | A |
//! | thread 6 stores B | B | A |
//! | thread 5 acquires | B | A |
//! | thread 6 releases | B | A |
//! | thread 5 acquires | B | B |
//!
//! What memory holds at the launch is seen by acquires of the scopes `.gpu` and `.sys`. Which of the two is needed depends on who wrote
//! it before (CUDA C++ Programming Guide, "Device-side Encoding and Modification of a Tensor Map": `.sys` after a copy by the host),
//! which is not known here.
//!
//! Whether release and acquire are themselves in order is not checked: accesses to global memory are not checked for races. By the
//! memory model, a release of a thread that has synchronised with the one that wrote would do, and so would an acquire of a thread with
//! which the one that copies has synchronised; here they do not. Writes by bulk copies need no release here.
//!
//! Source: PTX ISA, "membar/fence", "tensormap.cp_fenceproxy", "Proxies".

use std::collections::BTreeMap;

/// The size of a tensor map, in bytes.
pub(crate) const MAP: usize = 128;
/// The number of stores that are recorded for a byte.
const DEPTH: usize = 4;

/// The threads that a fence is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapScope {
    Block,
    Cluster,
    /// `.gpu` and `.sys`: there is one device.
    Device,
}

/// A thread, by its number, and the numbers of its block and its cluster in the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Party {
    pub(crate) thread: u64,
    pub(crate) block: u64,
    pub(crate) cluster: u64,
}

impl Party {
    fn reaches(self, scope: MapScope, other: Party) -> bool {
        match scope {
            MapScope::Block => self.block == other.block,
            MapScope::Cluster => self.cluster == other.cluster,
            MapScope::Device => true,
        }
    }
}

/// A store to a byte: the contents before it, `None` if they were never written; the thread, and the scope of its release.
#[derive(Clone, Copy, Debug)]
struct Store {
    before: Option<u8>,
    by: Party,
    released: Option<MapScope>,
}

/// A map as a thread sees it; `None` stands for bytes of which it sees no contents.
pub(crate) type Seen = [Option<u8>; MAP];

/// The stores to global memory of a launch, and the maps that its threads have acquired.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maps {
    bytes: BTreeMap<u64, Vec<Store>>,
    /// The bytes that each thread has stored and not released.
    unreleased: BTreeMap<u64, Vec<u64>>,
    /// By thread and address.
    acquired: BTreeMap<(u64, u64), Box<Seen>>,
}

impl Maps {
    /// Records a store, before it takes place, to bytes that have the contents `value` where they are `written`.
    pub(crate) fn store(&mut self, by: Party, address: u64, (value, written): (&[u8], &[bool])) {
        let mine = self.unreleased.entry(by.thread).or_default();
        for (at, (value, written)) in (address..).zip(value.iter().zip(written)) {
            let stores = self.bytes.entry(at).or_default();
            stores.push(Store { before: written.then_some(*value), by, released: None });
            if stores.len() > DEPTH {
                stores.remove(0);
            }
            mine.push(at);
        }
    }

    /// Records that a thread releases all its stores so far.
    pub(crate) fn release(&mut self, thread: u64, scope: MapScope) {
        for at in self.unreleased.remove(&thread).unwrap_or_default() {
            self.release_byte(thread, at, scope);
        }
    }

    /// Records that a thread releases its stores to the map at an address, and no others.
    pub(crate) fn release_map(&mut self, thread: u64, address: u64, scope: MapScope) {
        let map = address..address + MAP as u64;
        map.clone().for_each(|at| self.release_byte(thread, at, scope));
        if let Some(mine) = self.unreleased.get_mut(&thread) {
            mine.retain(|at| !map.contains(at));
        }
    }

    fn release_byte(&mut self, thread: u64, at: u64, scope: MapScope) {
        for store in self.bytes.get_mut(&at).into_iter().flatten() {
            if store.by.thread == thread && store.released.is_none() {
                store.released = Some(scope);
            }
        }
    }

    /// Records that a thread acquires the map at an address, whose bytes are now `value` where they are `written`.
    pub(crate) fn acquire(&mut self, by: Party, scope: MapScope, address: u64, (value, written): (&[u8], &[bool])) {
        let mut seen = Box::new([None; MAP]);
        for (at, (seen, (value, written))) in (address..).zip(seen.iter_mut().zip(value.iter().zip(written))) {
            let mut now = written.then_some(*value);
            let mut known = scope == MapScope::Device;
            for store in self.bytes.get(&at).into_iter().flatten().rev() {
                let released = store.released.is_some_and(|s| store.by.reaches(s, by));
                if released && by.reaches(scope, store.by) {
                    known = true;
                    break;
                }
                now = store.before;
            }
            *seen = now.filter(|_| known);
        }
        self.acquired.insert((by.thread, address), seen);
    }

    /// The map at an address as a thread has acquired it.
    pub(crate) fn seen(&self, thread: u64, address: u64) -> Option<&Seen> {
        self.acquired.get(&(thread, address)).map(|seen| &**seen)
    }
}

#[cfg(test)]
mod tests {
    use super::MapScope::{Block, Cluster, Device};
    use super::*;

    const AT: u64 = 0x1000;

    fn party(thread: u64) -> Party {
        Party { thread, block: thread / 10, cluster: thread / 100 }
    }

    /// The state of a map whose bytes are all equal.
    struct World {
        maps: Maps,
        now: u8,
    }

    impl World {
        fn new() -> World {
            World { maps: Maps::default(), now: 1 }
        }

        fn store(&mut self, by: u64, value: u8) {
            self.maps.store(party(by), AT, (&[self.now; MAP], &[true; MAP]));
            self.now = value;
        }

        fn acquire(&mut self, by: u64, scope: MapScope) -> Option<u8> {
            self.maps.acquire(party(by), scope, AT, (&[self.now; MAP], &[true; MAP]));
            self.seen(by).unwrap()
        }

        fn seen(&self, by: u64) -> Option<Option<u8>> {
            let seen = self.maps.seen(by, AT)?;
            assert_eq!(*seen, [seen[0]; MAP]);
            Some(seen[0])
        }
    }

    #[test]
    fn a_store_is_seen_after_release_and_acquire_in_this_order() {
        let mut w = World::new();
        assert_eq!(w.seen(5), None);
        assert_eq!(w.acquire(5, Device), Some(1));
        w.store(6, 2);
        assert_eq!(w.seen(5), Some(Some(1)));
        assert_eq!(w.acquire(5, Device), Some(1), "not released");
        w.maps.release(6, Device);
        assert_eq!(w.seen(5), Some(Some(1)), "not acquired again");
        assert_eq!(w.acquire(5, Device), Some(2));
        assert_eq!(w.seen(6), None, "its own acquire is missing");
    }

    #[test]
    fn a_thread_must_release_and_acquire_its_own_stores() {
        let mut w = World::new();
        w.store(6, 2);
        assert_eq!(w.acquire(6, Device), Some(1));
        w.maps.release(6, Block);
        assert_eq!(w.acquire(6, Block), Some(2));
    }

    #[test]
    fn each_scope_must_include_the_other_thread() {
        for (writer, reader, least) in [(6, 7, Block), (6, 17, Cluster), (6, 106, Device)] {
            for release in [Block, Cluster, Device] {
                for acquire in [Block, Cluster, Device] {
                    let mut w = World::new();
                    w.store(writer, 2);
                    w.maps.release(writer, release);
                    let enough = release as u8 >= least as u8 && acquire as u8 >= least as u8;
                    let other = (acquire == Device).then_some(1);
                    let want = if enough { Some(2) } else { other };
                    assert_eq!(w.acquire(reader, acquire), want, "{writer} {release:?}, {reader} {acquire:?}");
                }
            }
        }
    }

    #[test]
    fn a_release_is_of_earlier_stores_of_the_thread_and_a_map_releases_itself_only() {
        let mut w = World::new();
        w.maps.release(6, Device);
        w.store(6, 2);
        w.maps.release(7, Device);
        assert_eq!(w.acquire(5, Device), Some(1));
        w.maps.release_map(6, AT + MAP as u64, Device);
        assert_eq!(w.acquire(5, Device), Some(1));
        w.maps.release_map(6, AT, Device);
        assert_eq!(w.acquire(5, Device), Some(2));
        w.store(7, 3);
        assert_eq!(w.acquire(5, Device), Some(2), "the one before it");
    }
}
