//! Co-execution of barrier programs by their claims about rings.
//!
//! A program that was lowered from rings states, next to its waits and arrivals, their effect on a ring ([`Claim`]): for which slot, and
//! after how many rounds of the ring. This module co-executes the roles by these claims alone, with the rules of rings: an acquisition
//! waits until the readers have released the slot, and so on. [`crate::verify::program`] checks for each claim that the operations
//! implement it.
//!
//! A slot and a number of rounds are two values, a *pair*. The time for which a pair stands is tracked through loops and branches:
//!
//! * The *clock* of a side of a ring, the pair that it takes next, starts at (0, 0), and advances by one slot whenever the
//!   side takes a stage. The pair that a loop carries for it is the clock inside of the loop.
//! * A *stage* is a pair from its acquisition or wait until its release. It stands for the same time wherever the values are passed.
//!
//! ```text
//! for .. carry(%s = 0, %r = 0)              the clock of the filling side of `ring`: (%s, %r)
//!     ttg.claim.acquired<0> %ring, %s, %r   the stage (%s, %r) stands for the current time t of the side
//!     .. copies to slot %s ..               allowed: that stage is acquired, and not filled yet
//!     ttg.claim.filled<0> %ring, %s, %r     time t is filled, and the stage ends
//!     %n = add %s, 1   %w = eq %n, 3        the clock is the successor of (%s, %r): the loop must carry such a pair
//!     continue select(%w, 0, %n), select(%w, %r + 1, %r)
//! ```

use super::super::fault::{Fault, On, Wait, defect};
use super::super::run::Run;
use super::super::state::State;
use super::find::{Access, Arrival, Claims, When};
use crate::ir::{BinOp, Claim, Class, Kernel, NvGroup, NvOp, Op, OpId, OpKind, Pipe, Pred, RegionOp, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The stages of rings that work in flight may access, each with the number of groups when its group was committed; `None` if that is open.
type InFlight = BTreeMap<(Pipe, i64), Option<i64>>;

/// The values that stand for a time: a slot, and, if the ring is between roles, the number of earlier rounds, or its parity.
pub(in crate::verify::coexecution) type Pair = (Value, Option<Value>);

/// A side of a ring: the filling one, or a reader.
pub(in crate::verify) type Side = (Pipe, bool);

/// A known relation to a clock: a pair (or (0, 0)), and the number of steps by which the clock is ahead of it.
pub(in crate::verify::coexecution) type Shown = (Option<Pair>, u32);

pub(in crate::verify::coexecution) type Clocks = BTreeMap<Side, BTreeSet<Shown>>;

/// A stage that a role has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stage {
    time: i64,
    /// For the filling side, whether it is filled; for a reader, whether it was waited for.
    usable: bool,
    /// Whether asynchronous copies to it were started; whether bulk copies were; whether registers were stored to it.
    copied: bool,
    bulk: bool,
    stored: bool,
    /// Whether threads have loaded from it.
    loaded: bool,
}

/// The pairs of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::verify) struct Pairs {
    stages: BTreeMap<(Side, Pair), Stage>,
    /// The known relation to each clock.
    pub(in crate::verify::coexecution) clocks: Clocks,
    /// The number of commit groups of asynchronous copies so far, and for each time whose copies may be in flight its group; `None` is the
    /// open group.
    issued: i64,
    copying: InFlight,
    /// The same for the commit groups of MMAs, and the times of the stages that MMAs in flight may read.
    multiplied: i64,
    reading: InFlight,
}

impl Pairs {
    /// The same, with times relative to the clock of each ring.
    pub(in crate::verify::coexecution) fn shifted(&self, base: impl Fn(Pipe) -> i64) -> Pairs {
        let mut all = self.clone();
        for (((pipe, _), _), stage) in &mut all.stages {
            stage.time -= base(*pipe);
        }
        let aged = |of: &InFlight, issued: i64| {
            of.iter().map(|((p, t), group)| ((*p, t - base(*p)), group.map(|g| g - issued))).collect()
        };
        all.copying = aged(&self.copying, self.issued);
        all.reading = aged(&self.reading, self.multiplied);
        (all.issued, all.multiplied) = (0, 0);
        all
    }

