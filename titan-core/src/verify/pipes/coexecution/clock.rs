//! Loops before barriers: what turns in them, in any iteration.
//!
//! One iteration is run as it comes first, to see how far every barrier and every memory gets in it, and by how much carried
//! integers grow. Then an arbitrary iteration is run: what got `k` further the first time stands `k · i` further, what got
//! further by something else, because an inner loop did, stands anywhere; carried integers stand where their steps put them, or
//! at their distance from the barrier that grew as they did. That the assumption holds again at the end of that iteration,
//! in every case, makes it hold for all. What it does not hold for is planned with less: as standing anywhere, with what gets
//! as far as it does in every iteration, and at last by itself.

use super::claims::{Clocks, Shown, Side};
use super::cyclic::Turn;
use super::fault::Stop;
use super::induct::Partner;
use super::linear::{Condition, Facts, Linear};
use super::run::Run;
use super::state::{Frame, Ring, State};
use super::values::Known;
use crate::ir::{OpKind, TtgOp, Ty, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What a counter follows.
#[derive(Clone, Debug)]
enum Induction {
    /// It grows by this in each iteration.
    Step(i64),
    /// It grows as this object does, and stands so far from its origin.
    Object(usize, i64),
}

/// What a carried integer is, of its counter.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The counter itself.
    Plain,
    /// Its stage of so many.
    Stage(i64),
    /// The parity of its turns, and what is added to them.
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

/// How an arbitrary iteration begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// How far each object gets in the first iteration.
    advance: Vec<Linear>,
    /// Which of them get as far in every iteration; the rest stands anywhere.
    even: Vec<bool>,
    carried: Vec<Carried>,
}

/// What did not go in some iteration as in the first.
#[derive(Debug, Default)]
pub(super) struct Deviations {
    /// Carried values that do not grow by steps, and those that follow nothing.
    stepless: BTreeSet<Value>,
    free: BTreeSet<Value>,
    /// Objects that do not always get as far, and those that go with no other one.
    uneven: BTreeSet<usize>,
    alone: BTreeSet<usize>,
    /// What the clocks of rings show by the pairs of a role, of which not all keep up.
    clocks: BTreeMap<usize, Clocks>,
}

impl Deviations {
    /// The state, without the pairs that do not keep up with their clocks.
    pub(super) fn with_clocks(&self, state: &State) -> State {
        let mut state = state.clone();
        for (role, clocks) in &self.clocks {
            state.roles[*role].pairs.clocks.clone_from(clocks);
        }
        state
    }

    /// Notes pairs that showed a clock before an iteration and do not after it; whether there are such, and others that do.
    pub(super) fn fewer_clocks(&mut self, before: &State, ends: &[State], roles: &[usize]) -> bool {
        let mut any = false;
        for role in roles {
            let own = &before.roles[*role].pairs.clocks;
            let common = |side: &Side, shown: &BTreeSet<Shown>| -> BTreeSet<Shown> {
                let in_all = |pair: &&Shown| {
                    ends.iter().all(|e| e.roles[*role].pairs.clocks.get(side).is_some_and(|all| all.contains(*pair)))
                };
                shown.iter().filter(in_all).copied().collect()
            };
            let fewer: Clocks = own.iter().map(|(side, shown)| (*side, common(side, shown))).collect();
            if fewer != *own && fewer.values().all(|shown| !shown.is_empty()) {
                self.clocks.insert(*role, fewer);
                any = true;
            }
        }
        any
    }
}

