//! What may be in flight at a point of a kernel, and how many groups are certainly younger.
//!
//! Deliberately absent: control flow (`super::walk`).

use crate::collections::{SortedMap, SortedSet};
use crate::ir::{NvGroup, Pipe, Value};
use std::collections::VecDeque;

/// The state of a ring's stages.
///
/// The stage that a wait names is not known by its value: the operation that fills it has no result that the reading side could name. It
/// is known by its age. `ahead` stages are filled and not yet claimed for reading, so the next claim is of the stage of age `ahead - 1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ring {
    /// The number of stages that are filled (or skipped) and not yet claimed; `None` if that differs between paths.
    pub(super) ahead: Option<i64>,
    /// For the latest stages, the latest first: the number of groups that are certainly younger.
    younger: VecDeque<u32>,
}

/// The state at a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    rings: Vec<Ring>,
    /// The claims of stages that are pending, each with its ring and the age of its stage.
    claims: SortedMap<Value, (Pipe, i64)>,
    /// The buffers to which copies were started that no group contains yet.
    open: SortedSet<Value>,
    /// What groups in flight access, with the number of groups of their class that are certainly younger: buffers of copies and of bulk
    /// stores, results of MMAs, and permissions to read the stages that MMAs read.
    flights: SortedMap<(NvGroup, Value), u32>,
    /// Tiles in registers that MMAs in flight read, with the number of MMAs that are certainly younger than the last that does. Unlike `flights`,
    /// they stand for registers and not for what is in them, so that no other value takes their place.
    operands: SortedMap<Value, u32>,
}

impl State {
    pub(super) fn new(rings: usize) -> State {
        State { rings: vec![Ring { ahead: Some(0), younger: VecDeque::new() }; rings], ..State::default() }
    }

    /// The state after a join with another path.
    pub(super) fn join(&mut self, other: &State) {
        for (a, b) in self.rings.iter_mut().zip(&other.rings) {
            // Different numbers of stages ahead: the next claim is of another stage on each path, so its age is
            // unknown, and waits for it wait for all groups.
            if a.ahead != b.ahead {
                a.ahead = None;
            }
            // A stage that one path has not filled has no age there. The lower of two ages is the one that holds on
            // both paths.
            a.younger.truncate(b.younger.len());
            for (x, y) in a.younger.iter_mut().zip(&b.younger) {
                *x = (*x).min(*y);
            }
        }
        self.claims.retain(|v, at| other.claims.get(v) == Some(at));
        self.open.extend(other.open.iter().copied());
        for (key, younger) in &other.flights {
            let own = self.flights.entry(*key).or_insert(*younger);
            *own = (*own).min(*younger);
        }
        for (tile, younger) in &other.operands {
            let own = self.operands.entry(*tile).or_insert(*younger);
            *own = (*own).min(*younger);
        }
    }

    /// Commits a group of copies that fills a stage of each of these rings, in this order.
    pub(super) fn commit_stages(&mut self, filled: &[Pipe], deepest: usize) {
        self.commit(NvGroup::CpAsync);
        for ring in &mut self.rings {
            // One more group is younger than each that was committed before, whichever rings they fill.
            ring.younger.iter_mut().for_each(|n| *n += 1);
        }
        for pipe in filled {
            let Some(ring) = self.rings.get_mut(pipe.index()) else { continue };
            ring.younger.push_front(0);
            ring.younger.truncate(deepest);
            ring.ahead = ring.ahead.map(|n| n + 1);
            for (p, age) in self.claims.values_mut() {
                if p == pipe {
                    *age += 1;
                }
            }
        }
    }

    /// Commits a group of a class. The open copies are in it, if it is one of copies; other classes name what is in it afterwards
    /// ([`State::starts`]).
    pub(super) fn commit(&mut self, class: NvGroup) {
        for ((of, _), younger) in self.flights.iter_mut() {
            // Exact on every path through the commit: the only place where numbers rise.
            *younger += u32::from(*of == class);
        }
        self.operands.values_mut().for_each(|younger| *younger += u32::from(class == NvGroup::Wgmma));
        if class == NvGroup::CpAsync {
            let open = std::mem::take(&mut self.open);
            self.flights.extend(open.into_iter().map(|buffer| ((class, buffer), 0)));
        }
    }

    /// Notes that the youngest group of a class accesses a value.
    pub(super) fn starts(&mut self, class: NvGroup, value: Value) {
        self.flights.insert((class, value), 0);
    }

    /// Notes that the youngest MMA reads a tile in registers.
    pub(super) fn reads(&mut self, tile: Value) {
        self.operands.insert(tile, 0);
    }

