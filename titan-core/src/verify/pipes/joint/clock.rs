//! Loops before barriers: what turns in them, in any iteration.
//!
//! One iteration is run as it comes first, to see how far every barrier and every memory gets in it, and by how much carried
//! integers grow. Then an arbitrary iteration is run: what got `k` further the first time stands `k · i` further, what got
//! further by something else, because an inner loop did, stands anywhere; carried integers stand where their steps put them, or
//! at their distance from the barrier that grew as they did. That the assumption holds again at the end of that iteration
//! makes it hold for all.

use super::cyclic::Turn;
use super::linear::{Condition, Facts, Linear};
use super::run::{Fault, Run};
use super::state::{Frame, State};
use super::values::Known;
use crate::ir::{Ty, Value};
use std::collections::BTreeSet;

/// What a counter follows.
#[derive(Clone, Debug)]
enum Follows {
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
    follows: Follows,
    shape: Shape,
}

/// How an arbitrary iteration begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// How far each object gets in an iteration.
    advance: Vec<Linear>,
    carried: Vec<Carried>,
}

impl Run<'_> {
    /// Runs the first iteration of these loops, and plans the arbitrary one; `without` are carried values that follow nothing.
    pub(super) fn plan(&mut self, state: &State, roles: &[usize], common: &Linear, without: &BTreeSet<Value>) -> Result<Plan, Fault> {
        if self.objects.is_empty() {
            return Ok(Plan::default());
        }
        let mut first = state.clone();
        first.facts.assume(&Condition::NotNegative(common.plus_const(-1), true), true);
        let mut goal = vec![usize::MAX; state.roles.len()];
        for role in roles {
            goal[*role] = first.roles[*role].frames.len();
            self.enter(&mut first, *role, None);
        }
        let timed = std::mem::replace(&mut self.timed, false);
        let clocks = self.clocks.clone();
        let ends = self.run(first, &goal);
        self.timed = timed;
        self.clocks = clocks;
        let ends = ends?;
        let Some(end) = ends.first() else { return Ok(Plan::default()) };
        let n = state.machine.origins.len();
        let advance: Vec<Linear> = (0..n).map(|o| end.machine.clock(o).minus(&state.machine.clock(o))).collect();
        let mut carried = Vec::new();
        for role in roles {
            for arg in self.integers(state, *role) {
                if !without.contains(&arg) {
                    carried.extend(self.follow(state, end, *role, arg, &advance));
                }
            }
        }
        Ok(Plan { advance, carried })
    }

    /// The carried integers of the loop at which a role stands.
    fn integers(&self, state: &State, role: usize) -> Vec<Value> {
        let Some(Frame::Loop(l)) = state.roles[role].frames.last() else { return Vec::new() };
        self.carried(self.kernel.op(l.op)).into_iter().filter(|v| self.kernel.ty(*v) == Ty::I32).collect()
    }

    fn follow(&mut self, state: &State, end: &State, role: usize, arg: Value, advance: &[Linear]) -> Option<Carried> {
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
        let follows = match (grown.as_constant(), turn) {
            (Some(c), Some(n)) => Follows::Step(c.rem_euclid(n)),
            (Some(c), None) => Follows::Step(c),
            (None, _) => {
                let alike = |o: usize| {
                    let distance = start.minus(&state.machine.origins[o]).as_constant()?;
                    // Of a stage only the remainder is known.
                    let same = advance[o] == grown || turn.is_some_and(|n| grown.minus(&advance[o]).residue(n) == Some(0));
                    same.then_some(Follows::Object(o, distance))
                };
                (0..advance.len()).find_map(alike)?
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
    pub(super) fn shift(&mut self, state: &mut State, plan: &Plan, i: &Linear) {
        let before = state.machine.origins.clone();
        let mut anywhere: Vec<(Linear, Linear, Linear)> = Vec::new();
        for (o, advance) in plan.advance.iter().enumerate() {
            let origin = match advance.as_constant() {
                Some(k) => before[o].plus(k, i),
                None => {
                    let alike = anywhere.iter().find_map(|(by, from, to)| {
                        (by == advance).then(|| before[o].minus(from).as_constant().map(|c| to.plus_const(c))).flatten()
                    });
                    alike.unwrap_or_else(|| {
                        let somewhere = Linear::atom(self.symbols.counter());
                        state.facts.assume(&Condition::NotNegative(somewhere.clone(), true), true);
                        anywhere.push((advance.clone(), before[o].clone(), somewhere.clone()));
                        somewhere
                    })
                }
            };
            state.machine.origins[o] = origin;
        }
        for carried in &plan.carried {
            let counter = match carried.follows {
                Follows::Step(k) => carried.start.plus(k, i),
                Follows::Object(o, distance) => state.machine.origins[o].plus_const(distance),
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

    /// The carried values that are not, after the arbitrary iteration, where the plan puts them.
    pub(super) fn astray(&mut self, plan: &Plan, begin: &State, ends: &[State], i: &Linear) -> BTreeSet<Value> {
        let mut astray = BTreeSet::new();
        for end in ends {
            let mut facts = end.facts.clone();
            for carried in &plan.carried {
                let counter = match carried.follows {
                    Follows::Step(k) => carried.start.plus(k, &i.plus_const(1)),
                    Follows::Object(o, distance) => {
                        let moved = end.machine.clock(o).minus(&begin.machine.clock(o));
                        begin.machine.origins[o].plus_const(distance).plus(1, &moved)
                    }
                };
                let wanted = self.shaped(carried.shape, &counter, &mut facts);
                let found = self.symbols.known_int(carried.arg, &end.roles[carried.role].env);
                if wanted.is_none() || wanted != found {
                    astray.insert(carried.arg);
                }
            }
        }
        astray
    }
}
