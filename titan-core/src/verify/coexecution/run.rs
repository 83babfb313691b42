//! The driver: steps all roles, and decides how to proceed at branches and loops. [`super`] explains the idea with an example.

use super::barriers::machine::Machine;
use super::barriers::objects::Objects;
use super::cyclic::Turns;
use super::events::{Events, deciding};
use super::linear::{Atom, Condition, Facts, Linear};
use super::rings::find::Claims;
use super::rings::pairs::Pairs;
use super::state::{Bounds, Frame, Loop, Reader, Ring, Role, State, Times};
use super::values::{Env, Symbols};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Claim, Kernel, OpId, OpKind, Pipe, TtgOp, Ty, Value};
use crate::verify::roles::threads;

pub(in crate::verify) use super::fault::{Fault, On, Stop, Stuck, Wait, defect};

/// The outcome of a step.
pub(in crate::verify) enum Step {
    Moved,
    Blocked(Wait),
    /// At the head of a loop with an unknown iteration count, or one too large to execute iteration by iteration.
    AtLoop,
    /// At a branch or loop whose condition is undecided on this path.
    AtBranch(Condition),
    Ended,
}

/// The values in bounds of loops and conditions of branches of which cases are tried: each is one of two others, and an unknown otherwise.
///
/// Each case doubles the number of paths. A loop that is split at `max(from, min(m, to))` is understood with three cases, whatever `m` is
/// made of; so selects in `m` are tried only where that does not succeed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verify) enum Choices {
    /// None.
    #[default]
    None,
    /// Minima and maxima.
    Extremes,
    /// Selects, and quotients of numbers that may be negative, too.
    All,
}

/// The maximum number of steps, far more than any realistic kernel needs. An example is small, or is not run to its end.
const STEPS: usize = 200_000;
const STEPS_OF_AN_EXAMPLE: usize = 10_000;

pub(in crate::verify) struct Run<'k> {
    pub(in crate::verify) kernel: &'k Kernel,
    pub(in crate::verify) symbols: Symbols<'k>,
    /// The relevant operations.
    pub(in crate::verify) events: SortedSet<OpId>,
    pub(in crate::verify) staging: SortedSet<Pipe>,
    pub(in crate::verify) objects: Objects,
    pub(in crate::verify) turns: Turns,
    /// The integers that control which barriers are used, and how often.
    pub(super) deciding: SortedSet<Value>,
    /// Whether stated times are checked.
    pub(in crate::verify) timed: bool,
    /// The values in bounds and conditions whose cases are tried, and those that there were.
    pub(super) choices: Choices,
    pub(super) undecided: Choices,
    /// Whether a round is one iteration of each role, and whether there are rounds of several.
    pub(super) single: bool,
    pub(super) uneven: bool,
    /// Whether a loop that may have no round is treated as two cases, for what its rounds write.
    pub(super) cases: bool,
    pub(super) serial: u32,
    steps: usize,
    /// The claims of a barrier program about rings.
    pub(super) claims: Claims,
    /// Rings that are not empty at the start of an iteration of a loop.
    pub(super) occupied: SortedSet<(OpId, Pipe)>,
    /// The number of enclosing loops of which a representative iteration is executed.
    pub(super) inside: usize,
    /// Counters of arbitrary iterations, with the serial number of the iteration before.
    pub(super) counters: Vec<(Atom, u32)>,
}

impl<'k> Run<'k> {
    pub(in crate::verify) fn new(kernel: &'k Kernel) -> Self {
        let objects = Objects::new(kernel);
        let events = Events::of(kernel, &objects);
        let mut run = Run::without_barriers(kernel, events.ops);
        run.symbols.by_form = !objects.is_empty();
        if !objects.is_empty() {
            run.deciding = deciding(kernel, &run.events);
        }
        run.staging = events.staging;
        run.objects = objects;
        run
    }

    /// A run that ignores barriers, groups and memory.
    pub(super) fn without_barriers(kernel: &'k Kernel, events: SortedSet<OpId>) -> Self {
        Run {
            kernel,
            symbols: Symbols::new(kernel),
            events,
            deciding: SortedSet::new(),
            staging: SortedSet::new(),
            objects: Objects::default(),
            claims: Claims::default(),
            turns: Turns::new(kernel),
            timed: true,
            choices: Choices::None,
            undecided: Choices::None,
            single: false,
            uneven: false,
            cases: false,
            serial: 0,
            steps: 0,
            occupied: SortedSet::new(),
            inside: 0,
            counters: Vec::new(),
        }
    }

    pub(in crate::verify) fn next_serial(&mut self) -> u32 {
        self.serial += 1;
        self.serial
    }

