//! All roles together, for any number of iterations.
//!
//! Roles only wait for each other in rings, and a ring is a bounded queue, so which role goes first makes no difference to
//! how far they get: if one order of steps brings all of them to their ends, every order does. So one order is sought. Each
//! role runs as far as it can. When all of them wait or stand at the heads of loops, loops that run equally often go
//! together: one iteration of all of them, for a counter of which nothing is known but its range, must lead back to the same
//! state. Then it does so every time, and all iterations are done at once. If it does not, iterations are taken off the front
//! one by one: a role that must run ahead does, and accumulators fill up. Where it matters whether a loop runs at all, or
//! which way a branch goes, both are tried, for all roles alike.

#![expect(clippy::wildcard_enum_match_arm, reason = "only what concerns rings is named")]

use super::clock::{Unlike, passed};
use super::cyclic::Turns;
use super::linear::{Atom, Condition, Facts, Linear};
use super::state::{Frame, Loop, Reader, Ring, Role, State, Times};
use super::values::{Env, Symbols};
use crate::ir::{AmdOp, Kernel, NvOp, OpId, OpKind, Pipe, RegionOp, TtgOp, Ty, Value};
use crate::verify::Error;
use crate::verify::barriers::machine::Machine;
use crate::verify::barriers::objects::Objects;
use crate::verify::pipes::threads;
use std::collections::{BTreeMap, BTreeSet};

/// What a role waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) struct Wait {
    pub(in crate::verify) role: usize,
    pub(in crate::verify) op: OpId,
    pub(in crate::verify) on: On,
}

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum On {
    /// A stage that is filled.
    Filled(Pipe),
    /// A slot that is free.
    Free(Pipe),
    /// A phase of a barrier.
    Phase(usize, i64),
}

/// A wait that does not end.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Stuck {
    pub(in crate::verify) wait: Wait,
    /// Who could end it.
    pub(in crate::verify) provider: Option<usize>,
    /// The loop at whose end that role stands, and whether the loop does anything to the ring.
    pub(in crate::verify) behind: Option<(OpId, bool)>,
    /// How many stages of the ring the role that waits holds itself.
    pub(in crate::verify) holds: usize,
    /// What there is to say of a phase that does not complete.
    pub(in crate::verify) told: Option<Error>,
}

/// How a step went.
pub(in crate::verify) enum Step {
    Moved,
    Blocked(Wait),
    AtLoop,
    /// It depends.
    AtBranch(Condition),
    Ended,
}

/// Why the roles do not fit together.
#[derive(Clone, Debug)]
pub(in crate::verify) enum Fault {
    /// Everybody waits or has ended; roles that have ended, and the cases that led here.
    Stuck { waits: Vec<Stuck>, ended: Vec<bool> },
    /// Everybody has ended, but a ring is not empty.
    Left { pipe: Pipe, filled: i64, read: i64 },
    /// Loops about which nothing can be shown.
    Apart { loops: Vec<(usize, OpId)> },
    /// A loop without a count has pipeline operations in it.
    Endless { role: usize, op: OpId },
    /// A loop with pipeline operations is left early.
    Early { role: usize, op: OpId },
    /// A staging slot is taken again before its store was waited for.
    Staging { op: OpId, pipe: Pipe },
    /// A written time is not the clock's.
    Time { op: OpId, pipe: Pipe },
    /// Something that barriers, groups and memory do not allow.
    Barrier(Box<Error>),
    /// As that, of an arbitrary iteration, if all are like the first one that was run.
    Suspect(Box<Error>),
    /// A branch in a loop turns at this iteration; not a fault, but a request.
    Turn(Linear),
    /// Too many cases.
    Lost,
}

/// How many steps are taken before giving up: no kernel that people write comes near.
const STEPS: usize = 200_000;

pub(in crate::verify) struct Run<'k> {
    pub(in crate::verify) kernel: &'k Kernel,
    pub(in crate::verify) symbols: Symbols<'k>,
    /// Operations that matter here.
    pub(in crate::verify) events: BTreeSet<OpId>,
    pub(in crate::verify) staging: BTreeSet<Pipe>,
    pub(in crate::verify) objects: Objects,
    pub(in crate::verify) turns: Turns,
    /// Whether written times are checked.
    pub(in crate::verify) timed: bool,
    pub(super) serial: u32,
    steps: usize,
    /// Counters of which nothing is known, with the iteration before theirs.
    pub(super) counters: Vec<(Atom, u32)>,
}

