//! The induction over loops with barriers: the state at the start of an arbitrary iteration.
//!
//! The first iteration is executed to determine by how much the clock of every barrier and memory advances in it, and by how much carried
//! integers increase (the *induction hypothesis*). Then an arbitrary iteration `i` is executed: a clock that advanced by `k` is `k · i`
//! ahead, one that advanced by an unknown amount, in an inner loop, has an unknown value; carried integers (the *induction variables*) have
//! the values that follow from their steps, or keep their distance from the object whose clock advanced equally. If the hypothesis holds
//! again at the end of that iteration, in every case, it holds for all. Objects and variables that deviate get a weaker hypothesis: an
//! unknown value, but together with those that advance equally; and finally each its own unknown value.
//!
//! # An example
//!
//! A ring of three slots with barriers `full` and `empty`. Both roles carry a slot `s` and a parity `p`, which the kernel wraps explicitly:
//!
//! ```text
//! fill:  for 0..n carry(s = 0, p = 1) { wait empty[s], p; copy to slot s, arrive at full[s];   s, p = next(s, p) }
//! read:  for 0..n carry(s = 0, p = 0) { wait full[s], p;  read slot s, arrive at empty[s];     s, p = next(s, p) }
//! ```
//!
//! The first three rounds each use a slot that has not been used before, so that the state changes, and they are peeled. From then on, a
//! round leads to the same state. These are the hypothesis and its check, for the round `i` after them; `+ k` is relative to the clock:
//!
//! | | first round | [`Plan`] | start of round `i` | found at its end | wanted there |
//! |---|---|---|---|---|---|
//! | clocks of `full`, `empty`, the slots | + 1 | advance 1, even | origin `i` | origin `i`, + 1 | + 1, as in the first round |
//! | `s` of both | 0 to 1 | `Stage(3)`, `Step(1)` from 0 | `i mod 3` | `(i + 1) mod 3` | `(i + 1) mod 3` |
//! | `p` of `read`, 1 after three rounds | 1 to 1 | `Parity(3, 1)`, `Step(1)` from 0 | `(i / 3 + 1) mod 2` | `((i + 1) / 3 + 1) mod 2` | the same |
//! | `p` of `fill`, 0 after three rounds | 0 to 0 | `Parity(3, 0)`, `Step(1)` from 0 | `(i / 3) mod 2` | `((i + 1) / 3) mod 2` | the same |
//!
//! With a loop over tiles around both, whose inner loops have `m` steps and pass `s` and `p` on, the plan of the outer loop is:
//!
//! | `m` is | the clocks | start of tile `i` | `s` and `p` |
//! |---|---|---|---|
//! | an argument of the launch | advance `m`, even | origin `m · i` | grow by no constant, but as `full` does: `Object(full, 0)`, so `s` is `m · i mod 3` |
//! | loaded from an input | advance `m`, not even: `m · i` is no number that a launch can check | origin `x`, an unknown, the same for all three | `Object(full, 0)`: `s` is `x mod 3` |
//!
//! A deviation in some iteration weakens one of these, and the iteration is executed again, at most as often as there are steps here:
//! `Step` becomes `Object`, and that becomes no induction variable; an even clock gets an unknown value, together with those that advance
//! equally, and then an unknown value of its own.

use super::cyclic::Turn;
use super::fault::Stop;
use super::induct::Partner;
use super::linear::{Condition, Facts, Linear};

use super::rings::pairs::{Clocks, Pairs, Shown, Side};
use super::run::Run;
use super::state::{Frame, Ring, State};
use super::values::Known;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{OpKind, TtgOp, Ty, Value};

/// How a carried integer or its counter advances.
#[derive(Clone, Debug)]
enum Induction {
    /// It increases by this number in each iteration.
    Step(i64),
    /// It advances with this object, at this distance from the origin of the object.
    Object(usize, i64),
}

/// A carried integer as a function of its counter.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The counter itself.
    Plain,
    /// The counter modulo this.
    Stage(i64),
    /// The parity of the counter divided by the first number, plus the second.
    Parity(i64, i64),
}

#[derive(Clone, Debug)]
struct Carried {
    role: usize,
    arg: Value,
    start: Linear,
    follows: Induction,
    shape: Shape,
}

/// The induction hypothesis: the state at the start of an arbitrary iteration.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// For each object, by how much its clock advances in the first iteration.
    advance: Vec<Linear>,
    /// For each object, whether it advances equally in every iteration; the clocks of the others have unknown values.
    even: Vec<bool>,
    carried: Vec<Carried>,
}

