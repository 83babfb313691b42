//! The pairs of a role: the values that stand for times of rings, and what is known about the stages that it holds.
//!
//! [`super::claims`] explains how they are used.

use crate::collections::{SortedMap, SortedSet};
use crate::ir::{BinOp, Kernel, NvGroup, OpKind, Pipe, Pred, Value};

/// Bytes of a stage: the ring and the time, the region, and the number of the bytes among those that are accessed in a part of it
/// ([`super::find::Pieces`]).
pub(super) type Piece = (Pipe, i64, Value, u8);

/// The bytes of stages that work in flight may access, each with the number of groups when its group was committed; `None` if that is open.
type InFlight = SortedMap<Piece, Option<i64>>;

/// The values that stand for a time: a slot, and, if the ring is between roles, the number of earlier rounds, or its parity.
pub(in crate::verify::coexecution) type Pair = (Value, Option<Value>);

/// A side of a ring: the filling one, or a reader.
pub(in crate::verify) type Side = (Pipe, bool);

/// A known relation to a clock: a pair (or (0, 0)), and the number of steps by which the clock is ahead of it.
pub(in crate::verify::coexecution) type Shown = (Option<Pair>, u32);

pub(in crate::verify::coexecution) type Clocks = SortedMap<Side, SortedSet<Shown>>;

/// A stage that a role has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) time: i64,
    /// For the filling side, whether it is filled; for a reader, whether it was waited for.
    pub(super) usable: bool,
    pub(super) had: Accesses,
}

/// The accesses that a stage may have had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accesses {
    /// Whether asynchronous copies to it were started; whether bulk copies were; whether registers were stored to it.
    pub(super) copied: bool,
    pub(super) bulk: bool,
    pub(super) stored: bool,
    /// Whether threads have loaded from it.
    pub(super) loaded: bool,
    /// The bytes that have been written on this path, as a set of the numbers of [`super::find::Pieces`]; those that may have been; and those
    /// that asynchronous copies may have written.
    pub(super) written: u64,
    pub(super) may_be_written: u64,
    pub(super) copied_to: u64,
    /// Whether the stage is marked as one without contents.
    pub(super) poisoned: bool,
}

impl Accesses {
    fn or(self, other: Accesses) -> Accesses {
        Accesses {
            copied: self.copied || other.copied,
            bulk: self.bulk || other.bulk,
            stored: self.stored || other.stored,
            loaded: self.loaded || other.loaded,
            written: self.written & other.written,
            may_be_written: self.may_be_written | other.may_be_written,
            copied_to: self.copied_to | other.copied_to,
            poisoned: self.poisoned && other.poisoned,
        }
    }
}

/// The pairs of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::verify) struct Pairs {
    pub(super) stages: SortedMap<(Side, Pair), Stage>,
    /// The known relation to each clock.
    pub(in crate::verify::coexecution) clocks: Clocks,
    /// The number of commit groups of asynchronous copies so far, and for each time whose copies may be in flight its group; `None` is the
    /// open group.
    issued: i64,
    pub(super) copying: InFlight,
    /// The same for the commit groups of MMAs, and the times of the stages that MMAs in flight may read.
    multiplied: i64,
    pub(super) reading: InFlight,
    /// The accesses of the threads of the role since their last barrier, each with whether it writes.
    pub(super) since: SortedSet<(Piece, bool)>,
}

impl Pairs {
    /// The same, with times relative to the clock of each ring.
    pub(in crate::verify::coexecution) fn shifted(&self, base: impl Fn(Pipe) -> i64) -> Pairs {
        let mut all = self.clone();
        for (((pipe, _), _), stage) in &mut all.stages {
            // Relative to the oldest time that is not released: the same in each round of a loop, if it returns to the
            // same state.
            stage.time -= base(*pipe);
        }
        let aged = |of: &InFlight, issued: i64| {
            // Groups are counted back from the newest one, as waits do: the number of groups so far grows in every
            // iteration.
            of.iter().map(|((p, t, r, n), group)| ((*p, t - base(*p), *r, *n), group.map(|g| g - issued))).collect()
        };
        all.since = self.since.iter().map(|((p, t, r, n), writes)| ((*p, t - base(*p), *r, *n), *writes)).collect();
        all.copying = aged(&self.copying, self.issued);
        all.reading = aged(&self.reading, self.multiplied);
        (all.issued, all.multiplied) = (0, 0);
        all
    }

