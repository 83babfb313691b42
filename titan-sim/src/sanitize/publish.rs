//! Publication: arrivals publish effects at a barrier or a word, and waits acquire them from there.
//!
//! | event | rule |
//! |---|---|
//! | arrival of an agent, release | *Frontier*: all that its partition sees, with its fences |
//! | relaxed arrival | *Fences*: what the fences of the agent have released, and the initialisations of barriers that it has fenced |
//! | bytes of a completed operation | *EffectWrites*: the effects of this operation in the block of the barrier |
//! | arrival of a completed operation | *Frontier* of its unit at the issue: operations issued before it, and what an ordered unit sees |
//! | wait that passes | the partition and its units see what the phase published; if it is relaxed, they do so at the next fence |
//! | arrival of an operation that arrives for others (`tcgen05.commit`) | those operations, and what the partition has observed of other ones |
//! | fork, join, rendezvous | the agents see what the agents of the others see, without pending asynchronous effects |
//!
//! Of memories whose operations run out of order, an arrival publishes what the partition has fenced before, and a wait makes visible what
//! the partition accesses after another fence (`known`).
//!
//! Each phase of a barrier has a slot. Two are kept: that of the current phase and that of the previous one, which late
//! waiters still read. A slot holds no list: effects carry marks, so an effect that is overwritten or read again is no longer
//! published.
//!
//! Source: Triton's sanitizer: tracking by barrier and parity (#11310), publication modes, reader generations (#11216).

use super::effect::Effect;
use super::known::Known;
use super::lanes::{Memory, Span};
use super::mask::{MAX_PARTITIONS, Mask, Partition, Unit, bit};
use super::proxy::Levels;
use super::report::Deed;
use crate::engine::{Agent, Class, OpId, Proxy, SpaceId};
use std::collections::BTreeMap;

/// A place where effects are published: a phase of a barrier, or a word of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Slot(u32);

/// The publication of an effect in a slot, with the fences that were published with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mark {
    pub(super) slot: Slot,
    pub(super) levels: Levels,
}

/// The number of publications in a slot, and how many of them each partition has acquired.
#[derive(Clone, Debug, Default)]
struct Published {
    times: u64,
    /// For each partition that published here, the version of its knowledge at that time.
    by: BTreeMap<Partition, u64>,
    /// For each partition, the number of publications that it has acquired.
    taken: BTreeMap<Partition, u64>,
    /// For each slot whose publications were copied here, their number at that time.
    copied: BTreeMap<Slot, u64>,
}

/// All slots, and the version of each partition's knowledge.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    next: u32,
    live: BTreeMap<Slot, Published>,
    words: BTreeMap<(SpaceId, u64), Slot>,
    knowledge: [u64; MAX_PARTITIONS],
    /// The set of all partitions, as bits.
    everybody: u64,
}

/// The number of marks that an effect may have before the marks of dead slots are removed.
const MARKS: usize = 6;

fn mark(e: &mut Known, slot: Slot, levels: Levels, live: &BTreeMap<Slot, Published>) {
    if let Some(m) = e.marks.iter_mut().find(|m| m.slot == slot) {
        m.levels.add(levels);
        return;
    }
    if e.marks.len() >= MARKS {
        e.marks.retain(|m| live.contains_key(&m.slot));
    }
    e.marks.push(Mark { slot, levels });
}

impl Slots {
    pub(super) fn new(partitions: usize) -> Slots {
        let everybody = if partitions >= MAX_PARTITIONS { u64::MAX } else { (1 << partitions) - 1 };
        let (live, words) = (BTreeMap::new(), BTreeMap::new());
        Slots { next: 0, live, words, knowledge: [0; MAX_PARTITIONS], everybody }
    }

    pub(super) fn open(&mut self) -> Slot {
        let slot = Slot(self.next);
        self.next = self.next.wrapping_add(1);
        self.live.insert(slot, Published::default());
        slot
    }

