//! The uncovered accesses of a role at one point of its code.

use super::bytes::Touched;
use super::reach::SyncPoint;
use super::walk::Fact;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Class, FenceSpace, Kernel, OpId, Scope, Value};

/// The number of groups from which on counts are not distinguished.
const MANY: u32 = 64;

/// An access of an operation, whether it may be incomplete, and whether it is of an earlier iteration, in which the index of its part may
/// have had another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) op: OpId,
    pub(super) n: usize,
    pub(super) landing: bool,
    pub(super) loose: bool,
}

/// The state of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) touched: Touched,
    /// Not covered at scope `cta`.
    pub(super) cta: bool,
    /// Not covered at scope `cluster`.
    pub(super) cluster: bool,
    /// For copies that may be incomplete: the minimum number of groups committed after their group; `None` if that group may still be open.
    younger: Option<u32>,
    /// The barrier at which the copy arrives on completion.
    tells: Option<SyncPoint>,
}

/// The state at a point of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) seen: SortedMap<Key, Mark>,
    /// For each token of a group, the maximum number of groups committed after it.
    tokens: SortedMap<OpId, (Class, u32)>,
    /// Bulk stores that may still read their regions, each with whether it is of an earlier iteration.
    pub(super) stores: SortedMap<(OpId, bool), Flight>,
    /// The slots of rings that are ready on every path; `None` where no path was walked yet.
    ready: Option<SortedSet<Slot>>,
}

/// A slot of a ring: its region, and the values that are known to be its index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    region: Value,
    names: SortedSet<Value>,
}

impl Slot {
    /// What is known of a slot that is one of two.
    fn common(&self, other: &Slot) -> Option<Slot> {
        let names: SortedSet<Value> = self.names.intersection(&other.names).copied().collect();
        (self.region == other.region && !names.is_empty()).then_some(Slot { region: self.region, names })
    }
}

/// A bulk store in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flight {
    pub(super) touched: Touched,
    pub(super) younger: Option<u32>,
}

fn join_flight(a: Flight, b: Flight) -> Flight {
    Flight { touched: a.touched, younger: a.younger.min(b.younger) }
}

fn join_mark(a: Mark, b: Mark) -> Mark {
    Mark {
        touched: a.touched,
        cta: a.cta || b.cta,
        cluster: a.cluster || b.cluster,
        younger: a.younger.min(b.younger),
        tells: a.tells.filter(|t| b.tells == Some(*t)),
    }
}

fn closed(younger: &mut Option<u32>) {
    *younger = Some(younger.map_or(0, |n| (n + 1).min(MANY)));
}

impl Fact for State {
    fn join(&mut self, other: &State) {
        for (key, mark) in &other.seen {
            self.seen.entry(*key).and_modify(|m| *m = join_mark(*m, *mark)).or_insert(*mark);
        }
        for (op, (class, n)) in &other.tokens {
            self.tokens.entry(*op).and_modify(|t| t.1 = t.1.max(*n)).or_insert((*class, *n));
        }
        for (key, flight) in &other.stores {
            self.stores.entry(*key).and_modify(|f| *f = join_flight(*f, *flight)).or_insert(*flight);
        }
        match (&mut self.ready, &other.ready) {
            (Some(own), Some(other)) => {
                *own = own.iter().flat_map(|slot| other.iter().filter_map(|o| slot.common(o))).collect();
            }
            (own @ None, other) => own.clone_from(other),
            (Some(_), None) => {}
        }
    }
}

impl State {
    /// The state at the start of a role.
    pub(super) fn start() -> State {
        State { ready: Some(SortedSet::new()), ..State::default() }
    }

    /// Records that all copies into a slot are complete. Which of the copies in flight that are is not known: any may be one of them.
    pub(super) fn slot_ready(&mut self, region: Value, index: Value) {
        self.ready.get_or_insert_default().insert(Slot { region, names: SortedSet::from([index]) });
        let of_ring = |mark: &Mark| mark.touched.pick().is_some_and(|pick| pick.region == region);
        let copies: Vec<(Key, Mark)> =
            self.seen.iter().filter(|(k, m)| k.landing && of_ring(m)).map(|(k, m)| (*k, *m)).collect();
        for (key, mark) in copies {
            self.access((key.op, key.n), mark.touched, false, true);
        }
    }

    /// Records that a slot may be filled again. If it is not known by this index, any slot of the region may be meant.
    pub(super) fn slot_released(&mut self, region: Value, index: Value) {
        let Some(ready) = &mut self.ready else { return };
        let known = ready.len();
        ready.retain(|slot| slot.region != region || !slot.names.contains(&index));
        if ready.len() == known {
            ready.retain(|slot| slot.region != region);
        }
    }

    /// Whether an access is to a slot that is ready, into which no copy is in flight.
    pub(super) fn is_ready(&self, kernel: &Kernel, touched: &Touched) -> bool {
        let Some(pick) = touched.pick() else { return false };
        let is = |slot: &Slot| slot.names.iter().any(|index| pick.is_of(kernel, (slot.region, *index)));
        self.ready.iter().flatten().any(is)
    }