/// How the states after an iteration relate to the one before it.
pub(super) enum Back {
    /// The iteration returns to a state that the one before it stands for.
    Same,
    /// More is in flight, or in newer groups.
    More,
    /// They differ in something else.
    Other,
}

/// The deviations of some iteration from the hypothesis.
#[derive(Debug, Default)]
pub(super) struct Deviations {
    /// The carried values that do not increase by constant steps; and those that are not induction variables.
    stepless: SortedSet<Value>,
    free: SortedSet<Value>,
    /// The objects that do not always advance equally; and those that advance together with no other one.
    uneven: SortedSet<usize>,
    alone: SortedSet<usize>,
    /// The pairs that are related to the clocks of rings, by role, where not all stay related.
    clocks: SortedMap<usize, Clocks>,
    /// The pairs of a role with all work in flight that is in flight at the start of some iteration.
    in_flight: SortedMap<usize, Pairs>,
}

impl Deviations {
    /// The state with less that is known: without the pairs that do not stay related to their clocks, and with what may be in flight.
    pub(super) fn weakened(&self, state: &State) -> State {
        let mut state = state.clone();
        for (role, pairs) in &self.in_flight {
            state.roles[*role].pairs.clone_from(pairs);
        }
        for (role, clocks) in &self.clocks {
            state.roles[*role].pairs.clocks.clone_from(clocks);
        }
        state
    }

    /// Whether more is assumed to be in flight than is.
    pub(super) fn has_more_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// How the states after an iteration relate to the one before it. Records what is in flight after it and is not before it, or in an older
    /// group, if the states are equal otherwise.
    pub(super) fn back(&mut self, before: &State, ends: &[State], roles: &[usize]) -> Back {
        // No end at all is no proof: a round that always leaves the loops says nothing about one that stays.
        let same = ends.iter().filter(|end| end.same(before, roles)).count();
        if same == ends.len() {
            return if ends.is_empty() { Back::Other } else { Back::Same };
        }
        // `None`: they differ in more than what is in flight. More in flight is only less that is known, so the
        // hypothesis is raised to the union of both. `in_flight` only grows, up to all accesses of the roles, so that
        // this happens finitely often.
        let Some(joined) = joined_in_flight(before, ends, roles) else { return Back::Other };
        let more: Vec<_> = joined.into_iter().filter(|(role, all)| *all != before.roles[*role].pairs).collect();
        if !more.is_empty() {
            self.in_flight.extend(more);
            return Back::More;
        }
        // In no case is more in flight. If one case returns to the state, it stands for all of them; so it does if it already stands for
        // more than one state.
        if same > 0 || self.has_more_in_flight() { Back::Same } else { Back::Other }
    }

    /// Records pairs that were related to a clock before an iteration and are not after it; returns whether there are any, while
    /// others stay related.
    pub(super) fn fewer_clocks(&mut self, before: &State, ends: &[State], roles: &[usize]) -> bool {
        let mut any = false;
        for role in roles {
            let own = &before.roles[*role].pairs.clocks;
            let common = |side: &Side, shown: &SortedSet<Shown>| -> SortedSet<Shown> {
                let in_all = |pair: &&Shown| {
                    ends.iter().all(|e| e.roles[*role].pairs.clocks.get(side).is_some_and(|all| all.contains(*pair)))
                };
                shown.iter().filter(in_all).copied().collect()
            };
            let fewer: Clocks = own.iter().map(|(side, shown)| (*side, common(side, shown))).collect();
            // Without any pair a side has no clock, and every later claim would be refused. Then the difference of the
            // states says what is wrong.
            if fewer != *own && fewer.values().all(|shown| !shown.is_empty()) {
                self.clocks.insert(*role, fewer);
                any = true;
            }
        }
        any
    }
}