    /// The same, with everything in flight that is in flight in one of these states, which are otherwise equal up to a shift of times: in the
    /// newest group that it is in. More in flight, and in newer groups, is only less that is known. `None` if the states differ in more.
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
        let without = |of: &Pairs| Pairs { copying: InFlight::new(), reading: InFlight::new(), ..of.clone() };
        let mut joined = self.shifted(&base);
        let common = without(&joined);
        for end in ends {
            if without(end) != common {
                return None;
            }
            for (into, from) in [(&mut joined.copying, &end.copying), (&mut joined.reading, &end.reading)] {
                for (stage, group) in from {
                    let known = into.entry(*stage).or_insert(*group);
                    // No group is the open one, which is the newest.
                    *known = known.zip(*group).map(|(a, b)| a.max(b));
                }
            }
        }
        let back = |of: InFlight, issued: i64| {
            of.into_iter().map(|((p, t), group)| ((p, t + base(p)), group.map(|g| g + issued))).collect()
        };
        let mut all = self.clone();
        all.copying = back(joined.copying, self.issued);
        all.reading = back(joined.reading, self.multiplied);
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
    fn commit(&mut self, group: NvGroup) {
        let Some((issued, in_flight)) = self.groups(group) else { return };
        *issued += 1;
        in_flight.values_mut().for_each(|group| *group = group.or(Some(*issued)));
    }

    /// Waits for all commit groups except for the newest ones.
    fn wait(&mut self, group: NvGroup, but: u32) {
        let Some((issued, in_flight)) = self.groups(group) else { return };
        let done = *issued - i64::from(but);
        in_flight.retain(|_, group| group.is_none_or(|group| group > done));
    }

    /// The number of stages of a ring that the role holds.
    pub(in crate::verify::coexecution) fn holds(&self, pipe: Pipe) -> usize {
        let times: BTreeSet<i64> =
            self.stages.iter().filter(|(((p, _), _), _)| *p == pipe).map(|(_, stage)| stage.time).collect();
        times.len()
    }

    fn clock(&mut self, side: Side) -> &mut BTreeSet<Shown> {
        self.clocks.entry(side).or_insert_with(|| BTreeSet::from([(None, 0)]))
    }

    /// The stage of a pair.
    fn stage(&self, side: Side, pair: Pair) -> Option<Stage> {
        self.stages.get(&(side, pair)).copied()
    }

    /// Updates a stage, under all pairs that stand for it.
    fn change(&mut self, side: Side, time: i64, change: impl Fn(&mut Stage)) {
        self.stages.iter_mut().filter(|((s, _), stage)| *s == side && stage.time == time).for_each(|(_, s)| change(s));
    }

    /// Ends a stage, when it is released.
    fn end(&mut self, side: Side, time: i64) {
        self.stages.retain(|(s, _), stage| *s != side || stage.time != time);
    }

    /// Passes values along an edge of control flow. `moved` are the clocks that advance in the region that is entered or left; `gone` are
    /// the values whose meaning ends there.
    fn hand_on(
        &mut self,
        kernel: &Kernel,
        (from, to): (&[Value], &[Value]),
        moved: &BTreeSet<Side>,
        gone: &BTreeSet<Value>,
        counted: &BTreeSet<Pipe>,
    ) {
        let is_gone = |pair: &Pair| gone.contains(&pair.0) || pair.1.is_some_and(|turn| gone.contains(&turn));
        let targets = |value: Value| from.iter().zip(to).filter(move |(f, _)| **f == value).map(|(_, t)| *t);
        let mut stages: BTreeMap<(Side, Pair), Stage> =
            self.stages.iter().filter(|((_, pair), _)| !is_gone(pair)).map(|(key, stage)| (*key, *stage)).collect();
        for ((side, (slot, turn)), stage) in &self.stages {
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
            let mut next = BTreeSet::new();
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
            if next.is_empty() {
                next = clock.iter().filter(|(pair, _)| !pair.as_ref().is_some_and(is_gone)).copied().collect();
            }
            *clock = next;
        }
    }
}