    /// The number of MMAs that may stay in flight after a wait for those that read one of these tiles in registers; `None` if none does.
    pub(super) fn younger_than_reads(&self, tiles: &[Value]) -> Option<u32> {
        tiles.iter().filter_map(|tile| self.operands.get(tile)).copied().min()
    }

    /// Notes that a permission to read a stage was put together again from parts, which MMAs with so many younger groups read.
    pub(super) fn joined(&mut self, whole: Value, younger: u32) {
        self.flights.insert((NvGroup::Wgmma, whole), younger);
    }

    /// Notes a copy to a buffer, in the open group.
    pub(super) fn copies(&mut self, buffer: Value) {
        self.open.insert(buffer);
    }

    /// Whether a copy to one of these buffers, or to any buffer if there are none, is not committed yet.
    pub(super) fn is_open(&self, buffers: &[Value]) -> bool {
        if buffers.is_empty() { !self.open.is_empty() } else { buffers.iter().any(|buffer| self.open.contains(buffer)) }
    }

    /// The number of groups that may stay in flight after a wait for one of these values, or for all if there are none; `None` if nothing
    /// needs to be waited for.
    pub(super) fn younger(&self, class: NvGroup, values: &[Value]) -> Option<u32> {
        let wanted = |(of, value): &(NvGroup, Value)| *of == class && (values.is_empty() || values.contains(value));
        self.flights.iter().filter(|(key, _)| wanted(key)).map(|(_, younger)| *younger).min()
    }

    /// A number of groups of a class that a wait may leave in flight so that it waits for nothing.
    pub(super) fn all(&self, class: NvGroup) -> u32 {
        let of_class = self.flights.iter().filter(|((of, _), _)| *of == class).map(|(_, younger)| younger);
        let operands = self.operands.values().filter(|_| class == NvGroup::Wgmma);
        of_class.chain(operands).map(|younger| younger + 1).max().unwrap_or(0)
    }

    /// After a wait that leaves `n` groups of a class in flight: older ones are complete.
    pub(super) fn waited(&mut self, class: NvGroup, n: u32) {
        // Groups with n younger ones or more are complete (theorem 9 of docs/protocol.md). What had fewer on some path
        // may be in flight.
        self.flights.retain(|(of, _), younger| *of != class || *younger < n);
        self.operands.retain(|_, younger| class != NvGroup::Wgmma || *younger < n);
    }

    /// Claims the next stage of a ring for reading.
    pub(super) fn claim(&mut self, pipe: Pipe, claim: Value) {
        // What the value claimed in an earlier iteration is gone, also if it is unknown what it claims now.
        self.claims.remove(&claim);
        let Some(ring) = self.rings.get_mut(pipe.index()) else { return };
        if let Some(ahead) = ring.ahead {
            // With three stages filled and none claimed, the first claim is of age 2: two stages were filled since. The
            // second one is of age 1.
            self.claims.insert(claim, (pipe, ahead - 1));
            ring.ahead = Some(ahead - 1);
        }
    }

    /// The number of groups that are certainly younger than the one that fills the stage of a claim; 0 if the stage is unknown.
    pub(super) fn younger_than_stage(&self, claim: Value) -> u32 {
        let Some((pipe, age)) = self.claims.get(&claim) else { return 0 };
        let ring = self.rings.get(pipe.index());
        let younger = usize::try_from(*age).ok().and_then(|age| ring?.younger.get(age).copied());
        // Of an unknown stage, no group is certainly younger: the wait is for all.
        younger.unwrap_or(0)
    }

    /// Notes that an operation defines values: what they stood for in an earlier iteration cannot be named anymore.
    pub(super) fn define(&mut self, values: &[Value]) {
        for value in values {
            self.flights.remove(&(NvGroup::Wgmma, *value));
        }
    }

    /// Binds values to others that are passed to them, at an edge of the control flow. All are bound at once, since a loop may exchange
    /// the values that it carries.
    pub(super) fn bind(&mut self, from: &[Value], to: &[Value]) {
        let pairs = || from.iter().zip(to).filter(|(from, to)| from != to);
        let bound =
            |(from, to): (&Value, &Value)| Some(((NvGroup::Wgmma, *to), *self.flights.get(&(NvGroup::Wgmma, *from))?));
        let flights: Vec<_> = pairs().filter_map(bound).collect();
        let claims: Vec<_> = pairs().filter_map(|(from, to)| Some((*to, *self.claims.get(from)?))).collect();
        for (_, to) in pairs() {
            self.flights.remove(&(NvGroup::Wgmma, *to));
            self.claims.remove(to);
        }
        self.flights.extend(flights);
        self.claims.extend(claims);
    }
}