    /// The same, with everything in flight that is in flight in one of these states, in the newest group that it is in, and with all accesses
    /// to the stages held, and since the last barrier, that one of them has had. More in flight, newer groups and more accesses are only
    /// less that is known, and so are fewer bytes that are certainly written: every rule demands more for them. `None` if the states
    /// differ in more than this and a shift of times.
    ///
    /// ```text
    /// before the loop   fill; commit; fill of another ring; commit     the stage is in the second newest group
    /// after a round     either fill; commit                            in the newest one
    ///                   or nothing                                     in the second newest one
    /// joined                                                           in the newest one: a wait for all but one group is not for it
    /// ```
    pub(in crate::verify::coexecution) fn joined_in_flight(
        &self,
        base: impl Fn(Pipe) -> i64,
        ends: &[Pairs],
    ) -> Option<Pairs> {
        let without = |of: &Pairs| {
            let mut rest =
                Pairs { copying: InFlight::new(), reading: InFlight::new(), since: SortedSet::new(), ..of.clone() };
            rest.stages.values_mut().for_each(|stage| stage.had = Accesses::default());
            rest
        };
        let mut joined = self.shifted(&base);
        let common = without(&joined);
        let mut had: Vec<Accesses> = self.stages.values().map(|stage| stage.had).collect();
        for end in ends {
            // What is held and which pairs stand for it must be equal: a stage that is held on some paths only is no
            // union.
            if without(end) != common {
                return None;
            }
            had.iter_mut().zip(end.stages.values()).for_each(|(all, stage)| *all = all.or(stage.had));
            joined.since.extend(end.since.iter().copied());
            for (into, from) in [(&mut joined.copying, &end.copying), (&mut joined.reading, &end.reading)] {
                for (stage, group) in from {
                    let known = into.entry(*stage).or_insert(*group);
                    // No group is the open one, which is the newest.
                    // The newer of two groups: a wait that completes it completes the older one as well, as groups
                    // complete in order.
                    *known = known.zip(*group).map(|(a, b)| a.max(b));
                }
            }
        }
        let back = |of: InFlight, issued: i64| {
            of.into_iter().map(|((p, t, r, n), group)| ((p, t + base(p), r, n), group.map(|g| g + issued))).collect()
        };
        let since = joined.since.iter().map(|((p, t, r, n), writes)| ((*p, t + base(*p), *r, *n), *writes));
        let mut all = self.clone();
        all.copying = back(joined.copying, self.issued);
        all.reading = back(joined.reading, self.multiplied);
        all.since = since.collect();
        all.stages.values_mut().zip(had).for_each(|(stage, had)| stage.had = had);
        Some(all)
    }

    /// The groups of a class: their number so far, and the stages that may be in flight in them.
    fn groups(&mut self, group: NvGroup) -> Option<(&mut i64, &mut InFlight)> {
        match group {
            NvGroup::CpAsync => Some((&mut self.issued, &mut self.copying)),
            NvGroup::Wgmma => Some((&mut self.multiplied, &mut self.reading)),
            // Bulk stores do not read stages: `touched` rejects those that do.
            NvGroup::BulkStore => None,
        }
    }

    /// Commits the open group.
    pub(super) fn commit(&mut self, group: NvGroup) {
        let Some((issued, in_flight)) = self.groups(group) else { return };
        *issued += 1;
        // Everything in the open group gets its number. What was committed before keeps its own.
        in_flight.values_mut().for_each(|group| *group = group.or(Some(*issued)));
    }

    /// Waits for all commit groups except for the newest ones. Returns the accesses that are complete: until now, they may have happened at
    /// any time.
    pub(super) fn wait(&mut self, group: NvGroup, but: u32) -> Vec<Piece> {
        let Some((issued, in_flight)) = self.groups(group) else { return Vec::new() };
        // With 5 groups committed and a wait for all but 2, groups up to 3 are complete. The open group is newer than
        // all of them.
        let done = *issued - i64::from(but);
        let is_done = |of: &Option<i64>| of.is_some_and(|group| group <= done);
        let complete = in_flight.iter().filter(|(_, group)| is_done(group)).map(|(piece, _)| *piece).collect();
        in_flight.retain(|_, group| !is_done(group));
        complete
    }