    /// Adds names to the indices of slots, which are released by any of them. An index that was computed in a loop is unknown in the next
    /// iteration and after the loop, unless it is passed on.
    pub(super) fn rename(&mut self, from: &[Value], to: &[Value], stays: impl Fn(Value) -> bool) {
        let Some(ready) = &mut self.ready else { return };
        let renamed = |Slot { region, names }: Slot| {
            let given = from.iter().zip(to).filter(|(old, _)| names.contains(old)).map(|(_, new)| *new);
            let kept = names.iter().copied().filter(|name| stays(*name) && !to.contains(name));
            Slot { region, names: given.chain(kept).collect() }
        };
        *ready = std::mem::take(ready).into_iter().map(renamed).filter(|slot| !slot.names.is_empty()).collect();
    }

    /// Records a generic access.
    pub(super) fn access(&mut self, (op, n): (OpId, usize), touched: Touched, landing: bool, loose: bool) {
        let mark = Mark { touched, cta: true, cluster: true, younger: None, tells: None };
        self.seen.insert(Key { op, n, landing, loose }, mark);
    }

    /// Applies a fence generic → async.
    pub(super) fn fence(&mut self, scope: Scope, space: FenceSpace) {
        // A fence covers what the thread has done, and so no copy that may still be landing. An access that is covered at both scopes needs no
        // mark; one that a fence of scope `cta` covered is still open for copies of other programs of the cluster.
        self.seen.retain(|key, mark| {
            if !key.landing && (space == FenceSpace::All || space == mark.touched.space()) {
                mark.cta = false;
                mark.cluster &= scope < Scope::Cluster;
            }
            mark.cta || mark.cluster
        });
    }

    /// Applies a fence for the words of initialised barriers.
    pub(super) fn fence_words(&mut self, init: impl Fn(OpId) -> bool) {
        self.seen.retain(|key, mark| !(mark.touched.word && init(key.op)));
    }

    /// Commits the open group of a class.
    pub(super) fn close(&mut self, class: Class, token: Option<OpId>) {
        for (c, n) in self.tokens.values_mut() {
            *n = if *c == class { (*n + 1).min(MANY) } else { *n };
        }
        self.tokens.extend(token.map(|t| (t, (class, 0))));
        match class {
            Class::CpAsync => self.seen.iter_mut().filter(|(k, _)| k.landing).for_each(|(_, m)| closed(&mut m.younger)),
            Class::BulkStore => self.stores.values_mut().for_each(|f| closed(&mut f.younger)),
            Class::Wgmma | Class::Tcgen05 | Class::Vmcnt | Class::Lgkmcnt => {}
        }
    }

    /// Records that at most `n` groups of a class are in flight.
    pub(super) fn await_groups(&mut self, class: Class, n: u32) {
        match class {
            Class::CpAsync => self.land(|mark| mark.younger.is_some_and(|y| y >= n)),
            Class::BulkStore => self.stores.retain(|_, f| f.younger.is_none_or(|y| y < n)),
            Class::Wgmma | Class::Tcgen05 | Class::Vmcnt | Class::Lgkmcnt => {}
        }
    }

    /// Records that the group of a token is complete.
    pub(super) fn await_token(&mut self, token: OpId) {
        if let Some((class, n)) = self.tokens.get(&token).copied().filter(|(_, n)| *n < MANY) {
            self.await_groups(class, n);
        }
    }

    /// Records that the copies in flight will arrive at a barrier on completion. Returns these copies.
    pub(super) fn tell_copies(&mut self, at: SyncPoint) -> Vec<(OpId, usize, Touched)> {
        let mut told = Vec::new();
        for (key, mark) in self.seen.iter_mut().filter(|(k, _)| k.landing) {
            mark.tells = Some(at);
            told.push((key.op, key.n, mark.touched));
        }
        told
    }

    /// Records that a wait has returned at a barrier at which copies arrive.
    pub(super) fn learn_copies(&mut self, at: SyncPoint) {
        self.land(|mark| mark.tells.is_some_and(|t| t.is(at)));
    }

    /// Copies become ordinary generic accesses when they have landed: from then on a fence can cover them, and is needed.
    fn land(&mut self, which: impl Fn(&Mark) -> bool) {
        let landed: Vec<(Key, Mark)> =
            self.seen.iter().filter(|(k, m)| k.landing && which(m)).map(|(k, m)| (*k, *m)).collect();
        for (key, mark) in landed {
            self.seen.remove(&key);
            self.access((key.op, key.n), mark.touched, false, key.loose);
        }
    }

    /// Starts the next iteration of a loop: indices that are computed in the loop may now select other parts.
    pub(super) fn next_iteration(&mut self, made: impl Fn(Value) -> bool) {
        // `%i + 1` of this iteration and `%i` of the next one may be the same part, although the same values differ within an iteration. So
        // accesses whose index is computed anew become loose: they are compared by bytes only. They stay loose, so this step adds at most
        // one mark for each access, and the fixed point of the loop is reached after finitely many rounds.
        let anew = |t: &Touched| t.pick().is_some_and(|p| made(p.base));
        for (key, mark) in self.seen.clone().into_iter().filter(|(k, m)| !k.loose && anew(&m.touched)) {
            self.seen.remove(&key);
            self.seen.entry(Key { loose: true, ..key }).and_modify(|m| *m = join_mark(*m, mark)).or_insert(mark);
        }
        for ((op, _), flight) in self.stores.clone().into_iter().filter(|((_, loose), f)| !loose && anew(&f.touched)) {
            self.stores.remove(&(op, false));
            self.stores.entry((op, true)).and_modify(|f| *f = join_flight(*f, flight)).or_insert(flight);
        }
    }
}