    /// The initial state.
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
                    (OpKind::Ttg(TtgOp::Claim(Claim::Acquired, pipe)), _) => {
                        rings[pipe.index()].filler = Some(role);
                        if self.staging.contains(pipe) {
                            reader(*pipe, &mut rings);
                        }
                    }
                    (OpKind::Ttg(TtgOp::Claim(Claim::Next, pipe)), _) => reader(*pipe, &mut rings),
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
            bounds: Bounds::new(),
            tokens: SortedMap::new(),
            marks: SortedMap::new(),
            pairs: Pairs::default(),
        };
        let machine = Machine::new(&self.objects, threads.len());
        let clocks = vec![[Linear::default(), Linear::default()]; kernel.pipes.len()];
        State { rings, clocks, roles: threads.iter().map(|(_, block)| role(*block)).collect(), facts, machine }
    }

    /// Runs all roles to their ends.
    pub(in crate::verify) fn all(&mut self) -> Result<(), Fault> {
        let start = self.start();
        if start.facts.impossible() {
            return Ok(());
        }
        let goal = vec![0; start.roles.len()];
        let ends = self.run(start, &goal).map_err(|stop| match stop {
            Stop::Fault(fault) => fault,
            // There is no loop around the whole kernel.
            Stop::SplitAt { .. } | Stop::Open(_) => Fault::Lost,
        })?;
        let mut unwritten = None;
        for end in ends {
            // Theorem 7 of docs/protocol.md needs it: at the end, what was filled has been released by each reader, and
            // nobody has a pending wait.
            for (i, ring) in end.rings.iter().enumerate() {
                let read = ring.readers.iter().map(|r| r.released.low).min().unwrap_or(0);
                if ring.readers.iter().any(|r| r.released.low != ring.filled.low || r.claimed != ring.acquired) {
                    return Err(Fault::Left { pipe: Pipe::new(i), filled: ring.filled.low, read });
                }
            }
            self.ended(&end)?;
            unwritten = unwritten.or_else(|| self.unwritten(&end));
        }
        unwritten.map_or(Ok(()), |error| Err(Fault::Barrier(Box::new(error))))
    }

    /// Whether rounds of loops are known to be executed at least once.
    pub(super) fn at_least_once(times: &Linear) -> Condition {
        Condition::NotNegative(times.plus_const(-1), true)
    }

    /// Runs until every role has at most as many open frames as its goal; a role whose goal is `usize::MAX` does not run.
    /// Returns a state for each case.
    pub(in crate::verify) fn run(&mut self, mut state: State, goal: &[usize]) -> Result<Vec<State>, Stop> {
        let limit = if self.symbols.example.is_some() { STEPS_OF_AN_EXAMPLE } else { STEPS };
        loop {
            let mut moved = false;
            let (mut waits, mut loops, mut branch) = (Vec::new(), Vec::new(), None);
            for (role, goal) in goal.iter().enumerate() {
                // As far as it goes: since no step of another role takes away what makes a step possible, the order of
                // roles does not matter (theorem 6).
                while !reached(&state, role, *goal) {
                    self.steps += 1;
                    if self.steps > limit {
                        return Err(Fault::Lost.into());
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
            if goal.iter().enumerate().all(|(role, goal)| reached(&state, role, *goal)) {
                return Ok(vec![state]);
            }
            // A step of one role may be what another one waits for, so all are asked again. Each round makes at least
            // one step, and their number is limited.
            if moved {
                continue;
            }
            // A branch comes before loops: both outcomes are finite cases of the same steps, while an induction would
            // have to assume one of them.
            if let Some(condition) = branch {
                return self.try_both(&state, &condition, goal);
            }
            // No role can take a step, none is at a loop and none at a branch: those that have not reached their goals
            // wait for ever.
            if loops.is_empty() {
                return Err(self.stuck(&state, waits).into());
            }
            let before = (!self.objects.is_empty()).then(|| state.clone());
            return match (self.loops(state, goal, &loops, &waits), before) {
                (Err(Stop::Open(condition)), Some(before)) if self.inside == 0 => {
                    self.try_both(&before, &condition, goal)
                }
                (done, _) => done,
            };
        }
    }

    /// Handles a branch whose condition is undecided: if a counter determines it, the loops are split; otherwise both outcomes
    /// are tried.
    pub(super) fn try_both(
        &mut self,
        state: &State,
        condition: &Condition,
        goal: &[usize],
    ) -> Result<Vec<State>, Stop> {
        let turn = self.counters.last().and_then(|c| Some((*c, condition.turning_point(c.0)?)));
        // Periodic or iteration-dependent conditions have no single switching iteration.
        // `i ≥ 1` in round i of 0 ≤ i < n: before round 1 one outcome, from there on the other. Instead of both
        // outcomes for any i, the rounds are executed in two groups, in each of which the condition is decided.
        if let Some((counter, at)) = turn.filter(|(c, at)| !self.symbols.depends(at, *c)) {
            return Err(Stop::SplitAt { counter: counter.0, at });
        }
        // Barriers advance equally in all iterations only if all of them take the same path.
        if let Condition::NotNegative(l, _) = condition
            && self.inside > 0
            && !self.objects.is_empty()
            && l.terms().all(|(atom, _)| self.symbols.is_of_launch(atom))
        {
            return Err(Stop::Open(condition.clone()));
        }
        // Perhaps only one outcome is possible, so that an example that gets here proves nothing.
        if self.symbols.example.is_some() {
            return Err(Fault::Lost.into());
        }
        let mut ends = Vec::new();
        for holds in [true, false] {
            let mut case = state.clone();
            case.facts.assume(condition, holds);
            // The case contradicts what is known, so no execution is in it. The other one is.
            if case.facts.impossible() {
                continue;
            }
            // Otherwise the same condition would be tried again, without end.
            let is_fact = !matches!((condition, holds), (Condition::Zero(_, v), _) if *v != holds);
            // This is what makes the recursion end: in each case, the condition is decided and does not come up again.
            // A number that is known not to be zero has no such inequality, but is remembered as it is.
            if is_fact && case.facts.decide(condition) != Some(holds) {
                return Err(Fault::Lost.into());
            }
            ends.extend(self.run(case, goal)?);
        }
        Ok(ends)
    }
}

/// Whether a role has reached its goal: at or above a frame, with no remaining iterations there.
fn reached(state: &State, role: usize, goal: usize) -> bool {
    let frames = &state.roles[role].frames;
    let busy = matches!(frames.last(), Some(Frame::Loop(l)) if l.quota > 0);
    frames.len() < goal || frames.len() == goal && !busy
}

/// The loop at whose head a role is.
pub(super) fn loop_of(state: &State, role: usize) -> Option<&Loop> {
    match state.roles[role].frames.last() {
        Some(Frame::Loop(l)) => Some(l),
        Some(Frame::Block(..)) | None => None,
    }
}