    /// The number of stages of a ring that the role holds.
    pub(in crate::verify::coexecution) fn holds(&self, pipe: Pipe) -> usize {
        let times: SortedSet<i64> =
            self.stages.iter().filter(|(((p, _), _), _)| *p == pipe).map(|(_, stage)| stage.time).collect();
        times.len()
    }

    pub(super) fn clock(&mut self, side: Side) -> &mut SortedSet<Shown> {
        self.clocks.entry(side).or_insert_with(|| SortedSet::from([(None, 0)]))
    }

    /// The stage of a pair.
    pub(super) fn stage(&self, side: Side, pair: Pair) -> Option<Stage> {
        self.stages.get(&(side, pair)).copied()
    }

    /// Updates a stage, under all pairs that stand for it.
    pub(super) fn change(&mut self, side: Side, time: i64, change: impl Fn(&mut Stage)) {
        self.stages.iter_mut().filter(|((s, _), stage)| *s == side && stage.time == time).for_each(|(_, s)| change(s));
    }

    /// Ends a stage, when it is released. If barriers between roles order the accesses of its rounds (`joined`), those of this one are no
    /// longer needed.
    pub(super) fn end(&mut self, side: Side, time: i64, joined: bool) {
        self.stages.retain(|(s, _), stage| *s != side || stage.time != time);
        if joined {
            self.since.retain(|((pipe, t, ..), _)| *pipe != side.0 || *t != time);
        }
    }

    /// Records an access since the last barrier. Earlier ones to the same bytes of the slot, in another round, count as one with it.
    pub(super) fn note(&mut self, piece: Piece, writes: bool, slots: i64) {
        let (pipe, time, region, number) = piece;
        self.since.retain(|((p, t, r, n), w)| {
            let same = (*p, *r, *n, *w) == (pipe, region, number, writes);
            // An access in round r + 1 to the slot stands for that of round r: whatever conflicts with one conflicts
            // with the other, and a barrier orders both. Without this, a loop without a barrier would have one more in
            // each round.
            !(same && (time - t).rem_euclid(slots.max(1)) == 0)
        });
        self.since.insert((piece, writes));
    }

    /// Passes values along an edge of control flow. `moved` are the clocks that advance in the region that is entered or left; `gone` are
    /// the values whose meaning ends there.
    pub(super) fn hand_on(
        &mut self,
        kernel: &Kernel,
        (from, to): (&[Value], &[Value]),
        moved: &SortedSet<Side>,
        gone: &SortedSet<Value>,
        counted: &SortedSet<Pipe>,
    ) {
        let is_gone = |pair: &Pair| gone.contains(&pair.0) || pair.1.is_some_and(|turn| gone.contains(&turn));
        let targets = |value: Value| from.iter().zip(to).filter(move |(f, _)| **f == value).map(|(_, t)| *t);
        let mut stages: SortedMap<(Side, Pair), Stage> =
            self.stages.iter().filter(|((_, pair), _)| !is_gone(pair)).map(|(key, stage)| (*key, *stage)).collect();
        for ((side, (slot, turn)), stage) in &self.stages {
            // A stage stays under its old pair and gets the new one: the values outside of a loop still stand for it
            // while the loop carries copies of them.
            for slot in targets(*slot) {
                match turn {
                    None => drop(stages.insert((*side, (slot, None)), *stage)),
                    Some(turn) => stages.extend(targets(*turn).map(|turn| ((*side, (slot, Some(turn))), *stage))),
                }
            }
        }
        self.stages = stages;
        // A clock starts at the beginning of the role.
        for side in moved {
            self.clock(*side);
        }
        for (side, clock) in &mut self.clocks {
            let mut next = SortedSet::new();
            if moved.contains(side) {
                let exact = counted.contains(&side.0);
                let slots = kernel.pipe(side.0).map_or(1, |p| p.slots);
                let rounds = |(_, r): &Pair| r.is_some();
                let with_rounds = clock.iter().any(|(pair, _)| pair.as_ref().is_none_or(rounds));
                let without = clock.iter().any(|(pair, _)| pair.as_ref().is_none_or(|p| !rounds(p)));
                let edge = || from.iter().zip(to).filter(|(value, _)| may_be_after(kernel, **value, clock));
                for (slot, new) in edge() {
                    let shows = |pair: Pair| {
                        clock.iter().any(|(base, steps)| is_after(kernel, pair, *base, (*steps, slots), exact))
                    };
                    if without && shows((*slot, None)) {
                        next.insert((Some((*new, None)), 0));
                    }
                    for (turn, other) in edge().filter(|_| with_rounds) {
                        if shows((*slot, Some(*turn))) {
                            next.insert((Some((*new, Some(*other))), 0));
                        }
                    }
                }
            }
            // No pair that is passed on is the clock's: then the pairs that still have a meaning stay, with their
            // distances. If none does, no claim of this side is accepted any more.
            if next.is_empty() {
                next = clock.iter().filter(|(pair, _)| !pair.as_ref().is_some_and(is_gone)).copied().collect();
            }
            *clock = next;
        }
    }
}

