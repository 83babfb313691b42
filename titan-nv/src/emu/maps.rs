//! The view of copies on tensor maps in global memory.
//!
//! Copies read their tensor map through a proxy of its own. A map that threads wrote is seen only after two fences: one by the thread
//! that wrote, `fence.proxy.tensormap::generic.release` or the one in `tensormap.cp_fenceproxy`, and after it
//! `fence.proxy.tensormap::generic.acquire` on this address, by the thread that issues the copy or by one of its block with which it has
//! synchronised since. The scope of each fence must include the other thread. A map is seen as of the last acquire:
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
//! memory model, a release of a thread that has synchronised with the one that wrote would do as well; here it does not. Writes by bulk
//! copies need no release here. A map in global memory that a launch changes, and neither releases in any scope nor acquires, is an error: a later
//! launch need not see the change. A map must not be changed while a copy of the same cluster uses it. Where races are not looked for, an acquire
//! is for all threads of the block.
//!
//! Source: PTX ISA, "membar/fence", "tensormap.cp_fenceproxy", "Proxies".

use std::collections::{BTreeMap, BTreeSet};
use titan_sim::engine::Agent;
use titan_sim::engine::race::{Moment, Races};

/// The size of a tensor map, in bytes.
pub(crate) const MAP: usize = 128;
/// The number of stores that are recorded for a byte.
const DEPTH: usize = 4;
/// The number of acquires that are recorded for a thread and a map.
const HISTORY: usize = 3;

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

/// A store to a byte: the contents before it, `None` if they were never written; the thread, its time, and the scope of its release.
#[derive(Clone, Copy, Debug)]
struct Store {
    before: Option<u8>,
    by: Party,
    time: u32,
    released: Option<MapScope>,
}

/// The time that stands for what memory held at the launch; that of no contents at all is less.
const LAUNCH: u32 = 1;

/// A byte as an acquire sees it: the time of the store, and the contents.
type Byte = (u32, Option<u8>);

/// What a thread has acquired of a map, and when it last did.
#[derive(Clone, Debug)]
struct Acquired {
    agent: Agent,
    moment: Option<Moment>,
    bytes: [Byte; MAP],
}

/// A map as a thread sees it; `None` stands for bytes of which it sees no contents.
pub(crate) type Seen = [Option<u8>; MAP];

/// The stores to global memory of a launch, and the maps that its threads have acquired.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maps {
    bytes: BTreeMap<u64, Vec<Store>>,
    /// The bytes that each thread has stored and not released.
    unreleased: BTreeMap<u64, Vec<u64>>,
    /// By block and address.
    acquired: BTreeMap<(u64, u64), Vec<Acquired>>,
    /// Maps by their address, with the thread that has changed a field of them and not released the change. Of those that are acquired in
    /// the same launch, copies show what is missing.
    changed: BTreeSet<(u64, u64)>,
    time: u32,
}

impl Maps {
    /// Records that a thread changes a field of a map in global memory.
    pub(crate) fn change(&mut self, thread: u64, address: u64) {
        self.changed.insert((address, thread));
    }

    /// The address of a map that was changed in the launch, and that no later launch need see as changed: its thread has not released it.
    pub(crate) fn unreleased(&self) -> Option<u64> {
        self.changed.first().map(|(address, _)| *address)
    }

    /// Records a store, before it takes place, to bytes that have the contents `value` where they are `written`.
    pub(crate) fn store(&mut self, by: Party, address: u64, (value, written): (&[u8], &[bool])) {
        self.time = self.time.max(LAUNCH) + 1;
        let mine = self.unreleased.entry(by.thread).or_default();
        for (at, (value, written)) in (address..).zip(value.iter().zip(written)) {
            let stores = self.bytes.entry(at).or_default();
            stores.push(Store { before: written.then_some(*value), by, time: self.time, released: None });
            if stores.len() > DEPTH {
                stores.remove(0);
            }
            mine.push(at);
        }
    }

    /// Records that a thread releases all its stores so far.
    pub(crate) fn release(&mut self, thread: u64, scope: MapScope) {
        self.changed.retain(|(_, by)| *by != thread);
        for at in self.unreleased.remove(&thread).unwrap_or_default() {
            self.release_byte(thread, at, scope);
        }
    }

