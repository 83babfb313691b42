//! The accesses that threads may have made since their last barrier.

use super::numbered::{Number, Numbered};
use super::slots::Slot;
use crate::collections::SortedSet;
use crate::ir::{Kernel, NvGroup, NvOp, OpKind, TileShape, Value};

/// The memory that an operation accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bytes {
    /// Bytes of shared memory.
    Shared {
        /// The number of the region.
        region: usize,
        /// The byte range of the region in shared memory.
        whole: (u32, u32),
        /// The accessed bytes of a part.
        part: (u32, u32),
        /// The slot of the part, if it is known.
        slot: Option<Slot>,
        /// The index that selects the part, as a value of its own iteration.
        index: Option<Value>,
    },
    /// An output, and the column of its tiles, if that is known.
    Tensor(usize, Option<Column>),
    /// The elements of an output that other iterations of a loop over tiles write: not those of the current iteration (`super::tiles`).
    OtherTiles(usize),
}

/// What a passage means for the tiles of outputs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn<'t> {
    /// The next iteration of a loop over tiles begins, in which these outputs are written elsewhere.
    Next(&'t SortedSet<usize>),
    /// The loop over tiles, or the role, is left.
    Left,
    /// The iteration of the loop over tiles, if there is one around, stays the same.
    Same,
}

/// A column of tiles of an output: the value from which its number is counted, and the distance from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Column {
    /// The output or view of it, the number of the row, and the extents of the tiles. Columns with others are not comparable.
    pub(super) of: (Value, Value, TileShape),
    /// The base; `None` if the number is counted from 0.
    pub(super) base: Option<Value>,
    pub(super) number: i64,
}

impl Bytes {
    /// Whether both may overlap.
    pub(super) fn overlaps(self, other: Bytes) -> bool {
        match (self, other) {
            (Bytes::Tensor(a, of), Bytes::Tensor(b, other)) => {
                let apart = |(x, y): (Column, Column)| x.of == y.of && x.base == y.base && x.number != y.number;
                a == b && !of.zip(other).is_some_and(apart)
            }
            // Of two sets of other tiles, nothing is known.
            (Bytes::OtherTiles(a), Bytes::OtherTiles(b)) => a == b,
            // An access by its tile is one of the current iteration: those of earlier ones were renamed.
            (Bytes::Tensor(..), Bytes::OtherTiles(_)) | (Bytes::OtherTiles(_), Bytes::Tensor(..)) => false,
            (Bytes::Tensor(..) | Bytes::OtherTiles(_), Bytes::Shared { .. })
            | (Bytes::Shared { .. }, Bytes::Tensor(..) | Bytes::OtherTiles(_)) => false,
            (
                Bytes::Shared { region, whole, part, slot, .. },
                Bytes::Shared { region: of, whole: all, part: bytes, slot: at, .. },
            ) => {
                let common = |a: (u32, u32), b: (u32, u32)| a.0 < b.1 && b.0 < a.1;
                // Within one region, parts are compared by slots and by bytes. Different regions are compared by all of
                // their addresses, since nothing relates their parts.
                let apart = slot.zip(at).is_some_and(|(a, b)| a.is_apart(b));
                if region == of { !apart && common(part, bytes) } else { common(whole, all) }
            }
        }
    }

    /// The same memory with another name for its slot, after a passage that means this for tiles of outputs.
    pub(super) fn renamed(self, rename: &dyn Fn(Slot) -> Option<Slot>, turn: Turn<'_>) -> Bytes {
        match self {
            Bytes::Shared { region, whole, part, slot, .. } => {
                Bytes::Shared { region, whole, part, slot: slot.and_then(rename), index: None }
            }
            // In another iteration, the same values may be other numbers.
            Bytes::Tensor(param, _) => match turn {
                Turn::Next(divided) if divided.contains(&param) => Bytes::OtherTiles(param),
                Turn::Next(_) | Turn::Left | Turn::Same => Bytes::Tensor(param, None),
            },
            Bytes::OtherTiles(param) => match turn {
                Turn::Left => Bytes::Tensor(param, None),
                Turn::Next(_) | Turn::Same => self,
            },
        }
    }
}

/// An access, and whether it writes.
pub(super) type Touch = (Bytes, bool);

/// The number of commit groups that are tracked separately, whatever waits say.
const GROUPS: usize = 70;

/// For each class of commit groups, the greatest number of groups that a wait of the kernel leaves in flight, at most [`GROUPS`] - 1.
///
/// Every wait of a class completes all groups that are older than that, so that these are tracked as one. Without that limit, a loop that
/// commits a group in each iteration, and does not wait, would be walked as often as there are groups.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MostInFlight([usize; 3]);