/// Whether a value may be part of a pair that is after a pair of the clock, as [`is_after`] finds: it is a constant, a choice, or part of a pair
/// of the clock itself. Nearly all values that are handed on are none of these.
fn may_be_after(kernel: &Kernel, value: Value, clock: &BTreeSet<Shown>) -> bool {
    let is_base = |(base, _): &Shown| base.is_some_and(|(slot, turn)| slot == value || turn == Some(value));
    kernel.int_constant(value).is_some()
        || kernel.def_op(value).is_some_and(|op| op.kind == OpKind::Select)
        || clock.iter().any(is_base)
}

/// Whether a pair is the given number of steps after another one; unless `counted`, the number of the round is replaced by its parity.
fn is_after(
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
    if let (None, Some(s)) = (base, number(slot)) {
        let rounds = i64::from(steps / slots.max(1));
        let is_round = |t| number(t) == Some(if counted { rounds } else { rounds % 2 });
        let turns = turn.is_none_or(is_round);
        return s == i64::from(steps % slots.max(1)) && turns;
    }
    let Some(before) = steps.checked_sub(1).and_then(|_| previous(kernel, (slot, turn), slots, counted)) else {
        return false;
    };
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
    let before = one_less(next)?;
    let Some(turn) = turn else { return Some((before, None)) };
    let (when, further, same) = choice(turn)?;
    let flips = || {
        let other = kernel.def_op(further).filter(|op| op.kind == OpKind::Binary(BinOp::Sub));
        other.is_some_and(|op| kernel.int_constant(op.args[0]) == Some(1) && op.args.get(1) == Some(&same))
    };
    let is_next = if counted { one_less(further) == Some(same) } else { flips() };
    (when == wraps && is_next).then_some((before, Some(same)))
}

