//! What threads may have done since their last barrier.

use super::slots::Slot;
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
                Bytes::Shared { region, whole, part, slot },
                Bytes::Shared { region: of, whole: all, part: bytes, slot: at },
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
            Bytes::Shared { region, whole, part, slot } => {
                Bytes::Shared { region, whole, part, slot: slot.and_then(rename) }
            }
            Bytes::Tensor(_) => self,
        }
    }
}

/// An access, and whether it writes.
pub(super) type Touch = (Bytes, bool);

/// Commit groups that are told apart; older ones are waited for together.
const GROUPS: usize = 70;

/// What threads may have done since their last barrier, and what is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// What was touched since the last barrier.
    touched: BTreeSet<Touch>,
    /// What the copies of the open commit group read and write.
    open: BTreeSet<Touch>,
    /// What the copies of closed groups read and write, the newest group first.
    groups: Vec<BTreeSet<Touch>>,
}

impl State {
    /// Whether an access needs a barrier in front of it.
    pub(super) fn conflicts(&self, (bytes, writes): Touch) -> bool {
        self.touched.iter().any(|(other, wrote)| (writes || *wrote) && bytes.meets(*other))
    }

    pub(super) fn touch(&mut self, touch: Touch) {
        self.touched.insert(touch);
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
        State { touched: BTreeSet::new(), ..self.clone() }
    }

    /// Only what is under way there is under way here.
    pub(super) fn take_under_way(&mut self, other: State) {
        (self.open, self.groups) = (other.open, other.groups);
    }

    /// What may have been done on either of two ways.
    pub(super) fn join(&mut self, other: State) {
        self.touched.extend(other.touched);
        self.open.extend(other.open);
        for (age, group) in other.groups.into_iter().enumerate() {
            match self.groups.get_mut(age) {
                Some(own) => own.extend(group),
                None => self.groups.push(group),
            }
        }
    }

    /// The same, slots called otherwise.
    pub(super) fn renamed(&self, rename: &dyn Fn(Slot) -> Option<Slot>) -> State {
        let all = |set: &BTreeSet<Touch>| set.iter().map(|(b, writes)| (b.renamed(rename), *writes)).collect();
        State { touched: all(&self.touched), open: all(&self.open), groups: self.groups.iter().map(all).collect() }
    }
}

/// Adds what holds on another way, if that is taken.
pub(super) fn join(to: &mut Option<State>, from: State) {
    match to {
        Some(state) => state.join(from),
        None => *to = Some(from),
    }
}