impl MostInFlight {
    pub(super) fn of(kernel: &Kernel) -> Self {
        let mut most = MostInFlight::default();
        kernel.walk(&mut |_, op| {
            if let OpKind::Nv(NvOp::WaitGroup { group, n, .. }) = op.kind {
                let of = &mut most.0[class_index(group)];
                *of = (*of).max(n as usize).min(GROUPS - 1);
            }
        });
        most
    }

    pub(super) const fn of_class(self, class: NvGroup) -> usize {
        self.0[class_index(class)]
    }
}

const fn class_index(class: NvGroup) -> usize {
    match class {
        NvGroup::CpAsync => 0,
        NvGroup::Wgmma => 1,
        NvGroup::BulkStore => 2,
    }
}

/// An access, and what follows for its slot from the rules of rings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    touch: Number,
    /// The slots of stages that differ from the accessed slot: the slot was in use when they were acquired, or they were in use when it was
    /// acquired.
    apart: SortedSet<Value>,
    /// Whether a stage of the ring was released since, which may be this one.
    released: bool,
}

impl Mark {
    fn conflicts(&self, all: &Numbered, touch: Number) -> bool {
        if !all.conflict(touch, self.touch) {
            return false;
        }
        let index = match all.bytes(touch) {
            Bytes::Shared { region, index, .. } => index.filter(|_| all.region(self.touch) == Some(region)),
            Bytes::Tensor(..) | Bytes::OtherTiles(_) => None,
        };
        !index.is_some_and(|index| self.apart.contains(&index))
    }
}

/// The accesses that threads may have made since their last barrier, and the copies in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The accesses since the last barrier.
    touched: SortedSet<Mark>,
    /// The stages that were waited for and not yet released, by ring and slot.
    ready: SortedSet<(usize, Value)>,
    /// The accesses in flight of each class ([`class_index`]).
    in_flight: [InFlight; 3],
}

/// Asynchronous accesses of a class in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct InFlight {
    /// The accesses of the open commit group.
    open: SortedSet<Number>,
    /// The accesses of committed groups, the newest group first; the last one may be several groups.
    groups: Vec<SortedSet<Number>>,
}

impl State {
    /// Whether an access needs a barrier before it.
    ///
    /// Two accesses to one ring whose slots cannot be compared by their numbers may still be known to be apart, by the claims about the ring
    /// between them:
    ///
    /// ```text
    /// load of slot %a              marked; %a was waited for and is not released
    /// claim acquired %b            a slot is given out only when it is free: %b is not %a, which is noted in the mark of the load
    /// copy to slot %b              so no barrier is needed here
    /// claim released %a            from here on, the next acquired slot may be %a again
    /// ```
    pub(super) fn conflicts(&self, all: &Numbered, touch: Number) -> bool {
        self.touched.iter().any(|mark| mark.conflicts(all, touch))
    }

    /// Updates the marks of accesses to a ring.
    fn change(&mut self, all: &Numbered, ring: usize, change: impl Fn(&mut Mark)) {
        let marks = std::mem::take(&mut self.touched);
        self.touched = marks
            .into_iter()
            .map(|mut mark| {
                if all.region(mark.touch) == Some(ring) {
                    change(&mut mark);
                }
                mark
            })
            .collect();
    }

    /// Records that a slot is acquired: it differs from all slots that were accessed and not released since.
    pub(super) fn acquired(&mut self, all: &Numbered, ring: usize, slot: Value) {
        self.change(all, ring, |mark| {
            // Until the release of the accessed stage, its slot is in use, and what is acquired is another one. After
            // it, the slot may be the one that is acquired: what was noted of this value, in an earlier round, holds no
            // longer.
            if mark.released {
                mark.apart.remove(&slot);
            } else {
                mark.apart.insert(slot);
            }
        });
    }

    /// Records that a stage was waited for.
    pub(super) fn is_ready(&mut self, all: &Numbered, ring: usize, slot: Value) {
        // The value stands for another stage from here on, so that what was known of it is forgotten.
        self.change(all, ring, |mark| mark.apart.retain(|other| *other != slot));
        self.ready.insert((ring, slot));
    }

    /// Records that a stage is released.
    pub(super) fn released(&mut self, all: &Numbered, ring: usize, slot: Value) {
        // Every mark of the ring: which of its stages is released is not compared.
        self.change(all, ring, |mark| mark.released = true);
        self.ready.remove(&(ring, slot));
    }

    pub(super) fn touch(&mut self, all: &Numbered, touch: Number) {
        let mut apart = SortedSet::new();
        if let Bytes::Shared { region, index: Some(index), .. } = all.bytes(touch) {
            // Stages that are in use at the same time have different slots.
            let others = self.ready.iter().filter(|(ring, slot)| *ring == region && *slot != index);
            apart.extend(others.map(|(_, slot)| *slot));
        }
        self.touched.insert(Mark { touch, apart, released: false });
    }