impl<'k> Run<'k> {
    pub(in crate::verify) fn new(kernel: &'k Kernel) -> Self {
        let mut run = Run {
            kernel,
            symbols: Symbols::new(kernel),
            events: BTreeSet::new(),
            staging: BTreeSet::new(),
            objects: Objects::new(kernel),
            turns: Turns::new(kernel),
            timed: true,
            serial: 0,
            steps: 0,
            counters: Vec::new(),
        };
        run.find_events(kernel.body);
        run.find_exits(kernel.body, &mut Vec::new());
        run
    }

    /// Marks what leads out of a loop that matters.
    fn find_exits(&mut self, block: crate::ir::Block, around: &mut Vec<OpId>) {
        let kernel = self.kernel;
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            let loops: Vec<usize> = (0..around.len()).rev().filter(|i| kernel.op(around[*i]).kind.is_loop()).collect();
            let from = match op.kind {
                OpKind::Break(n) | OpKind::Continue(n) => {
                    loops.get(n as usize).filter(|i| self.events.contains(&around[**i])).copied()
                }
                OpKind::Return if !kernel.pipes.is_empty() || !self.objects.is_empty() => Some(0),
                _ => None,
            };
            if let Some(from) = from {
                self.events.extend(around.get(from..).unwrap_or_default());
            }
            around.push(*id);
            op.regions.iter().for_each(|r| self.find_exits(*r, around));
            around.pop();
        }
    }

    pub(in crate::verify) fn next_serial(&mut self) -> u32 {
        self.serial += 1;
        self.serial
    }

    /// Marks what matters in a block; gives whether anything does.
    fn find_events(&mut self, block: crate::ir::Block) -> bool {
        let mut any = false;
        for id in &self.kernel.block(block).ops {
            let op = self.kernel.op(*id);
            let inside = op.regions.iter().fold(false, |any, r| self.find_events(*r) | any);
            let tokens = op.args.iter().chain(&op.results).any(|v| self.kernel.ty(*v).is_linear());
            if inside || tokens || does_something(&op.kind) {
                self.events.insert(*id);
                any = true;
            }
            if let (OpKind::Ttg(TtgOp::Write), Some(Ty::Token(_, pipe))) =
                (&op.kind, op.args.first().map(|v| self.kernel.ty(*v)))
            {
                self.staging.insert(pipe);
            }
        }
        any
    }

    /// The state before anything has happened.
    pub(in crate::verify) fn start(&mut self) -> State {
        let kernel = self.kernel;
        let threads = threads(kernel);
        let mut facts = Facts::default();
        self.symbols.requirements(&mut facts);
        let mut rings: Vec<Ring> = kernel
            .pipes
            .iter()
            .map(|_| Ring { filler: None, acquired: 0, filled: Times::default(), readers: Vec::new() })
            .collect();
        for (role, (_, block)) in threads.iter().enumerate() {
            kernel.walk_block(*block, &mut |_, op| {
                let reader = |pipe: Pipe, rings: &mut Vec<Ring>| {
                    let readers = &mut rings[pipe.index()].readers;
                    if !readers.iter().any(|r| r.role == role) {
                        readers.push(Reader { role, claimed: 0, released: Times::default() });
                    }
                };
                match (&op.kind, op.args.first().map(|v| kernel.ty(*v))) {
                    (OpKind::Ttg(TtgOp::Acquire(pipe)), _) => rings[pipe.index()].filler = Some(role),
                    (OpKind::Ttg(TtgOp::Ready(pipe)), _) => reader(*pipe, &mut rings),
                    (OpKind::Ttg(TtgOp::Write), Some(Ty::Token(_, pipe))) => reader(pipe, &mut rings),
                    (_, _) => {}
                }
            });
        }
        let role = |block| Role {
            frames: vec![Frame::Block(block, 0)],
            env: Env::default(),
            tokens: BTreeMap::new(),
            marks: BTreeMap::new(),
        };
        let machine = Machine::new(&self.objects, threads.len());
        let clocks = vec![[Linear::default(), Linear::default()]; kernel.pipes.len()];
        State { rings, clocks, roles: threads.iter().map(|(_, block)| role(*block)).collect(), facts, machine }
    }

    /// Runs everything.
    pub(in crate::verify) fn all(&mut self) -> Result<(), Fault> {
        let start = self.start();
        let goal = vec![0; start.roles.len()];
        for end in self.run(start, &goal)? {
            for (i, ring) in end.rings.iter().enumerate() {
                let read = ring.readers.iter().map(|r| r.released.low).min().unwrap_or(0);
                if ring.readers.iter().any(|r| r.released.low != ring.filled.low || r.claimed != ring.acquired) {
                    return Err(Fault::Left { pipe: Pipe::new(i), filled: ring.filled.low, read });
                }
            }
            self.ended(&end)?;
        }
        Ok(())
    }

    /// Runs until every role has at most as many open frames as its goal says; `usize::MAX` does not run. Gives a state for
    /// each case.
    pub(in crate::verify) fn run(&mut self, mut state: State, goal: &[usize]) -> Result<Vec<State>, Fault> {
        loop {
            let mut moved = false;
            let (mut waits, mut loops, mut branch) = (Vec::new(), Vec::new(), None);
            for (role, goal) in goal.iter().enumerate() {
                while state.roles[role].frames.len() > *goal {
                    self.steps += 1;
                    if self.steps > STEPS {
                        return Err(Fault::Lost);
                    }
                    match self.step(&mut state, role)? {
                        Step::Moved => moved = true,
                        Step::Blocked(wait) => {
                            waits.push(wait);
                            break;
                        }
                        Step::AtLoop => {
                            loops.push(role);
                            break;
                        }
                        Step::AtBranch(condition) => {
                            branch = Some(condition);
                            break;
                        }
                        Step::Ended => break,
                    }
                }
            }
            if goal.iter().enumerate().all(|(role, goal)| state.roles[role].frames.len() <= *goal) {
                return Ok(vec![state]);
            }
            if moved {
                continue;
            }
            if let Some(condition) = branch {
                return self.try_both(&state, &condition, goal);
            }
            if loops.is_empty() {
                return Err(self.stuck(&state, waits));
            }
            return self.loops(state, goal, &loops, &waits);
        }
    }

    /// A branch of which the direction is open: at its turning point, if a counter decides it, or both ways.
    fn try_both(&mut self, state: &State, condition: &Condition, goal: &[usize]) -> Result<Vec<State>, Fault> {
        let turn = self.counters.last().and_then(|c| Some((*c, condition.turning_point(c.0)?)));
        // What turns again and again has no such point, nor has what is another number in each iteration.
        if let Some((_, turn)) = turn.filter(|(c, turn)| !self.symbols.depends(turn, *c)) {
            return Err(Fault::Turn(turn));
        }
        let mut ends = Vec::new();
        for holds in [true, false] {
            let mut case = state.clone();
            case.facts.assume(condition, holds);
            ends.extend(self.run(case, goal)?);
        }
        Ok(ends)
    }

    /// Some roles stand at loops, and nobody can go on otherwise.
    fn loops(&mut self, state: State, goal: &[usize], at: &[usize], waits: &[Wait]) -> Result<Vec<State>, Fault> {
        // Who is waited for runs ahead.
        if let Some(ahead) = waits.iter().find_map(|w| self.provider(&state, w).filter(|r| at.contains(r))) {
            return self.ahead(state, goal, &[ahead]);
        }
        // A loop in which nobody waits and nobody is waited for runs by itself: until then the others stand where they do.
        let alone = at.iter().position(|r| self.waits_for_nobody(&state, *r));
        let at = alone.map_or(at, |i| &at[i..=i]);
        let left: Vec<(usize, Linear)> =
            at.iter().map(|r| (*r, loop_of(&state, *r).map_or_else(Linear::default, Loop::left))).collect();
        let mut fault = None;
        for (pivot, own) in &left {
            let group: Vec<(usize, i64)> =
                left.iter().filter_map(|(r, other)| Some((*r, other.minus(own).as_constant()?))).collect();
            if group.first().is_none_or(|(first, _)| first != pivot) {
                continue;
            }
            let least = group.iter().map(|(_, more)| *more).min().unwrap_or(0);
            let common = own.plus_const(least);
            let roles: Vec<usize> = group.iter().map(|(r, _)| *r).collect();
            if at
                .iter()
                .any(|other| !roles.contains(other) && roles.iter().any(|r| self.share_a_ring(&state, *r, *other)))
            {
                // Loops of other lengths do the other half.
                continue;
            }
            let some = Condition::NotNegative(common.clone(), true);
            if state.facts.decide(&some) != Some(true) {
                return self.try_both(&state, &some, goal);
            }
            match self.together(&state, &roles, &common) {
                Ok(Some(next)) => return self.run(next, goal),
                Ok(None) => return self.ahead(state, goal, &roles),
                Err(Fault::Turn(turn)) => return self.turn(&state, goal, &roles, (&turn, &common)),
                Err(Fault::Suspect(error)) => return self.later(state, goal, &roles, Fault::Barrier(error)),
                Err(Fault::Stuck { waits, ended }) => {
                    let ahead = waits
                        .iter()
                        .find_map(|w| self.provider(&state, &w.wait).filter(|r| roles.contains(r) && roles.len() > 1));
                    if let Some(ahead) = ahead.filter(|r| self.may_run_ahead(&state, *r)) {
                        return self.ahead(state, goal, &[ahead]).map_err(|_| Fault::Stuck { waits, ended });
                    }
                    if !self.objects.is_empty() {
                        return self.later(state, goal, &roles, Fault::Stuck { waits, ended });
                    }
                    fault.get_or_insert(Fault::Stuck { waits, ended });
                }
                Err(other) => return Err(other),
            }
        }
        let apart: Vec<(usize, OpId)> = at.iter().filter_map(|r| loop_of(&state, *r).map(|l| (*r, l.op))).collect();
        let differ = apart.len() > 1 && left.windows(2).any(|w| w[0].1.minus(&w[1].1).as_constant().is_none());
        Err(if differ { Fault::Apart { loops: apart } } else { fault.unwrap_or(Fault::Apart { loops: apart }) })
    }

    /// Whether the loop at which a role stands leaves rings and barriers alone.
    fn waits_for_nobody(&self, state: &State, role: usize) -> bool {
        let body = loop_of(state, role).and_then(|l| self.kernel.op(l.op).regions.first().copied());
        body.is_some_and(|body| {
            let mut alone = true;
            self.kernel.walk_block(body, &mut |_, op| {
                let tokens = op.args.iter().chain(&op.results).any(|v| self.kernel.ty(*v).is_linear());
                alone &= !tokens && self.objects.names(op).is_empty();
            });
            alone
        })
    }

    /// An arbitrary iteration has a fault: perhaps because the first ones are unlike the rest, and then it is gone later.
    fn later(&mut self, state: State, goal: &[usize], roles: &[usize], fault: Fault) -> Result<Vec<State>, Fault> {
        if !roles.iter().all(|r| self.may_run_ahead(&state, *r)) {
            return Err(fault);
        }
        self.ahead(state, goal, roles).map_err(|other| if let Fault::Apart { .. } = other { fault } else { other })
    }

    /// The loops of these roles run one iteration, if they run at all.
    fn ahead(&mut self, state: State, goal: &[usize], roles: &[usize]) -> Result<Vec<State>, Fault> {
        for role in roles {
            if !self.may_run_ahead(&state, *role) {
                let loops = roles.iter().filter_map(|r| loop_of(&state, *r).map(|l| (*r, l.op))).collect();
                return Err(Fault::Apart { loops });
            }
            let left = loop_of(&state, *role).map_or_else(Linear::default, Loop::left);
            let some = Condition::NotNegative(left.plus_const(-1), true);
            if state.facts.decide(&some).is_none() {
                return self.try_both(&state, &some, goal);
            }
        }
        let mut state = state;
        for role in roles {
            self.enter(&mut state, *role, None);
        }
        self.run(state, goal)
    }

    /// One iteration of all these loops stands for all that they have in common: the state after them, or nothing if one
    /// iteration changes something.
    fn together(&mut self, state: &State, roles: &[usize], common: &Linear) -> Result<Option<State>, Fault> {
        let mut without = Unlike::default();
        loop {
            match self.arbitrary(state, roles, common, &mut without)? {
                Some(done) => return Ok(done),
                None => continue,
            }
        }
    }

    /// As [`Run::together`]; nothing if something did not go as the first iteration said, which is remembered.
    fn arbitrary(
        &mut self,
        state: &State,
        roles: &[usize],
        common: &Linear,
        without: &mut Unlike,
    ) -> Result<Option<Option<State>>, Fault> {
        let plan = self.plan(state, roles, common, without)?;
        let counter = (self.symbols.counter(), self.serial);
        let i = Linear::atom(counter.0);
        let mut once = state.clone();
        once.facts.assume(&Condition::NotNegative(i.clone(), true), true);
        once.facts.assume(&Condition::NotNegative(common.minus(&i).plus_const(-1), true), true);
        let mut goal = vec![usize::MAX; state.roles.len()];
        for role in roles {
            goal[*role] = once.roles[*role].frames.len();
            self.forget_carried(&mut once, *role);
        }
        self.shift(&mut once, &plan, without, &i);
        for role in roles {
            self.enter(&mut once, *role, Some(&i));
        }
        let timed = std::mem::replace(&mut self.timed, false);
        self.counters.push(counter);
        let ends = self.run(once.clone(), &goal);
        self.counters.pop();
        self.timed = timed;
        let ends =
            ends.map_err(|fault| if let Fault::Barrier(error) = fault { Fault::Suspect(error) } else { fault })?;
        if self.astray(&plan, &once, &ends, &i, without) {
            return Ok(None);
        }
        if ends.is_empty() || !ends.iter().all(|end| end.same(state, roles)) {
            return Ok(Some(None));
        }
        let passed = passed(&ends, state);
        if self.timed {
            self.times(once, &goal, (&i, counter), &passed)?;
        }
        let mut next = state.clone();
        for role in roles {
            self.forget_carried(&mut next, *role);
            if let Some(Frame::Loop(l)) = next.roles[*role].frames.last_mut() {
                l.done = l.done.plus(1, common);
            }
        }
        self.tick(&mut next, &passed, common);
        self.shift(&mut next, &plan, without, common);
        Ok(Some(Some(next)))
    }

    /// What loops carry besides tokens is anything, after some iterations.
    fn forget_carried(&self, state: &mut State, role: usize) {
        let Some(l) = loop_of(state, role) else { return };
        let args: Vec<Value> = self.carried(self.kernel.op(l.op));
        for arg in args {
            state.roles[role].env.known.remove(&arg);
        }
    }

    /// The loops go together up to the iteration at which a branch in them turns.
    fn turn(
        &mut self,
        state: &State,
        goal: &[usize],
        roles: &[usize],
        (turn, common): (&Linear, &Linear),
    ) -> Result<Vec<State>, Fault> {
        // Not before the first iteration, not after the last one, or in between.
        let before = Condition::NotNegative(turn.times(-1), true);
        let after = Condition::NotNegative(turn.minus(common), true);
        for open in [&before, &after] {
            if state.facts.decide(open).is_none() {
                return self.try_both(state, open, goal);
            }
        }
        if state.facts.decide(&before) == Some(true) || state.facts.decide(&after) == Some(true) {
            return Err(Fault::Lost);
        }
        match self.together(state, roles, turn) {
            Ok(Some(next)) => self.run(next, goal),
            Ok(None) => self.ahead(state.clone(), goal, roles),
            Err(Fault::Suspect(error)) => self.later(state.clone(), goal, roles, Fault::Barrier(error)),
            Err(Fault::Turn(other)) => self.turn(state, goal, roles, (&other, turn)),
            Err(other) => Err(other),
        }
    }
}