    pub(super) fn close(&mut self, slot: Slot) {
        self.live.remove(&slot);
    }

    /// The slot of a word of memory.
    pub(super) fn word(&mut self, space: SpaceId, address: u64) -> Slot {
        match self.words.get(&(space, address)) {
            Some(slot) => *slot,
            None => {
                let slot = self.open();
                self.words.insert((space, address), slot);
                slot
            }
        }
    }

    /// The words through which effects are published.
    pub(super) fn words(&self) -> impl Iterator<Item = ((SpaceId, u64), Slot)> {
        self.words.iter().map(|(word, slot)| (*word, *slot))
    }

    /// The word was overwritten with a value that does not depend on the previous one.
    pub(super) fn overwrite(&mut self, space: SpaceId, address: u64) {
        if let Some(slot) = self.words.remove(&(space, address)) {
            self.close(slot);
        }
    }

    /// The knowledge of a partition has changed.
    pub(super) fn learned(&mut self, p: Partition) {
        self.knowledge[p.index() % MAX_PARTITIONS] += 1;
    }

    pub(super) fn knowledge(&self, p: Partition) -> u64 {
        self.knowledge[p.index() % MAX_PARTITIONS]
    }

    /// *Frontier*: all that a partition sees. `storage`, the barrier's own bytes, has changed since the last time.
    pub(super) fn publish(&mut self, p: Partition, slot: Slot, storage: Option<Span>, memory: &mut Memory) {
        let (knows, everybody) = (self.knowledge(p), self.everybody);
        let Some(published) = self.live.get_mut(&slot) else { return };
        published.times += 1;
        let again = published.by.insert(p, knows) == Some(knows);
        let live = &self.live;
        let publish = |e: &mut Known| {
            if !e.is_published_by(p) {
                if e.seen.has(p, Unit::Base) {
                    e.sync.skipped |= bit(p);
                }
                return;
            }
            let levels = e.fences.of(p);
            // An effect that all partitions see need not be published.
            if e.seen.base() & everybody == everybody && levels.is_empty() {
                return;
            }
            mark(e, slot, levels, live);
        };
        if again {
            memory.each_in(storage.as_slice(), |_| true, publish);
        } else {
            memory.each(publish);
        }
    }

    /// *EffectWrites*: the effects of an operation in these bytes.
    pub(super) fn publish_op(&mut self, op: OpId, spans: &[Span], slot: Slot, memory: &mut Memory) {
        let Some(published) = self.live.get_mut(&slot) else { return };
        published.times += 1;
        let live = &self.live;
        memory.each_in(spans, |e| e.op == Some(op), |e| mark(e, slot, Levels::default(), live));
    }

    /// Copies the publications of one slot to another.
    pub(super) fn forward(&mut self, from: Slot, to: Slot, spans: Option<&[Span]>, memory: &mut Memory) {
        let Some(published) = self.live.get_mut(&to) else { return };
        published.times += 1;
        let live = &self.live;
        let forward = |e: &mut Known| {
            let found = e.marks.iter().find(|m| m.slot == from).copied();
            if let Some(m) = found {
                mark(e, to, m.levels, live);
            }
        };
        match spans {
            Some(spans) => memory.each_in(spans, |_| true, forward),
            None => memory.each(forward),
        }
    }

    /// Copies the publications of one word to another, if there are new ones.
    pub(super) fn forward_word(&mut self, from: (SpaceId, u64), to: (SpaceId, u64), memory: &mut Memory) {
        if let Some(slot) = self.words.get(&from).copied() {
            self.pass_on(slot, to, memory);
        }
    }

    /// Copies the publications of a slot to a word, if there are new ones.
    pub(super) fn pass_on(&mut self, slot: Slot, to: (SpaceId, u64), memory: &mut Memory) {
        let to = self.word(to.0, to.1);
        self.forward_new(slot, to, memory);
    }

