//! The hash of a state: everything that determines future findings, and nothing else.
//!
//! Places, tags and addresses in reports are left out. Slots are identified by their owners, groups are counted from the
//! last complete one, and operations are identified by their agent, class and order: two interleavings that lead to the same
//! knowledge have the same hash.

use super::Sanitizer;
use super::effect::Effect;
use super::known::Known;
use super::publish::Slot;
use crate::engine::{BarrierId, OpId, Proxy, SpaceId, StateHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// The owner of a slot: a phase of a barrier, or a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Owner {
    Phase(BarrierId, u8),
    Word(SpaceId, u64),
    Op(usize),
}

/// Numbers of slots and operations that do not depend on the order of their creation.
struct Canon {
    slots: BTreeMap<Slot, Owner>,
    ops: BTreeMap<OpId, usize>,
}

impl Sanitizer {
    fn canon(&self) -> Canon {
        let mut order: Vec<_> = self.ops.iter().map(|(id, u)| (u.agent, u.class, *id)).collect();
        order.sort_unstable();
        let ops: BTreeMap<OpId, usize> = order.iter().enumerate().map(|(i, (_, _, id))| (*id, i)).collect();
        let mut slots: BTreeMap<Slot, Owner> = BTreeMap::new();
        for (barrier, life) in self.lives.iter() {
            slots.extend(life.slots().map(|(parity, slot)| (slot, Owner::Phase(barrier, parity))));
        }
        slots.extend(self.slots.words().map(|((space, address), slot)| (slot, Owner::Word(space, address))));
        let frontiers = self.ops.iter().filter_map(|(id, u)| Some((u.frontier.as_ref()?.0, *ops.get(id)?)));
        slots.extend(frontiers.map(|(slot, op)| (slot, Owner::Op(op))));
        Canon { slots, ops }
    }

    /// The hash of an effect; `known` has those of the records.
    fn hash_of(&self, e: &Effect, canon: &Canon, known: &[u128]) -> u128 {
        let mut state = StateHasher::default();
        let state = &mut state;
        let side = &e.side;
        (side.partition, side.unit, side.class, side.deed, side.proxy == Proxy::Generic, e.strong).hash(state);
        // A completed operation no longer has an owner.
        e.op.and_then(|op| canon.ops.get(&op)).hash(state);
        if let (Some(group), Some(class)) = (e.group, side.class) {
            (side.agent, group.checked_sub(self.commits.complete(side.agent, class))).hash(state);
        }
        known.get(e.known.index()).hash(state);
        state.finish128()
    }
}

impl Canon {
    fn hash_of(&self, known: &Known) -> u128 {
        let mut marks: Vec<_> =
            known.marks.iter().filter_map(|m| Some((*self.slots.get(&m.slot)?, m.levels))).collect();
        marks.sort_unstable();
        let sync = (known.sync.before, known.sync.after);
        StateHasher::of(&(known.seen, &known.fences, marks, sync))
    }
}

impl Hash for Sanitizer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let canon = self.canon();
        let known: Vec<u128> = self.memory.records().all().iter().map(|known| canon.hash_of(known)).collect();
        // Effects of one lane are sorted, since readers are recorded in the order of their accesses.
        let mut effects: Vec<_> = self.memory.iter().map(|(span, e)| (span, self.hash_of(e, &canon, &known))).collect();
        effects.sort_unstable();
        effects.hash(state);
        for (barrier, life) in self.lives.iter() {
            (barrier, &life.state, life.storage).hash(state);
        }
        (self.commits.open_groups(), &self.waiting, &self.over, self.findings.len()).hash(state);
        for (id, op) in &canon.ops {
            let signals = self.ops.get(id).map(|u| &u.signals);
            (op, signals.map(|s| s.iter().map(|(b, _)| *b).collect::<Vec<_>>())).hash(state);
        }
    }
}
