//! What threads may have done since their last barrier.

use super::slots::Slot;
use crate::ir::Value;
use std::collections::BTreeSet;

/// Memory that an operation touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bytes {
    /// Bytes of shared memory.
    Shared {
        /// The region, by its number.
        region: usize,
        /// Where the region lies.
        whole: (u32, u32),
        /// Which bytes of a part are touched.
        part: (u32, u32),
        /// Which part, if it is known.
        slot: Option<Slot>,
        /// The value that says so, in the iteration in which it does.
        index: Option<Value>,
    },
    /// An output.
    Tensor(usize),
}

impl Bytes {
    /// Whether both may be the same memory.
    fn meets(self, other: Bytes) -> bool {
        match (self, other) {
            (Bytes::Tensor(a), Bytes::Tensor(b)) => a == b,
            (Bytes::Tensor(_), Bytes::Shared { .. }) | (Bytes::Shared { .. }, Bytes::Tensor(_)) => false,
            (
                Bytes::Shared { region, whole, part, slot, .. },
                Bytes::Shared { region: of, whole: all, part: bytes, slot: at, .. },
            ) => {
                let common = |a: (u32, u32), b: (u32, u32)| a.0 < b.1 && b.0 < a.1;
                let apart = slot.zip(at).is_some_and(|(a, b)| a.is_apart(b));
                if region == of { !apart && common(part, bytes) } else { common(whole, all) }
            }
        }
    }

    /// The same memory, its slot called otherwise.
    pub(super) fn renamed(self, rename: &dyn Fn(Slot) -> Option<Slot>) -> Bytes {
        match self {
            Bytes::Shared { region, whole, part, slot, .. } => {
                Bytes::Shared { region, whole, part, slot: slot.and_then(rename), index: None }
            }
            Bytes::Tensor(_) => self,
        }
    }
}

/// An access, and whether it writes.
pub(super) type Touch = (Bytes, bool);

/// Commit groups that are told apart; older ones are waited for together.
const GROUPS: usize = 70;

/// What was touched, and what is known of it by the rules of rings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    touch: Touch,
    /// Stages of the ring that are surely not the one that was touched: it was in use when they were acquired, or they when it
    /// was. By their slots.
    apart: BTreeSet<Value>,
    /// A stage of the ring has been released since, perhaps this one.
    released: bool,
}

impl Mark {
    fn is_of(&self, ring: usize) -> bool {
        matches!(self.touch.0, Bytes::Shared { region, .. } if region == ring)
    }

    fn conflicts(&self, (bytes, writes): Touch) -> bool {
        let index =
            if let Bytes::Shared { region, index, .. } = bytes { index.filter(|_| self.is_of(region)) } else { None };
        let apart = index.is_some_and(|index| self.apart.contains(&index));
        (writes || self.touch.1) && !apart && bytes.meets(self.touch.0)
    }
}

/// What threads may have done since their last barrier, and what is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// What was touched since the last barrier.
    touched: BTreeSet<Mark>,
    /// The stages that have been waited for and not released, by ring and slot.
    ready: BTreeSet<(usize, Value)>,
    /// What the copies of the open commit group read and write.
    open: BTreeSet<Touch>,
    /// What the copies of closed groups read and write, the newest group first.
    groups: Vec<BTreeSet<Touch>>,
}

impl State {
    /// Whether an access needs a barrier in front of it.
    pub(super) fn conflicts(&self, touch: Touch) -> bool {
        self.touched.iter().any(|mark| mark.conflicts(touch))
    }

    /// Changes what is known of what was touched of a ring.
    fn change(&mut self, ring: usize, change: impl Fn(&mut Mark)) {
        let marks = std::mem::take(&mut self.touched);
        self.touched = marks
            .into_iter()
            .map(|mut mark| {
                if mark.is_of(ring) {
                    change(&mut mark);
                }
                mark
            })
            .collect();
    }

    /// A stage is acquired: it is none that was touched, and not released since.
    pub(super) fn acquired(&mut self, ring: usize, slot: Value) {
        self.change(ring, |mark| {
            if mark.released {
                mark.apart.remove(&slot);
            } else {
                mark.apart.insert(slot);
            }
        });
    }

    /// A stage was waited for.
    pub(super) fn is_ready(&mut self, ring: usize, slot: Value) {
        self.change(ring, |mark| mark.apart.retain(|other| *other != slot));
        self.ready.insert((ring, slot));
    }

    /// A stage is released.
    pub(super) fn released(&mut self, ring: usize, slot: Value) {
        self.change(ring, |mark| mark.released = true);
        self.ready.remove(&(ring, slot));
    }