impl Run<'_> {
    /// Executes the first iteration of these loops, and forms the hypothesis for the arbitrary one.
    pub(super) fn plan(
        &mut self,
        state: &State,
        partners: &[Partner],
        common: &Linear,
        deviations: &Deviations,
    ) -> Result<Plan, Stop> {
        if self.objects.is_empty() {
            return Ok(Plan::default());
        }
        let mut first = state.clone();
        first.facts.assume(&Condition::NotNegative(common.plus_const(-1), true), true);
        let mut goal = vec![usize::MAX; state.roles.len()];
        for p in partners {
            goal[p.role] = first.roles[p.role].frames.len();
            self.enter(&mut first, p.role)?;
        }
        let timed = std::mem::replace(&mut self.timed, false);
        // The first round only proposes the hypothesis. Everything it concludes is shown again by the arbitrary one,
        // which includes i = 0.
        let asked = self.symbols.required.clone();
        let ends = self.run_inside(first, &goal);
        // The conditions on the launch come from the arbitrary iteration, which includes this one.
        self.symbols.required = asked;
        self.timed = timed;
        let ends = ends?;
        // Any case will do for a proposal; the others deviate from it, if they do, in the check.
        let Some(end) = ends.first() else { return Ok(Plan::default()) };
        let n = state.machine.origins.len();
        let advance: Vec<Linear> = (0..n).map(|o| end.moved(state, o)).collect();
        // The total over all iterations must be expressible by launch arguments.
        let mut sums = |by: &Linear| {
            by.terms().all(|(atom, _)| self.symbols.is_of_launch(atom))
                && self.symbols.product(by, common, &mut state.facts.clone()).is_some()
        };
        let even = (0..n).map(|o| !deviations.uneven.contains(&o) && sums(&advance[o])).collect();
        let mut plan = Plan { advance, even, carried: Vec::new() };
        for p in partners {
            for arg in self.integers(state, p.role) {
                if !deviations.free.contains(&arg) {
                    plan.carried.extend(self.follow(state, end, (p.role, arg), &plan, deviations));
                }
            }
        }
        Ok(plan)
    }

    /// The carried integers of the loop at whose head a role is.
    fn integers(&self, state: &State, role: usize) -> Vec<Value> {
        let Some(Frame::Loop(l)) = state.roles[role].frames.last() else { return Vec::new() };
        self.carried(self.kernel.op(l.op)).into_iter().filter(|v| self.kernel.ty(*v) == Ty::I32).collect()
    }

    fn follow(
        &mut self,
        state: &State,
        end: &State,
        (role, arg): (usize, Value),
        plan: &Plan,
        deviations: &Deviations,
    ) -> Option<Carried> {
        let before = self.symbols.known_int(arg, &state.roles[role].env)?;
        let after = self.symbols.known_int(arg, &end.roles[role].env)?;
        let (start, next, shape, turn) = match self.turns.get(arg) {
            Some(Turn::Stage(n)) => (self.stage_of(&before, n)?, self.stage_of(&after, n)?, Shape::Stage(n), Some(n)),
            Some(Turn::Parity(n, stage)) => {
                let stages = [state, end].map(|s| self.symbols.known_int(stage, &s.roles[role].env));
                let [Some(s0), Some(s1)] = stages else { return None };
                let (t0, t1) = (self.stage_of(&s0, n)?, self.stage_of(&s1, n)?);
                // A parity is a function of the counter of its stage. What it may differ by is a constant flip: 0 for a
                // wait for data, 1 for one for a free slot.
                let flip = self.flip(&before, &t0, n, &mut state.facts.clone())?;
                (t0, t1, Shape::Parity(n, flip), Some(n))
            }
            None => (before.clone(), after, Shape::Plain, None),
        };
        let grown = next.minus(&start);
        let stepless = deviations.stepless.contains(&arg);
        let follows = match (grown.as_constant().filter(|_| !stepless), turn) {
            // From n - 1 to 0 a stage index falls by n - 1, which is a step by 1 modulo n.
            (Some(c), Some(n)) => Induction::Step(c.rem_euclid(n)),
            (Some(c), None) => Induction::Step(c),
            (None, _) => {
                let alike = |o: usize| {
                    let distance = start.minus(&state.machine.origins[o]).as_constant()?;
                    // For a stage index, only the remainder is known.
                    let same = plan.advance[o] == grown
                        || turn.is_some_and(|n| grown.minus(&plan.advance[o]).residue(n) == Some(0));
                    (same && !(stepless && plan.even[o])).then_some(Induction::Object(o, distance))
                };
                (0..plan.advance.len()).find_map(alike)?
            }
        };
        Some(Carried { role, arg, start, follows, shape })
    }

    /// The counter from which a stage index is computed.
    fn stage_of(&self, stage: &Linear, n: i64) -> Option<Linear> {
        if stage.as_constant().is_some() {
            return Some(stage.clone());
        }
        self.symbols.cyclic(stage).filter(|(_, by)| *by == n).map(|(t, _)| t)
    }

    /// The offset that gives a parity from the quotient of a counter.
    fn flip(&mut self, parity: &Linear, t: &Linear, n: i64, facts: &mut Facts) -> Option<i64> {
        let turns = self.symbols.quotient(t, n, facts)?;
        let of = match parity.as_constant() {
            Some(c) => Linear::constant(c),
            None => self.symbols.cyclic(parity).filter(|(_, by)| *by == 2).map(|(of, _)| of)?,
        };
        of.minus(&turns).as_constant().map(|c| c.rem_euclid(2))
    }

    /// Moves a state to the start of an iteration that is `i` ahead, or after that many iterations.
    pub(super) fn shift(&mut self, state: &mut State, plan: &Plan, deviations: &Deviations, i: &Linear) {
        let before = state.machine.origins.clone();
        for (o, advance) in plan.advance.iter().enumerate() {
            // An object that advances by `advance` in each round is i · advance further in round i. If it advances
            // unevenly, nothing but that its clock is some number is known; objects that advance together share the
            // number, so that their distance stays known.
            let all = self.symbols.product(advance, i, &mut state.facts).filter(|_| plan.even[o]);
            let origin = match all {
                Some(all) => before[o].plus(1, &all),
                None => match (0..o).find_map(|p| Some((p, plan.together(&before, deviations, (p, o))?))) {
                    Some((p, distance)) => state.machine.origins[p].plus_const(distance),
                    None => self.somewhere(state),
                },
            };
            state.machine.origins[o] = origin;
        }
        for carried in &plan.carried {
            let counter = match carried.follows {
                Induction::Step(k) => carried.start.plus(k, i),
                Induction::Object(o, distance) => state.machine.origins[o].plus_const(distance),
            };
            self.set(state, carried, &counter);
        }
    }

    fn shaped(&mut self, shape: Shape, counter: &Linear, facts: &mut Facts) -> Option<Linear> {
        match shape {
            Shape::Plain => Some(counter.clone()),
            Shape::Stage(n) => self.symbols.remainder(counter, n, facts),
            Shape::Parity(n, flip) => {
                let turns = self.symbols.quotient(counter, n, facts)?;
                self.symbols.remainder(&turns.plus_const(flip), 2, facts)
            }
        }
    }

    fn set(&mut self, state: &mut State, carried: &Carried, counter: &Linear) {
        let known = self.shaped(carried.shape, counter, &mut state.facts);
        let env = &mut state.roles[carried.role].env.known;
        match known {
            Some(l) => drop(env.insert(carried.arg, Known::Int(l))),
            None => drop(env.remove(&carried.arg)),
        }
    }

    /// An unknown non-negative number.
    pub(in crate::verify) fn somewhere(&mut self, state: &mut State) -> Linear {
        let atom = Linear::atom(self.symbols.counter());
        state.facts.assume(&Condition::NotNegative(atom.clone(), true), true);
        atom
    }

    /// Checks the induction hypothesis after the arbitrary iteration; records and returns whether there are deviations.
    pub(super) fn check_induction(
        &mut self,
        plan: &Plan,
        begin: &State,
        ends: &[State],
        i: &Linear,
        deviations: &mut Deviations,
    ) -> bool {
        let mut any = false;
        for end in ends {
            let mut facts = end.facts.clone();
            let moved: Vec<Linear> =
                (0..plan.advance.len()).map(|o| self.symbols.settled(&end.moved(begin, o), &mut facts)).collect();
            let advance: Vec<Linear> = plan.advance.iter().map(|by| self.symbols.settled(by, &mut facts)).collect();
            // In every case, since a round takes one of them. Numbers are settled first: they may be equal only because
            // of what the case has decided.
            any |= plan.uneven(begin, (&moved, &advance), deviations);
        }
        // Carried values were assumed to advance with these objects; they do not deviate themselves.
        if any {
            return true;
        }
        for end in ends {
            let mut facts = end.facts.clone();
            for carried in &plan.carried {
                let counter = match carried.follows {
                    Induction::Step(k) => carried.start.plus(k, &i.plus_const(1)),
                    Induction::Object(o, distance) => {
                        begin.machine.origins[o].plus_const(distance).plus(1, &end.moved(begin, o))
                    }
                };
                let wanted = self.shaped(carried.shape, &counter, &mut facts);
                let found = self.symbols.known_int(carried.arg, &end.roles[carried.role].env);
                let [wanted, found] = [wanted, found].map(|l| l.map(|l| self.symbols.settled(&l, &mut facts)));
                // Each deviation moves a value down one step: from a constant step to following an object, from that to
                // unknown. So this ends.
                if wanted.is_none() || wanted != found {
                    let steps =
                        matches!(carried.follows, Induction::Step(_)) && deviations.stepless.insert(carried.arg);
                    any |= steps || deviations.free.insert(carried.arg);
                }
            }
        }
        any
    }

    /// Advances the clocks of rings by `times` rounds.
    pub(super) fn tick(&mut self, state: &mut State, passed: &[[Option<Linear>; 2]], times: &Linear) {
        for (ring, by) in passed.iter().enumerate() {
            for (side, by) in by.iter().enumerate() {
                let mut facts = std::mem::take(&mut state.facts);
                let all = by.as_ref().and_then(|by| self.symbols.product(by, times, &mut facts));
                state.facts = facts;
                state.clocks[ring][side] = match all {
                    Some(all) => state.clocks[ring][side].plus(1, &all),
                    None => self.somewhere(state),
                };
            }
        }
    }

    /// Whether the kernel contains stated times.
    pub(super) fn writes_times(&self) -> bool {
        let clocked = |kind: &OpKind| matches!(kind, OpKind::Ttg(TtgOp::Acquire(_) | TtgOp::Ready(_)));
        self.kernel.ops.iter().any(|op| clocked(&op.kind) && !op.args.is_empty())
    }
}