impl Run<'_> {
    /// Runs the first iteration of these loops, and plans the arbitrary one.
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
            self.enter(&mut first, p.role);
        }
        let timed = std::mem::replace(&mut self.timed, false);
        let asked = self.symbols.required.clone();
        let ends = self.run_inside(first, &goal);
        // The arbitrary iteration asks for what it needs, and this one with it.
        self.symbols.required = asked;
        self.timed = timed;
        let ends = ends?;
        let Some(end) = ends.first() else { return Ok(Plan::default()) };
        let n = state.machine.origins.len();
        let advance: Vec<Linear> = (0..n).map(|o| end.moved(state, o)).collect();
        // What all iterations sum up to must be a number that can be written down, of what the launch gives.
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

    /// The carried integers of the loop at which a role stands.
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
                let flip = self.flip(&before, &t0, n, &mut state.facts.clone())?;
                (t0, t1, Shape::Parity(n, flip), Some(n))
            }
            None => (before.clone(), after, Shape::Plain, None),
        };
        let grown = next.minus(&start);
        let stepless = deviations.stepless.contains(&arg);
        let follows = match (grown.as_constant().filter(|_| !stepless), turn) {
            (Some(c), Some(n)) => Induction::Step(c.rem_euclid(n)),
            (Some(c), None) => Induction::Step(c),
            (None, _) => {
                let alike = |o: usize| {
                    let distance = start.minus(&state.machine.origins[o]).as_constant()?;
                    // Of a stage only the remainder is known.
                    let same = plan.advance[o] == grown
                        || turn.is_some_and(|n| grown.minus(&plan.advance[o]).residue(n) == Some(0));
                    (same && !(stepless && plan.even[o])).then_some(Induction::Object(o, distance))
                };
                (0..plan.advance.len()).find_map(alike)?
            }
        };
        Some(Carried { role, arg, start, follows, shape })
    }

    /// The counter of which this is the stage.
    fn stage_of(&self, stage: &Linear, n: i64) -> Option<Linear> {
        if stage.as_constant().is_some() {
            return Some(stage.clone());
        }
        self.symbols.cyclic(stage).filter(|(_, by)| *by == n).map(|(t, _)| t)
    }

    /// What is added to the turns of a counter to give a parity.
    fn flip(&mut self, parity: &Linear, t: &Linear, n: i64, facts: &mut Facts) -> Option<i64> {
        let turns = self.symbols.quotient(t, n, facts)?;
        let of = match parity.as_constant() {
            Some(c) => Linear::constant(c),
            None => self.symbols.cyclic(parity).filter(|(_, by)| *by == 2).map(|(of, _)| of)?,
        };
        of.minus(&turns).as_constant().map(|c| c.rem_euclid(2))
    }

    /// Puts a state at the beginning of the iteration that is `i` further, or after so many.
    pub(super) fn shift(&mut self, state: &mut State, plan: &Plan, deviations: &Deviations, i: &Linear) {
        let before = state.machine.origins.clone();
        for (o, advance) in plan.advance.iter().enumerate() {
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

    /// Some number that is not negative.
    pub(in crate::verify) fn somewhere(&mut self, state: &mut State) -> Linear {
        let atom = Linear::atom(self.symbols.counter());
        state.facts.assume(&Condition::NotNegative(atom.clone(), true), true);
        atom
    }

    /// Whether something is not, after the arbitrary iteration, where the plan puts it: it is noted.
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
            any |= plan.uneven(begin, (&moved, &advance), deviations);
        }
        // What is carried was taken to go with them: it is not to blame.
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
                if wanted.is_none() || wanted != found {
                    let steps =
                        matches!(carried.follows, Induction::Step(_)) && deviations.stepless.insert(carried.arg);
                    any |= steps || deviations.free.insert(carried.arg);
                }
            }
        }
        any
    }

    /// The clocks of rings go on by what passes in one round, `times` over.
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

    /// Whether the kernel writes times down.
    pub(super) fn writes_times(&self) -> bool {
        let clocked = |kind: &OpKind| matches!(kind, OpKind::Ttg(TtgOp::Acquire(_) | TtgOp::Ready(_)));
        self.kernel.ops.iter().any(|op| clocked(&op.kind) && !op.args.is_empty())
    }
}

impl State {
    /// How far an object has got since then.
    fn moved(&self, since: &State, object: usize) -> Linear {
        self.machine.clock(object).minus(&since.machine.clock(object))
    }
}

impl Plan {
    /// Whether two objects stand anywhere, but together: how far the second is from the first.
    fn together(&self, origins: &[Linear], deviations: &Deviations, (first, second): (usize, usize)) -> Option<i64> {
        let free = |o: usize| !self.even[o] && !deviations.alone.contains(&o);
        let alike = free(first) && free(second) && self.advance[first] == self.advance[second];
        origins[second].minus(&origins[first]).as_constant().filter(|_| alike)
    }

    /// Whether an object got further than planned: it is noted.
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

/// How far the clocks of each ring went, that of the readers and that of the filler: if as far in every case, and as far in
/// every round. What inner loops pass is in the clocks of the state, what the round itself passes in its rings.
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
        (found.all(|other| other == first) && always(&first)).then_some(first)
    };
    (0..before.rings.len()).map(|ring| [all(ring, 0), all(ring, 1)]).collect()
}
