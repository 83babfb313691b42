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
pub const MAP: usize = 128;
/// The number of stores that are recorded for a byte.
const DEPTH: usize = 4;
/// The number of acquires that are recorded for a thread and a map.
const HISTORY: usize = 3;

/// The threads that a fence is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapScope {
    /// `.cta`
    Block,
    /// `.cluster`
    Cluster,
    /// `.gpu` and `.sys`: there is one device.
    Device,
}

/// A thread, by its number, and the numbers of its block and its cluster in the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// The thread.
    pub thread: u64,
    /// Its block.
    pub block: u64,
    /// The cluster of its block.
    pub cluster: u64,
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
pub struct Maps {
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
    pub fn store(&mut self, by: Party, address: u64, (value, written): (&[u8], &[bool])) {
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
    pub fn release(&mut self, thread: u64, scope: MapScope) {
        self.changed.retain(|(_, by)| *by != thread);
        for at in self.unreleased.remove(&thread).unwrap_or_default() {
            self.release_byte(thread, at, scope);
        }
    }

    /// Records that a thread releases its stores to the map at an address, and no others.
    pub fn release_map(&mut self, thread: u64, address: u64, scope: MapScope) {
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
    pub fn acquire(
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
    pub fn seen(&self, block: u64, agent: Agent, races: Option<&Races>, address: u64) -> Option<Seen> {
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
