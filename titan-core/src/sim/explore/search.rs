//! The search: states, the steps from each, and the way to where something is wrong.

use super::local::Privacy;
use super::{Explored, Limits};
use crate::engine::{Completion, Deadlock, OpId as Pending, Space, State, StateHasher};
use crate::sim::finding::{Choice, Found, Kind};
use crate::sim::machine::{Machine, engine_of, index};
use crate::sim::state::Moved;
use crate::sim::plan::Plan;
use crate::sim::store::{Ranges, Store};
use crate::sim::tensor::Setup;
use crate::sim::watch::Watch;
use crate::sim::work::Res;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// So many local steps in a row are endless.
const CHAIN: u32 = 1_000_000;

/// A step from a state.
#[derive(Clone, Copy, Debug)]
enum Step {
    Agent(usize),
    Complete(Pending),
}

/// A state: the machine, and what its observer knows.
#[derive(Clone)]
struct Point<'k> {
    machine: Machine<'k>,
    watch: Watch,
    /// Hashes of the threads, so that only the one that moved is hashed anew.
    threads: Vec<u128>,
}

/// A state on the way that is being tried.
struct Node<'k> {
    at: Point<'k>,
    hash: u128,
    steps: Vec<Step>,
    next: usize,
    /// Whether a step led to another state.
    moved: bool,
    /// What led here.
    choice: Option<Choice>,
}

/// What is wrong, and how it came about.
pub(super) type Wrong = (Found, Vec<Choice>);

pub(super) struct Search<'k, 'l> {
    plan: &'k Plan<'k>,
    limits: &'l Limits,
    pub(super) explored: Explored,
    privacy: Privacy,
    seen: BTreeSet<u128>,
    stack: Vec<Node<'k>>,
}

impl<'k, 'l> Search<'k, 'l> {
    pub(super) fn new(plan: &'k Plan<'k>, limits: &'l Limits, explored: Explored) -> Search<'k, 'l> {
        let privacy = Privacy::of(plan, limits.cluster as usize);
        Search { plan, limits, explored, privacy, seen: BTreeSet::new(), stack: Vec::new() }
    }

    /// The bound that was reached, if one was.
    ///
    /// # Errors
    /// What is wrong, with the choices that lead there.
    pub(super) fn run(&mut self, setup: &Rc<Setup>, programs: &[[u32; 3]]) -> Result<Option<String>, Wrong> {
        let start = self.start(setup, programs).map_err(|e| (*e, Vec::new()))?;
        self.enter(start, None)?;
        loop {
            if self.explored.states >= self.limits.max_states {
                return Ok(Some(format!("{} states", self.limits.max_states)));
            }
            if self.stack.len() > self.limits.max_depth {
                return Ok(Some(format!("{} steps from the start", self.limits.max_depth)));
            }
            let Some(node) = self.stack.last_mut() else { return Ok(None) };
            let Some(step) = node.steps.get(node.next).copied() else {
                self.leave()?;
                continue;
            };
            node.next += 1;
            let (from, hash) = (node.at.clone(), node.hash);
            let ended = self.take(from, (step, hash))?;
            if let Some(bound) = ended {
                return Ok(Some(bound));
            }
        }
    }