impl Run<'_> {
    /// A run of a barrier program by its claims alone.
    pub(in crate::verify) fn of_claims<'k>(kernel: &'k Kernel, claims: Claims) -> Run<'k> {
        let mut run = Run::without_barriers(kernel, claims.events.clone());
        run.staging = claims.staging.clone();
        run.claims = claims;
        run
    }

    fn breaks<T>(op: OpId, what: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::Claim { op, what: what.into() })
    }

    /// The effect of a claim; or the wait that blocks it.
    pub(in crate::verify::coexecution) fn claimed(
        &mut self,
        state: &mut State,
        role: usize,
        (id, op): (OpId, &Op),
        (claim, pipe): (Claim, Pipe),
    ) -> Result<Option<Wait>, Fault> {
        let Some(slot) = op.args.get(1) else { return Self::breaks(id, "a claim without a slot") };
        let pair = (*slot, op.args.get(2).copied());
        let staging = self.staging.contains(&pipe);
        let side = (pipe, matches!(claim, Claim::Acquired | Claim::Filled) || staging);
        let taken = state.roles[role].pairs.stage(side, pair);
        let time = match (claim, taken) {
            (Claim::Acquired | Claim::Next, _) => return self.take(state, role, (id, claim), (side, pair)),
            (Claim::Filled | Claim::Ready | Claim::Released, None) => {
                return Self::breaks(id, "the role holds no stage of the ring with this slot and round");
            }
            (Claim::Filled | Claim::Ready, Some(stage)) if stage.usable => {
                return Self::breaks(id, "this stage has been filled or waited for before");
            }
            (Claim::Released, Some(stage)) if !stage.usable => {
                return Self::breaks(id, "this stage is released before it was waited for");
            }
            (Claim::Filled, Some(stage)) => {
                let by = self.claims.filled_by.get(&id).copied();
                let covered = by.is_none_or(|by| match by.threads {
                    Some(Arrival::Copies) => !stage.stored,
                    Some(Arrival::Stores) => !stage.copied,
                    // Copies that were waited for are complete; other rules check the waits for groups within a role.
                    Some(Arrival::All) => true,
                    None => !stage.stored && !stage.copied,
                });
                let covered = covered && (!stage.bulk || by.is_some_and(|by| by.bulk));
                if !covered {
                    return Self::breaks(id, "the arrival does not cover everything that fills the stage");
                }
                if self.claims.filled_by.contains_key(&id) {
                    // A wait at the barrier includes the copies.
                    state.roles[role].pairs.copying.remove(&(pipe, stage.time));
                }
                stage.time
            }
            (Claim::Ready | Claim::Released, Some(stage)) => stage.time,
        };
        let ring = &mut state.rings[pipe.index()];
        match claim {
            Claim::Filled => {
                ring.filled.add(time);
                let pairs = &mut state.roles[role].pairs;
                if staging { pairs.change(side, time, |s| s.usable = true) } else { pairs.end(side, time) }
            }
            Claim::Ready => {
                if !ring.filled.has(time) {
                    return Ok(Some(Wait { role, op: id, on: On::Filled(pipe) }));
                }
                if state.roles[role].pairs.copying.contains_key(&(pipe, time)) {
                    return Self::breaks(
                        id,
                        "copies to this stage may still be in flight: their group was not waited for",
                    );
                }
                state.roles[role].pairs.change(side, time, |s| s.usable = true);
            }
            Claim::Released => {
                if self.claims.unmet.contains(&id) && taken.is_some_and(|stage| stage.loaded) {
                    return Self::breaks(
                        id,
                        "lanes have loaded from this stage, and no barrier of their warp precedes its release",
                    );
                }
                if state.roles[role].pairs.reading.contains_key(&(pipe, time)) {
                    return Self::breaks(id, "MMAs may still read this stage: their group was not waited for");
                }
                let Some(reader) = ring.readers.iter_mut().find(|r| r.role == role) else {
                    return defect(id, "a stage that is released by a role that is no reader");
                };
                reader.released.add(time);
                state.roles[role].pairs.end(side, time);
            }
            Claim::Acquired | Claim::Next => return defect(id, "a stage that is taken twice by one claim"),
        }
        Ok(None)
    }

    /// Takes the stage at the clock of a side.
    fn take(
        &mut self,
        state: &mut State,
        role: usize,
        (id, claim): (OpId, Claim),
        (side, pair): (Side, Pair),
    ) -> Result<Option<Wait>, Fault> {
        let pipe = side.0;
        let slots = self.kernel.pipe(pipe).map_or(1, |p| p.slots);
        let ring = &mut state.rings[pipe.index()];
        let time = if claim == Claim::Acquired {
            let time = ring.acquired;
            if !ring.readers.iter().all(|r| r.released.has(time - i64::from(slots))) {
                if self.staging.contains(&pipe) {
                    return Err(Fault::Staging { op: id, pipe });
                }
                return Ok(Some(Wait { role, op: id, on: On::Free(pipe) }));
            }
            ring.acquired += 1;
            if self.staging.contains(&pipe) {
                ring.readers.iter_mut().for_each(|r| r.claimed += 1);
            }
            time
        } else {
            let Some(reader) = ring.readers.iter_mut().find(|r| r.role == role) else {
                return Self::breaks(id, "this role does not read the ring");
            };
            reader.claimed += 1;
            reader.claimed - 1
        };
        let pairs = &mut state.roles[role].pairs;
        let clock = pairs.clock(side);
        let exact = self.claims.counted.contains(&pipe);
        if !clock.iter().any(|(base, steps)| is_after(self.kernel, pair, *base, (*steps, slots), exact)) {
            return Self::breaks(id, "the slot and the round are not the next ones of the ring");
        }
        *clock = clock.iter().map(|(base, steps)| (*base, steps + 1)).collect();
        pairs.stages.insert(
            (side, pair),
            Stage { time, usable: false, copied: false, bulk: false, stored: false, loaded: false },
        );
        Ok(None)
    }

    /// Checks the accesses of an operation to rings: its role must hold the stage.
    pub(in crate::verify::coexecution) fn touched(
        &mut self,
        state: &mut State,
        role: usize,
        id: OpId,
    ) -> Result<(), Fault> {
        for ring in self.claims.under.get(&id).into_iter().flatten() {
            let own = &state.rings[ring.index()];
            let idle = own.filled.low == own.acquired
                && own.readers.iter().all(|r| r.claimed == own.acquired && r.released.low == own.acquired);
            if !idle || state.roles.iter().any(|r| r.pairs.copying.keys().any(|(p, _)| p == ring)) {
                return Self::breaks(id, "this accesses the memory of a ring that is in use");
            }
        }
        // All other operations access no slot.
        let Some(accesses) = self.claims.accesses.get(&id).cloned() else { return Ok(()) };
        for access in accesses {
            let Access { region, slot, writes, when } = access;
            let own = self.claims.ring_of.get(&region).copied();
            let pairs = &mut state.roles[role].pairs;
            let found = pairs.stages.iter().find(|(((pipe, fills), pair), stage)| {
                let held = if writes { *fills && !stage.usable } else { stage.usable };
                pair.0 == slot && held && own.is_none_or(|own| own == *pipe)
            });
            let Some(((side, _), stage)) = found.map(|(key, stage)| (*key, *stage)) else {
                return Self::breaks(id, "this accesses a stage that its role does not hold");
            };
            if own.is_none() && *self.claims.companions.entry(region).or_insert(side.0) != side.0 {
                return Self::breaks(id, "this memory belongs to two rings");
            }
            let at = (side.0, stage.time);
            match (writes, when) {
                (true, When::Group(Class::CpAsync)) => {
                    pairs.copying.insert(at, None);
                    pairs.change(side, stage.time, |s| s.copied = true);
                }
                (true, When::Phase) => pairs.change(side, stage.time, |s| s.bulk = true),
                (true, When::Now) => pairs.change(side, stage.time, |s| s.stored = true),
                (false, When::Group(Class::Wgmma)) => drop(pairs.reading.insert(at, None)),
                (false, When::Now) => pairs.change(side, stage.time, |s| s.loaded = true),
                (_, When::Group(_)) | (false, When::Phase) => {
                    return Self::breaks(id, "this accesses a stage in a way that no claim covers");
                }
            }
        }
        Ok(())
    }

    /// Handles an operation on a region that does not refer to a slot of a ring.
    pub(in crate::verify::coexecution) fn by_claims(id: OpId, region: &RegionOp) -> Result<(), Fault> {
        match region {
            // These only declare or select parts of shared memory.
            RegionOp::Place { .. } | RegionOp::At | RegionOp::Tile { .. } => Ok(()),
            RegionOp::Read | RegionOp::Write | RegionOp::Call(_) | RegionOp::Wait => {
                Self::breaks(id, "this accesses a region as a whole, which no claim covers")
            }
        }
    }

    /// Commits a group, or waits for groups; other operations have no effect on groups.
    pub(in crate::verify::coexecution) fn grouped(state: &mut State, role: usize, nv: NvOp) {
        let pairs = &mut state.roles[role].pairs;
        if let NvOp::Commit { group, .. } = nv {
            pairs.commit(group);
        } else if let NvOp::WaitGroup { group, n, .. } = nv {
            pairs.wait(group, n);
        }
    }

    /// Passes pairs along where an operation with regions is entered, repeated or left.
    pub(in crate::verify::coexecution) fn hand_pairs_on(
        &self,
        state: &mut State,
        role: usize,
        around: OpId,
        (from, to): (&[Value], &[Value]),
        enters: bool,
    ) {
        // A program without claims has no pairs.
        if self.claims.events.is_empty() {
            return;
        }
        let (none, unmoved) = (BTreeSet::new(), BTreeSet::new());
        let gone = self.claims.inside.get(&around).filter(|_| !enters).unwrap_or(&none);
        let moved = self.claims.moved.get(&around).unwrap_or(&unmoved);
        state.roles[role].pairs.hand_on(self.kernel, (from, to), moved, gone, &self.claims.counted);
    }
}