    fn forward_new(&mut self, from: Slot, to: Slot, memory: &mut Memory) {
        let times = self.live.get(&from).map_or(0, |published| published.times);
        let Some(published) = self.live.get_mut(&to) else { return };
        if published.copied.insert(from, times) != Some(times) {
            self.forward(from, to, None, memory);
        }
    }

    /// *Fences*: what the fences of an agent have published at a word, and the initialisations of barriers that it has fenced.
    pub(super) fn publish_fenced(&mut self, p: Partition, fences: (SpaceId, u64), slot: Slot, memory: &mut Memory) {
        if let Some(from) = self.words.get(&fences).copied() {
            self.forward_new(from, slot, memory);
        }
        let Some(published) = self.live.get_mut(&slot) else { return };
        published.times += 1;
        let live = &self.live;
        memory.each(|e| {
            let levels = e.fences.of(p);
            if e.kind.deed == Deed::Init && !levels.is_empty() && e.seen.has(p, Unit::Base) {
                mark(e, slot, levels, live);
            }
        });
    }

    /// *Frontier* of an ordered unit: the effects that it sees now.
    pub(super) fn publish_unit(&self, p: Partition, unit: Unit, slot: Slot, memory: &mut Memory) {
        memory.each(|e| {
            if e.seen.has(p, unit) {
                let levels = e.fences.of(p);
                mark(e, slot, levels, &self.live);
            }
        });
    }

    /// *Frontier* of a class without a unit: the effects of operations of one agent that were not replaced; returns their
    /// bytes.
    pub(super) fn publish_class(
        &self,
        (agent, class): (Agent, Class),
        spans: &[Span],
        slot: Slot,
        memory: &mut Memory,
    ) -> Vec<Span> {
        let mut left = Vec::new();
        for span in spans {
            let mut there = false;
            let own = |e: &Effect| {
                let is = e.side.agent == agent && e.side.class == Some(class);
                there |= is;
                is
            };
            memory.each_in(&[*span], own, |e| mark(e, slot, Levels::default(), &self.live));
            left.extend(there.then_some(*span));
        }
        left
    }

    /// What other partitions have done and this one has observed.
    pub(super) fn publish_others(&self, p: Partition, slot: Slot, memory: &mut Memory) {
        // Arrivals of operations that were started after these accesses carry them, with or without fences.
        let seen: Vec<bool> = memory.records().all().iter().map(|known| known.seen.has(p, Unit::Base)).collect();
        let meant = |e: &Effect| e.side.partition != p && seen.get(e.known.index()) == Some(&true);
        memory.each_effect(meant, |e| {
            let levels = e.fences.of(p);
            mark(e, slot, levels, &self.live);
        });
    }

    /// A partition acquires what is published.
    pub(super) fn take(&mut self, slot: Slot, p: Partition, memory: &mut Memory) {
        let Some(published) = self.live.get_mut(&slot) else { return };
        if published.taken.insert(p, published.times) == Some(published.times) {
            return;
        }
        self.learned(p);
        memory.each(|e| {
            let found = e.marks.iter().find(|m| m.slot == slot).map(|m| m.levels);
            if let Some(levels) = found {
                e.acquire(p);
                e.fences.add(bit(p), levels);
            }
        });
    }

    /// Some partitions acquire what others see: what one of `from` sees, all of `into` see.
    pub(super) fn share(&mut self, from: u64, into: u64, memory: &mut Memory) {
        for i in (0..MAX_PARTITIONS).filter(|i| into >> i & 1 == 1) {
            self.learned(Partition::new(i));
        }
        memory.each(|e| {
            if e.kind.out_of_order && e.seen.base() & e.sync.before & from == 0 {
                e.sync.skipped |= e.seen.base() & from;
                return;
            }
            if e.seen.base() & from != 0 {
                if e.kind.proxy == Proxy::Generic {
                    let levels = e.fences.of_any(from);
                    e.fences.add(into, levels);
                }
                e.seen.add(Mask::all_of(into));
                if e.kind.out_of_order {
                    e.sync.before |= into;
                }
            }
        });
    }
}