    /// Records that a thread releases its stores to the map at an address, and no others.
    pub(crate) fn release_map(&mut self, thread: u64, address: u64, scope: MapScope) {
        self.changed.remove(&(address, thread));
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

    /// Records that a thread acquires the map at an address, whose bytes are now `value` where they are `written`. Later acquires take
    /// nothing away that earlier ones have seen.
    pub(crate) fn acquire(
        &mut self,
        (by, agent, races): (Party, Agent, Option<&Races>),
        scope: MapScope,
        address: u64,
        (value, written): (&[u8], &[bool]),
    ) {
        self.changed.retain(|(map, _)| *map != address);
        let mut bytes = [(0, None); MAP];
        for (at, (byte, (value, written))) in (address..).zip(bytes.iter_mut().zip(value.iter().zip(written))) {
            *byte = self.byte(by, scope, at, written.then_some(*value));
        }
        let moment = races.map(|r| r.now(agent));
        let all = self.acquired.entry((by.block, address)).or_default();
        // Other threads may still see an earlier one, and not yet this one.
        let mine = || all.iter().filter(|a| a.agent == agent);
        if let Some(last) = mine().next_back() {
            merge(&mut bytes, &last.bytes);
        }
        let same = all.iter().position(|a| a.agent == agent && a.moment == moment);
        let oldest = all.iter().position(|a| a.agent == agent).filter(|_| mine().count() == HISTORY);
        if let Some(i) = same.or(oldest) {
            all.remove(i);
        }
        all.push(Acquired { agent, moment, bytes });
    }

    /// What an acquire sees of a byte with the contents `now`.
    fn byte(&self, by: Party, scope: MapScope, at: u64, mut now: Option<u8>) -> Byte {
        for store in self.bytes.get(&at).into_iter().flatten().rev() {
            let released = store.released.is_some_and(|s| store.by.reaches(s, by));
            if released && by.reaches(scope, store.by) {
                return (store.time, now);
            }
            now = store.before;
        }
        if scope == MapScope::Device { (LAUNCH, now) } else { (0, None) }
    }

    /// The map at an address as a thread sees it, if the thread or one of its block before it has acquired it.
    pub(crate) fn seen(&self, block: u64, agent: Agent, races: Option<&Races>, address: u64) -> Option<Seen> {
        let is_before = |a: &&Acquired| match (races, a.moment) {
            (Some(races), Some(moment)) => races.is_after(agent, moment),
            (None, _) | (_, None) => true,
        };
        let mut before = self.acquired.get(&(block, address))?.iter().filter(is_before);
        let mut bytes = before.next()?.bytes;
        before.for_each(|a| merge(&mut bytes, &a.bytes));
        Some(bytes.map(|(_, value)| value))
    }
}

/// The later of two views, byte by byte.
fn merge(into: &mut [Byte; MAP], other: &[Byte; MAP]) {
    for (byte, other) in into.iter_mut().zip(other).filter(|(byte, other)| other.0 > byte.0) {
        *byte = *other;
    }
}

#[cfg(test)]
mod tests {
    use super::MapScope::{Block, Cluster, Device};
    use super::*;
    use titan_sim::engine::{Event, Observer as _, RendezvousId, SpaceId};

    const AT: u64 = 0x1000;

    fn party(thread: u64) -> Party {
        Party { thread, block: thread / 10, cluster: thread / 100 }
    }

    fn agent(thread: u64) -> Agent {
        Agent::new(usize::try_from(thread).unwrap())
    }

    /// The state of a map whose bytes are all equal.
    struct World {
        maps: Maps,
        now: u8,
        races: Races,
    }

    impl World {
        fn new() -> World {
            World { maps: Maps::default(), now: 1, races: Races::new(200, SpaceId::new(0), 0, 0) }
        }

        fn store(&mut self, by: u64, value: u8) {
            self.maps.store(party(by), AT, (&[self.now; MAP], &[true; MAP]));
            self.now = value;
        }

        fn acquire(&mut self, by: u64, scope: MapScope) -> Option<u8> {
            let who = (party(by), agent(by), Some(&self.races));
            self.maps.acquire(who, scope, AT, (&[self.now; MAP], &[true; MAP]));
            self.seen(by).unwrap()
        }

        fn seen(&self, by: u64) -> Option<Option<u8>> {
            let seen = self.maps.seen(party(by).block, agent(by), Some(&self.races), AT)?;
            assert_eq!(seen, [seen[0]; MAP]);
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

    #[test]
    fn an_acquire_is_for_the_threads_of_the_block_that_come_after_it() {
        let mut w = World::new();
        w.store(6, 2);
        w.maps.release(6, Device);
        w.acquire(5, Device);
        assert_eq!([3, 4, 15].map(|t| w.seen(t)), [None; 3]);
        let both = [agent(5), agent(3), agent(15)];
        w.races.event(&Event::Meet { rendezvous: RendezvousId::new(0), waited: &both, passed: &[] }).unwrap();
        assert_eq!([3, 4, 15].map(|t| w.seen(t)), [Some(Some(2)), None, None], "15 is in another block");
        w.store(6, 3);
        w.maps.release(6, Device);
        w.acquire(5, Device);
        assert_eq!(w.seen(5), Some(Some(3)));
        assert_eq!(w.seen(3), Some(Some(2)), "still that of before the meeting");
        w.acquire(3, Device);
        assert_eq!(w.seen(3), Some(Some(3)));
    }

    #[test]
    fn a_narrow_acquire_takes_nothing_away() {
        let mut w = World::new();
        w.store(106, 2);
        w.maps.release(106, Device);
        assert_eq!(w.acquire(5, Block), None);
        assert_eq!(w.acquire(5, Device), Some(2));
        assert_eq!(w.acquire(5, Block), Some(2));
    }
}