/// Whether an operation does anything to rings, barriers, groups or memory: loops and branches without one are passed over.
const fn does_something(kind: &OpKind) -> bool {
    match kind {
        OpKind::Ttg(ttg) => !matches!(
            ttg,
            TtgOp::Source(..)
                | TtgOp::SourceRows { .. }
                | TtgOp::Poisoned
                | TtgOp::Finalize
                | TtgOp::Rematerialize
                | TtgOp::Fence { .. }
        ),
        OpKind::Region(region) => !matches!(region, RegionOp::Place { .. } | RegionOp::At),
        OpKind::Nv(nv) => !matches!(
            nv,
            NvOp::MbarrierAlloc { .. }
                | NvOp::MbarrierAt
                | NvOp::MbarrierInit { .. }
                | NvOp::FenceMbarrierInit
                | NvOp::WgmmaFence
                | NvOp::SetMaxNReg { .. }
        ),
        OpKind::Amd(amd) => !matches!(amd, AmdOp::Mfma | AmdOp::SetPrio { .. }),
        _ => false,
    }
}

/// The loop at whose head a role stands.
pub(super) fn loop_of(state: &State, role: usize) -> Option<&Loop> {
    match state.roles[role].frames.last() {
        Some(Frame::Loop(l)) => Some(l),
        Some(Frame::Block(..)) | None => None,
    }
}