impl State {
    /// By how much the clock of an object has advanced since an earlier state.
    fn moved(&self, since: &State, object: usize) -> Linear {
        self.machine.clock(object).minus(&since.machine.clock(object))
    }
}

impl Plan {
    /// For two objects with unknown values that advance together: the distance of the second from the first.
    fn together(&self, origins: &[Linear], deviations: &Deviations, (first, second): (usize, usize)) -> Option<i64> {
        let free = |o: usize| !self.even[o] && !deviations.alone.contains(&o);
        let alike = free(first) && free(second) && self.advance[first] == self.advance[second];
        origins[second].minus(&origins[first]).as_constant().filter(|_| alike)
    }

    /// Records and returns whether an object has advanced differently from the hypothesis.
    fn uneven(&self, begin: &State, (moved, advance): (&[Linear], &[Linear]), deviations: &mut Deviations) -> bool {
        let mut any = false;
        for o in 0..moved.len() {
            if self.even[o] {
                any |= moved[o] != advance[o] && deviations.uneven.insert(o);
            } else if (0..o)
                .any(|p| moved[p] != moved[o] && self.together(&begin.machine.origins, deviations, (p, o)).is_some())
            {
                any |= deviations.alone.insert(o);
            }
        }
        any
    }
}

/// The pairs of each role with everything in flight that is in flight in one of these states, if they are equal otherwise.
fn joined_in_flight(before: &State, ends: &[State], roles: &[usize]) -> Option<Vec<(usize, Pairs)>> {
    if !ends.iter().all(|end| end.same_but_for_pairs(before, roles)) {
        return None;
    }
    let joined = |role: &usize| {
        let ends: Vec<Pairs> = ends.iter().map(|end| end.relative_pairs(*role)).collect();
        Some((*role, before.roles[*role].pairs.joined_in_flight(|pipe| before.base(pipe), &ends)?))
    };
    roles.iter().map(joined).collect()
}

/// By how much the clocks of each ring advanced, that of the readers and that of the filler, if equally in every case and in
/// every round. The advance of inner loops is in the clocks of the state, that of the round itself in its rings.
pub(super) fn passed(ends: &[State], before: &State, always: impl Fn(&Linear) -> bool) -> Vec<[Option<Linear>; 2]> {
    let read = |r: &Ring| r.readers.first().map_or(0, |r| r.claimed);
    let of = |end: &State, ring: usize, side: usize| {
        let own = [
            read(&end.rings[ring]) - read(&before.rings[ring]),
            end.rings[ring].acquired - before.rings[ring].acquired,
        ];
        end.clocks[ring][side].minus(&before.clocks[ring][side]).plus_const(own[side])
    };
    let all = |ring: usize, side: usize| {
        let mut found = ends.iter().map(|end| of(end, ring, side));
        let first = found.next()?;
        // Equal in all cases, and no number that changes from round to round: otherwise a product with the number of
        // rounds is not what they advance.
        (found.all(|other| other == first) && always(&first)).then_some(first)
    };
    (0..before.rings.len()).map(|ring| [all(ring, 0), all(ring, 1)]).collect()
}