    /// What copies may be touching, but for some regions.
    fn under_way_but<'s>(&'s self, regions: &'s BTreeSet<usize>) -> impl Iterator<Item = &'s Touch> {
        let all = self.open.iter().chain(self.groups.iter().flatten());
        all.filter(|(bytes, _)| !matches!(bytes, Bytes::Shared { region, .. } if regions.contains(region)))
    }

    /// Whether a copy may be touching these bytes too, and one of both writes.
    pub(super) fn is_under_way(&self, (bytes, writes): Touch, but: &BTreeSet<usize>) -> bool {
        self.under_way_but(but).any(|(other, wrote)| (writes || *wrote) && bytes.meets(*other))
    }

    /// Whether any copy is under way that writes shared memory.
    pub(super) fn has_copies(&self, but: &BTreeSet<usize>) -> bool {
        self.under_way_but(but).any(|(_, writes)| *writes)
    }

    pub(super) fn touch(&mut self, touch: Touch) {
        let mut apart = BTreeSet::new();
        if let Bytes::Shared { region, index: Some(index), .. } = touch.0 {
            // Stages that are in use at once are different ones.
            let others = self.ready.iter().filter(|(ring, slot)| *ring == region && *slot != index);
            apart.extend(others.map(|(_, slot)| *slot));
        }
        self.touched.insert(Mark { touch, apart, released: false });
    }

    /// Everybody has come to a barrier.
    pub(super) fn meet(&mut self) {
        self.touched.clear();
    }

    /// A copy is under way that will touch something.
    pub(super) fn copy(&mut self, touch: Touch) {
        self.open.insert(touch);
    }

    pub(super) fn commit(&mut self) {
        self.groups.insert(0, std::mem::take(&mut self.open));
        if let Some(oldest) = self.groups.get(GROUPS).cloned() {
            self.groups.truncate(GROUPS);
            self.groups.last_mut().into_iter().for_each(|g| g.extend(oldest.iter().copied()));
        }
    }

    /// A thread's own copies are done, but those of the `n` newest groups: what they may have touched until now.
    pub(super) fn wait(&mut self, n: usize) -> BTreeSet<Touch> {
        let done = if n < GROUPS {
            self.groups.split_off(n.min(self.groups.len()))
        } else {
            // Of the oldest groups it is not known which are done.
            self.groups.get(GROUPS - 1).cloned().into_iter().collect()
        };
        done.into_iter().flatten().collect()
    }

    /// What is under way here, where nothing has been touched since the last barrier.
    pub(super) fn under_way(&self) -> State {
        State { touched: BTreeSet::new(), ready: BTreeSet::new(), ..self.clone() }
    }

    /// Only what is under way there is under way here.
    pub(super) fn take_under_way(&mut self, other: State) {
        (self.open, self.groups) = (other.open, other.groups);
    }

    /// What may have been done on either of two ways.
    pub(super) fn join(&mut self, other: State) {
        self.touched.extend(other.touched);
        self.ready.retain(|stage| other.ready.contains(stage));
        self.open.extend(other.open);
        for (age, group) in other.groups.into_iter().enumerate() {
            match self.groups.get_mut(age) {
                Some(own) => own.extend(group),
                None => self.groups.push(group),
            }
        }
    }

    /// The same, slots called otherwise. Of the values that name stages, those that are handed on get their new names too; others
    /// go on naming a stage that is waited for, which matters only where they are seen.
    pub(super) fn renamed(&self, rename: &dyn Fn(Slot) -> Option<Slot>, names: &[(Value, Value)]) -> State {
        let named = |value: Value| names.iter().filter(move |(old, _)| *old == value).map(|(_, new)| *new);
        let all = |set: &BTreeSet<Touch>| set.iter().map(|(b, writes)| (b.renamed(rename), *writes)).collect();
        // In another iteration the same values name other stages: a loop that is entered has in `ready` what is handed to it and
        // what is known outside, and a value of its own is in there only if every way to its head has it there.
        let mark = |m: &Mark| {
            let (bytes, writes) = m.touch;
            let apart = m.apart.iter().flat_map(|value| named(*value)).collect();
            Mark { touch: (bytes.renamed(rename), writes), apart, released: m.released }
        };
        let touched = self.touched.iter().map(mark).collect();
        let mut ready = self.ready.clone();
        ready.extend(self.ready.iter().flat_map(|(ring, value)| named(*value).map(|new| (*ring, new))));
        State { touched, ready, open: all(&self.open), groups: self.groups.iter().map(all).collect() }
    }
}

/// Adds what holds on another way, if that is taken.
pub(super) fn join(to: &mut Option<State>, from: State) {
    match to {
        Some(state) => state.join(from),
        None => *to = Some(from),
    }
}