/// Whether a value may be part of a pair that is after a pair of the clock, as [`is_after`] finds: it is a constant, a choice, or part of a pair
/// of the clock itself. Nearly all values that are handed on are none of these.
fn may_be_after(kernel: &Kernel, value: Value, clock: &SortedSet<Shown>) -> bool {
    let is_base = |(base, _): &Shown| base.is_some_and(|(slot, turn)| slot == value || turn == Some(value));
    kernel.int_constant(value).is_some()
        || kernel.def_op(value).is_some_and(|op| op.kind == OpKind::Select)
        || clock.iter().any(is_base)
}

/// Whether a pair is the given number of steps after another one; unless `counted`, the number of the round is replaced by its parity.
pub(super) fn is_after(
    kernel: &Kernel,
    (slot, turn): Pair,
    base: Option<Pair>,
    (steps, slots): (u32, u32),
    counted: bool,
) -> bool {
    if base == Some((slot, turn)) && steps == 0 {
        return true;
    }
    let number = |v: Value| kernel.int_constant(v);
    // Numbers count from (0, 0): in a ring of 3, five steps are slot 2 of round 1.
    if let (None, Some(s)) = (base, number(slot)) {
        let rounds = i64::from(steps / slots.max(1));
        let is_round = |t| number(t) == Some(if counted { rounds } else { rounds % 2 });
        let turns = turn.is_none_or(is_round);
        return s == i64::from(steps % slots.max(1)) && turns;
    }
    let Some(before) = steps.checked_sub(1).and_then(|_| previous(kernel, (slot, turn), slots, counted)) else {
        return false;
    };
    // One step back for each call, so at most as many calls as steps.
    is_after(kernel, before, base, (steps - 1, slots), counted)
}

/// The predecessor of a pair, if the slot of the pair is `s + 1 == slots ? 0 : s + 1`, with one more round when it wraps; unless `counted`,
/// with the other parity, `1 - p`.
fn previous(kernel: &Kernel, (slot, turn): Pair, slots: u32, counted: bool) -> Option<Pair> {
    let choice = |value: Value| {
        let op = kernel.def_op(value).filter(|op| op.kind == OpKind::Select)?;
        if let [condition, a, b] = op.args[..] { Some((condition, a, b)) } else { None }
    };
    let one_less = |value: Value| {
        let op = kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(BinOp::Add))?;
        op.args.first().copied().filter(|_| kernel.int_constant(op.args[1]) == Some(1))
    };
    let (wraps, zero, next) = choice(slot)?;
    let end = kernel.def_op(wraps).filter(|op| op.kind == OpKind::Cmp(Pred::Eq) && op.args.first() == Some(&next))?;
    if kernel.int_constant(zero) != Some(0) || kernel.int_constant(*end.args.get(1)?) != Some(i64::from(slots)) {
        return None;
    }
    // The slot is `n == slots ? 0 : n` with n = s + 1, so that it is the one after s whatever s is, if s is a slot.
    let before = one_less(next)?;
    let Some(turn) = turn else { return Some((before, None)) };
    let (when, further, same) = choice(turn)?;
    let flips = || {
        let other = kernel.def_op(further).filter(|op| op.kind == OpKind::Binary(BinOp::Sub));
        other.is_some_and(|op| kernel.int_constant(op.args[0]) == Some(1) && op.args.get(1) == Some(&same))
    };
    let is_next = if counted { one_less(further) == Some(same) } else { flips() };
    // The round must advance under the very condition under which the slot wraps, not under one that happens to be
    // equal.
    (when == wraps && is_next).then_some((before, Some(same)))
}