    /// Records a barrier of all threads.
    pub(super) fn barrier(&mut self) {
        self.touched.clear();
    }

    /// Records the start of a copy, whose accesses stay in flight until it is waited for.
    pub(super) fn copy(&mut self, class: NvGroup, touch: Number) {
        self.of(class).open.insert(touch);
    }

    const fn of(&mut self, class: NvGroup) -> &mut InFlight {
        &mut self.in_flight[class_index(class)]
    }

    /// Commits the open group of a class, of which waits leave at most `most` groups in flight.
    pub(super) fn commit(&mut self, class: NvGroup, most: usize) {
        // Groups beyond the oldest one that any wait can tell apart are one set, so that the state is finite in a loop without waits.
        let InFlight { open, groups } = self.of(class);
        // Example with most = 1: groups [{c}, {b}], newest first, and a in the open one. After the commit: [{a}, {c,
        // b}]. A wait for all but one completes both c and b, as it would if they were kept apart.
        groups.insert(0, std::mem::take(open));
        let older = groups.split_off(groups.len().min(most + 1));
        if let Some(last) = groups.last_mut() {
            last.extend(older.into_iter().flatten());
        }
    }

    /// Records that the thread's own copies are complete, except those of the `n` newest groups; with `read`, that they have read their
    /// sources, while they may still write. Returns the accesses that they may have made until now.
    pub(super) fn wait(&mut self, all: &Numbered, class: NvGroup, (n, read): (usize, bool)) -> SortedSet<Number> {
        let groups = &mut self.of(class).groups;
        let complete = |access: &Number| !read || !all.writes(*access);
        if n >= GROUPS {
            // It is unknown which of the oldest groups are complete.
            let oldest = groups.get(GROUPS - 1).into_iter().flatten();
            return oldest.copied().filter(complete).collect();
        }
        // The first n groups are the newest, and stay; all behind them are complete.
        let waited = groups.split_off(n.min(groups.len())).into_iter().flatten();
        let (done, writing): (SortedSet<Number>, SortedSet<Number>) = waited.partition(complete);
        if !writing.is_empty() {
            // They are at least this old.
            groups.push(writing);
        }
        done
    }

    /// The state with only the copies in flight, and no accesses since the last barrier.
    pub(super) fn in_flight(&self) -> State {
        State { touched: SortedSet::new(), ready: SortedSet::new(), ..self.clone() }
    }

    /// Replaces the copies in flight by those of another state.
    pub(super) fn replace_in_flight(&mut self, other: State) {
        self.in_flight = other.in_flight;
    }

    /// The join of two control-flow paths.
    pub(super) fn join(&mut self, other: State) {
        // What may have happened on one of the paths, may have happened; what must be known (stages that are ready) has to hold on both.
        // Groups are joined by age: a wait for all but `n` groups completes at least those that have this age on every path.
        self.touched.extend(other.touched);
        self.ready.retain(|stage| other.ready.contains(stage));
        for (own, other) in self.in_flight.iter_mut().zip(other.in_flight) {
            own.open.extend(other.open);
            for (age, group) in other.groups.into_iter().enumerate() {
                match own.groups.get_mut(age) {
                    Some(own) => own.extend(group),
                    None => own.groups.push(group),
                }
            }
        }
    }

    /// The same state with other names of slots. Values that refer to stages and are passed on get their new names in addition; the others
    /// still refer to a stage that was waited for, which matters only where they are in scope.
    pub(super) fn renamed(&self, mut rename: impl FnMut(Number) -> Number, names: &[(Value, Value)]) -> State {
        let named = |value: Value| names.iter().filter(move |(old, _)| *old == value).map(|(_, new)| *new);
        // In another iteration, the same values refer to other stages. At the head of a loop, `ready` contains the values that are passed
        // to it and those from outside; a value defined in the loop is in it only if it is on every path to the head.
        let mark = |m: &Mark| {
            let apart = m.apart.iter().flat_map(|value| named(*value)).collect();
            Mark { touch: rename(m.touch), apart, released: m.released }
        };
        let touched = self.touched.iter().map(mark).collect();
        let mut ready = self.ready.clone();
        ready.extend(self.ready.iter().flat_map(|(ring, value)| named(*value).map(|new| (*ring, new))));
        let mut all = |set: &SortedSet<Number>| set.iter().map(|copy| rename(*copy)).collect();
        let in_flight = self.in_flight.each_ref();
        let in_flight =
            in_flight.map(|own| InFlight { open: all(&own.open), groups: own.groups.iter().map(&mut all).collect() });
        State { touched, ready, in_flight }
    }
}

/// Joins the state of another path, if that path is reachable.
pub(super) fn join(to: &mut Option<State>, from: State) {
    match to {
        Some(state) => state.join(from),
        None => *to = Some(from),
    }
}