    fn start(&self, setup: &Rc<Setup>, programs: &[[u32; 3]]) -> Res<Point<'k>> {
        let (engine, global, shared) = engine_of(self.plan, Space::new("device"), programs.len(), false, Completion::Late);
        let mut watch = Watch::default();
        if self.limits.sanitize {
            watch = Watch::explored(programs.len(), self.plan.agents(), &shared);
        }
        let defined = vec![Ranges::default(); programs.len()];
        let store = Store { setup: Rc::clone(setup), data: false, global, shared, defined, results: Default::default(), kept: Default::default() };
        let mut machine = Machine::new(self.plan, store, engine, programs, &mut watch)?;
        machine.settle();
        let threads = machine.threads.iter().map(StateHasher::of).collect();
        Ok(Point { machine, watch, threads })
    }

    /// Takes a step, and goes on from there if nobody has been there.
    fn take(&mut self, mut at: Point<'k>, (step, from): (Step, u128)) -> Result<Option<String>, Wrong> {
        self.explored.transitions += 1;
        let before = at.machine.threads.clone();
        let (choice, done) = match step {
            Step::Complete(op) => (Choice::Complete(op), at.machine.complete(op, &mut at.watch).map(|()| true)),
            Step::Agent(agent) => {
                let mut ops = 0;
                let done = self.chain(&mut at, agent, &mut ops);
                (Choice::Run { agent: index(agent), ops }, done)
            }
        };
        match done {
            Err(found) => return Err(self.wrong(*at.watch.told(&at.machine, found), Some(choice))),
            Ok(false) => return Ok(Some(format!("{CHAIN} operations that nobody else can notice"))),
            Ok(true) => {}
        }
        at.machine.settle();
        for ((hash, old), new) in at.threads.iter_mut().zip(&before).zip(&at.machine.threads) {
            if !Rc::ptr_eq(old, new) {
                *hash = StateHasher::of(new);
            }
        }
        let hash = state_hash(&at);
        if let Some(node) = self.stack.last_mut() {
            node.moved |= hash != from;
        }
        if !self.seen.contains(&hash) {
            self.enter(at, Some(choice))?;
        }
        Ok(None)
    }

    /// An agent's step: one operation, and the local ones after it. `false` if those do not end.
    fn chain(&self, at: &mut Point<'k>, agent: usize, ops: &mut u32) -> Res<bool> {
        let machine = &mut at.machine;
        loop {
            *ops += 1;
            let moved = machine.step(agent, &mut at.watch)?;
            let more = self.limits.reduce && moved == Moved::On && machine.is_ready(agent) && machine.is_local(agent, &self.privacy);
            if !more {
                return Ok(true);
            }
            if *ops >= CHAIN {
                return Ok(false);
            }
        }
    }

    /// A state that is new.
    fn enter(&mut self, at: Point<'k>, choice: Option<Choice>) -> Result<(), Wrong> {
        let hash = state_hash(&at);
        let machine = &at.machine;
        self.seen.insert(hash);
        self.explored.states += 1;
        self.explored.depth = self.explored.depth.max(self.stack.len());
        self.explored.occupied = self.explored.occupied.max(occupied(machine));
        if let Some((found, pair)) = meet(machine) {
            let mut wrong = self.wrong(*found, choice);
            wrong.1.extend(pair.map(|agent| Choice::Run { agent: index(agent), ops: 1 }));
            return Err(wrong);
        }
        let steps = self.steps(machine);
        if steps.is_empty() {
            if let Some(found) = stuck(machine) {
                return Err(self.wrong(*found, choice));
            }
            self.explored.ends += 1;
        }
        self.stack.push(Node { at, hash, steps, next: 0, moved: false, choice });
        Ok(())
    }

    /// What can happen next: one local step, or everything.
    fn steps(&self, machine: &Machine<'k>) -> Vec<Step> {
        let ready: Vec<usize> = (0..machine.threads.len()).filter(|a| machine.is_ready(*a)).collect();
        if self.limits.reduce
            && let Some(agent) = ready.iter().find(|a| machine.is_local(**a, &self.privacy))
        {
            return vec![Step::Agent(*agent)];
        }
        let told = machine.engine.pending().iter().filter(|(_, op)| !op.signals.is_empty());
        ready.into_iter().map(Step::Agent).chain(told.map(|(id, _)| Step::Complete(id))).collect()
    }

    /// All steps of a state are tried.
    fn leave(&mut self) -> Result<(), Wrong> {
        let Some(node) = self.stack.last() else { return Ok(()) };
        if !node.steps.is_empty() && !node.moved {
            let machine = &node.at.machine;
            let ready = (0..machine.threads.len()).find(|a| machine.is_ready(*a));
            let who = ready.map_or_else(String::new, |a| machine.role(a));
            let mut found = Found::new(Kind::Deadlock, format!("{who} asks again and again, and nobody else can go on"));
            if let Some((agent, op)) = ready.and_then(|a| Some((a, machine.next_op(a)?))) {
                found = found.side(machine.side(agent, op, None, None));
            }
            return Err(self.wrong(*found, None));
        }
        self.stack.pop();
        Ok(())
    }

    fn wrong(&self, found: Found, last: Option<Choice>) -> Wrong {
        let mut choices: Vec<Choice> = Vec::new();
        for choice in self.stack.iter().filter_map(|n| n.choice).chain(last) {
            match (choices.last_mut(), choice) {
                (Some(Choice::Run { agent, ops }), Choice::Run { agent: a, ops: n }) if *agent == a => *ops += n,
                _ => choices.push(choice),
            }
        }
        (found, choices)
    }
}

/// Two agents that stand at accesses which conflict.
fn meet(machine: &Machine<'_>) -> Option<(Box<Found>, [usize; 2])> {
    let ready = (0..machine.threads.len()).filter(|a| machine.is_ready(*a));
    let about: Vec<_> = ready.flat_map(|a| machine.about_to(a)).collect();
    for (i, a) in about.iter().enumerate() {
        for b in about.iter().skip(i + 1).filter(|b| b.agent != a.agent) {
            if let Some(found) = machine.conflict(b, a) {
                return Some((found, [a.agent, b.agent]));
            }
        }
    }
    None
}

/// Who waits, if somebody does and nothing can happen.
fn stuck(machine: &Machine<'_>) -> Option<Box<Found>> {
    let waits: Vec<_> = machine.engine.agents().iter().filter_map(|(agent, state)| match state {
        State::Blocked(wait) => Some((agent, wait, String::new())),
        State::Ready | State::Done => None,
    }).collect();
    (!waits.is_empty()).then(|| machine.deadlocked(&Deadlock { waits }))
}

/// The most times of a ring that are acquired and not given back.
fn occupied(machine: &Machine<'_>) -> u64 {
    let per = machine.plan.agents();
    let mut most = 0;
    for main in (0..machine.threads.len()).step_by(per.max(1)) {
        for (i, ring) in machine.plan.rings.iter().enumerate() {
            let filled = ring.fillers.iter().filter_map(|f| machine.threads.get(main + f)?.fill.get(i).copied()).max().unwrap_or(0);
            let freed = ring.readers.iter().filter_map(|r| machine.threads.get(main + r)?.read.get(i).map(|r| r.below)).min();
            most = most.max(freed.map_or(0, |f| filled.saturating_sub(f)));
        }
    }
    most
}

fn state_hash(at: &Point<'_>) -> u128 {
    let machine = &at.machine;
    let mut hasher = StateHasher::default();
    at.threads.hash(&mut hasher);
    at.watch.knowledge().hash(&mut hasher);
    machine.engine.hash(&mut hasher);
    machine.store.defined.hash(&mut hasher);
    for cta in &machine.ctas {
        (&cta.holds, &cta.words, &cta.unfenced).hash(&mut hasher);
        cta.named.iter().for_each(|(id, n)| (id, n.threads, n.barrier.index()).hash(&mut hasher));
    }
    hasher.write_u8(0);
    hasher.finish128()
}
