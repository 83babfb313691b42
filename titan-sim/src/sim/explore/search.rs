//! The search: states, the steps from each, and the path to a finding.

use super::certificate::Certificate;
use super::local::Privacy;
use super::{Explored, Limits};
use crate::engine::{Completion, Deadlock, OpId as Pending, Space, State, StateHasher};
use crate::sim::finding::{Choice, Found, Kind};
use crate::sim::grid::Grid;
use crate::sim::machine::{Machine, index};
use crate::sim::plan::Plan;
use crate::sim::state::Moved;
use crate::sim::store::{Ranges, Store};
use crate::sim::tensor::{Setup, engine_of};
use crate::sim::watch::Watch;
use crate::sim::work::Res;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// The number of consecutive local steps that counts as an endless chain.
const CHAIN: u32 = 1_000_000;

/// A step from a state.
#[derive(Clone, Copy, Debug)]
enum Step {
    Agent(usize),
    Complete(Pending),
}

/// A state: the machine, and the state of its observers.
#[derive(Clone)]
pub(super) struct Point<'k> {
    pub(super) machine: Machine<'k>,
    pub(super) watch: Watch,
    /// The hashes of the threads, so that a step rehashes only the thread that moved.
    threads: Vec<u128>,
}

/// A state on the current path.
struct Node<'k> {
    /// The state, until its last step consumes it.
    at: Option<Point<'k>>,
    id: u32,
    steps: Vec<Step>,
    next: usize,
}

/// The graph of all states, numbered in the order in which they were found.
#[derive(Default)]
struct Graph {
    ids: BTreeMap<u128, u32>,
    /// The state and the choice from which each state was first reached.
    came: Vec<Option<(u32, Choice)>>,
    edges: Vec<(u32, u32)>,
    /// For each state, the number of agents that can proceed.
    ready: Vec<usize>,
    ends: Vec<u32>,
}

impl Graph {
    fn add(&mut self, hash: u128, from: Option<(u32, Choice)>, ready: usize) -> u32 {
        let id = index(self.came.len());
        self.ids.insert(hash, id);
        self.came.push(from);
        self.ready.push(ready);
        id
    }

    /// The choices that lead from the start to a state.
    fn way(&self, id: u32) -> Vec<Choice> {
        let mut way = Vec::new();
        let mut at = id;
        while let Some((from, choice)) = self.came.get(at as usize).copied().flatten() {
            way.push(choice);
            at = from;
        }
        way.reverse();
        way
    }

    /// A state from which no end can be reached, if there is one: among those, one in which the fewest agents can proceed.
    fn lost(&self) -> Option<u32> {
        let mut back: Vec<Vec<u32>> = vec![Vec::new(); self.came.len()];
        for (from, to) in &self.edges {
            back.get_mut(*to as usize)?.push(*from);
        }
        let mut saved = vec![false; self.came.len()];
        let mut open = self.ends.clone();
        while let Some(id) = open.pop() {
            if !std::mem::replace(saved.get_mut(id as usize)?, true) {
                open.extend(back.get(id as usize)?);
            }
        }
        let lost = self.ready.iter().enumerate().filter(|(id, _)| saved.get(*id) == Some(&false));
        lost.min_by_key(|(_, ready)| **ready).map(|(id, _)| index(id))
    }
}

/// A finding, with the choices that lead to it.
pub(super) type Wrong = (Found, Vec<Choice>);

pub(super) struct Search<'k, 'l> {
    pub(super) plan: &'k Plan<'k>,
    pub(super) limits: &'l Limits,
    pub(super) explored: Explored,
    pub(super) privacy: Privacy,
    grid: Option<Rc<RefCell<Grid>>>,
    graph: Graph,
    stack: Vec<Node<'k>>,
}

impl<'k, 'l> Search<'k, 'l> {
    pub(super) fn new(
        plan: &'k Plan<'k>,
        limits: &'l Limits,
        explored: Explored,
        grid: Option<Rc<RefCell<Grid>>>,
    ) -> Search<'k, 'l> {
        let privacy = Privacy::of(plan, limits.cluster as usize);
        Search { plan, limits, explored, privacy, grid, graph: Graph::default(), stack: Vec::new() }
    }

    /// Searches all orders; returns the bound that was reached, if one was.
    ///
    /// # Errors
    /// The finding, with the choices that lead there.
    pub(super) fn run(&mut self, setup: &Rc<Setup>, programs: &[[u32; 3]]) -> Result<Option<String>, Wrong> {
        let start = self.start(setup, programs, None).map_err(|e| (*e, Vec::new()))?;
        let hash = state_hash(&start);
        self.enter(start, hash, None)?;
        loop {
            if self.explored.states >= self.limits.max_states {
                return Ok(Some(format!("{} states", self.limits.max_states)));
            }
            if self.stack.len() > self.limits.max_depth {
                return Ok(Some(format!("{} steps from the start", self.limits.max_depth)));
            }
            let Some(node) = self.stack.last_mut() else { break };
            let step = node.steps.get(node.next).copied();
            node.next += 1;
            let last = node.next >= node.steps.len();
            let (id, at) = (node.id, if last { node.at.take() } else { node.at.clone() });
            let Some((step, at)) = step.zip(at) else {
                self.stack.pop();
                continue;
            };
            if let Some(bound) = self.take(at, step, id)? {
                return Ok(Some(bound));
            }
        }
        match self.graph.lost() {
            Some(id) => Err(self.endless(setup, programs, id)),
            None => Ok(None),
        }
    }

    /// The finding that agents poll forever from a state on.
    fn endless(&self, setup: &Rc<Setup>, programs: &[[u32; 3]], id: u32) -> Wrong {
        let way = self.graph.way(id);
        let again = self.start(setup, programs, None).and_then(|mut at| {
            way.iter().try_for_each(|choice| follow(&mut at, *choice))?;
            Ok(at.machine)
        });
        let machine = match again {
            Ok(machine) => machine,
            Err(found) => return (*found, joined(way)),
        };
        let ready: Vec<usize> = ready(&machine).collect();
        let who: Vec<String> = ready.iter().map(|a| machine.role(*a)).collect();
        let mut found =
            Found::new(Kind::Deadlock, format!("{} can no longer terminate in any continuation", who.join(" and ")));
        for (agent, op) in ready.into_iter().filter_map(|a| Some((a, machine.next_op(a)?))) {
            found = found.side(machine.side(agent, op, None, None));
        }
        (*found, joined(way))
    }

    /// The state before the first operation.
    pub(super) fn start(
        &self,
        setup: &Rc<Setup>,
        programs: &[[u32; 3]],
        certificate: Option<Certificate>,
    ) -> Res<Point<'k>> {
        let (engine, memories) = engine_of(self.plan, Space::new("device"), programs.len(), false, Completion::Late);
        let mut watch = Watch::default();
        if self.limits.sanitize {
            watch = Watch::new(self.plan, &memories, false)?.beside(self.grid.as_ref(), memories.global);
        }
        let mut watch = watch.certified(certificate);
        let defined = vec![Ranges::default(); programs.len()];
        let store = Store {
            setup: Rc::clone(setup),
            data: false,
            global: memories.global,
            shared: memories.shared,
            defined,
            tensor: memories.tensor,
            columns: vec![Ranges::default(); programs.len()],
            results: Default::default(),
            kept: Default::default(),
        };
        let mut machine = Machine::new(self.plan, store, engine, programs, &mut watch)?;
        machine.settle();
        let threads = machine.threads.iter().map(StateHasher::of).collect();
        Ok(Point { machine, watch, threads })
    }

    /// Takes a step from a state, and continues from there if the new state was not visited.
    fn take(&mut self, mut at: Point<'k>, step: Step, from: u32) -> Result<Option<String>, Wrong> {
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
            Err(found) => return Err(self.wrong(*at.watch.told(&at.machine, found), Some((from, choice)))),
            Ok(false) => return Ok(Some(format!("{CHAIN} consecutive operations without a visible effect"))),
            Ok(true) => {}
        }
        at.machine.settle();
        for ((hash, old), new) in at.threads.iter_mut().zip(&before).zip(&at.machine.threads) {
            if !Rc::ptr_eq(old, new) {
                *hash = StateHasher::of(new);
            }
        }
        let hash = state_hash(&at);
        match self.graph.ids.get(&hash) {
            Some(to) => self.graph.edges.push((from, *to)),
            None => self.enter(at, hash, Some((from, choice)))?,
        }
        Ok(None)
    }

    /// Executes an agent's step: one operation, and the local ones after it. Returns `false` if those do not end.
    fn chain(&self, at: &mut Point<'k>, agent: usize, ops: &mut u32) -> Res<bool> {
        let machine = &mut at.machine;
        loop {
            *ops += 1;
            let moved = machine.step(agent, &mut at.watch)?;
            let more = self.limits.reduce
                && moved == Moved::On
                && machine.is_ready(agent)
                && machine.is_local(agent, &self.privacy);
            if !more {
                return Ok(true);
            }
            if *ops >= CHAIN {
                return Ok(false);
            }
        }
    }

    /// Enters a new state.
    fn enter(&mut self, at: Point<'k>, hash: u128, from: Option<(u32, Choice)>) -> Result<(), Wrong> {
        let machine = &at.machine;
        let steps = self.steps(machine);
        let id = self.graph.add(hash, from, ready(machine).count());
        self.graph.edges.extend(from.map(|(from, _)| (from, id)));
        self.explored.visit(machine, self.stack.len());
        if let Some((found, pair)) = meet(machine) {
            let mut wrong = self.wrong(*found, from);
            wrong.1.extend(pair.map(|agent| Choice::Run { agent: index(agent), ops: 1 }));
            return Err(wrong);
        }
        if steps.is_empty() {
            if let Some(found) = stuck(machine) {
                return Err(self.wrong(*found, from));
            }
            self.explored.ends += 1;
            self.graph.ends.push(id);
        }
        self.stack.push(Node { at: Some(at), id, steps, next: 0 });
        Ok(())
    }

    /// The possible next steps: a local step alone, or all steps.
    fn steps(&self, machine: &Machine<'k>) -> Vec<Step> {
        let ready: Vec<usize> = ready(machine).collect();
        if self.limits.reduce
            && let Some(agent) = ready.iter().find(|a| machine.is_local(**a, &self.privacy))
        {
            return vec![Step::Agent(*agent)];
        }
        ready.into_iter().map(Step::Agent).chain(signalling(machine).map(Step::Complete)).collect()
    }

    /// A finding after a choice, with all choices before it.
    fn wrong(&self, found: Found, last: Option<(u32, Choice)>) -> Wrong {
        let before = last.map(|(from, _)| self.graph.way(from)).unwrap_or_default();
        (found, joined(before.into_iter().chain(last.map(|(_, choice)| choice))))
    }
}

impl Explored {
    /// Counts a state that was reached at this depth.
    pub(super) fn visit(&mut self, machine: &Machine<'_>, depth: usize) {
        self.states += 1;
        self.depth = self.depth.max(depth);
        self.occupied = self.occupied.max(occupied(machine));
        self.times = self.times.max(machine.times());
    }
}

/// Merges consecutive steps of one agent.
pub(super) fn joined(choices: impl IntoIterator<Item = Choice>) -> Vec<Choice> {
    let mut joined: Vec<Choice> = Vec::new();
    for choice in choices {
        match (joined.last_mut(), choice) {
            (Some(Choice::Run { agent, ops }), Choice::Run { agent: a, ops: n }) if *agent == a => *ops += n,
            _ => joined.push(choice),
        }
    }
    joined
}

/// Replays a choice.
fn follow(at: &mut Point<'_>, choice: Choice) -> Res<()> {
    match choice {
        Choice::Complete(op) => at.machine.complete(op, &mut at.watch)?,
        Choice::Run { agent, ops } => {
            for _ in 0..ops {
                at.machine.step(agent as usize, &mut at.watch)?;
            }
        }
    }
    at.machine.settle();
    Ok(())
}

/// The agents that can proceed.
pub(super) fn ready(machine: &Machine<'_>) -> impl Iterator<Item = usize> {
    (0..machine.threads.len()).filter(|a| machine.is_ready(*a))
}

/// The operations in flight whose completion arrives at a barrier.
pub(super) fn signalling(machine: &Machine<'_>) -> impl Iterator<Item = Pending> {
    machine.engine.pending().iter().filter(|(_, op)| !op.signals.is_empty()).map(|(id, _)| id)
}

/// Finds two agents whose next accesses conflict.
pub(super) fn meet(machine: &Machine<'_>) -> Option<(Box<Found>, [usize; 2])> {
    let about: Vec<_> = ready(machine).flat_map(|a| machine.about_to(a)).collect();
    for (i, a) in about.iter().enumerate() {
        for b in about.iter().skip(i + 1).filter(|b| b.agent != a.agent) {
            if let Some(found) = machine.conflict(b, a) {
                return Some((found, [a.agent, b.agent]));
            }
        }
    }
    None
}

/// The deadlock, if an agent waits and no step is possible.
pub(super) fn stuck(machine: &Machine<'_>) -> Option<Box<Found>> {
    let waits: Vec<_> = machine
        .engine
        .agents()
        .iter()
        .filter_map(|(agent, state)| match state {
            State::Blocked(wait) => Some((agent, wait, String::new())),
            State::Ready | State::Done => None,
        })
        .collect();
    (!waits.is_empty()).then(|| machine.deadlocked(&Deadlock { waits }))
}

/// The largest number of slots of a ring that are acquired and not released.
fn occupied(machine: &Machine<'_>) -> u64 {
    let per = machine.plan.agents();
    let mut most = 0;
    for main in (0..machine.threads.len()).step_by(per.max(1)) {
        for (i, ring) in machine.plan.rings.iter().enumerate() {
            if ring.fillers == ring.readers {
                // The same agents fill and read the ring, one after the other.
                let of = |a: &usize| {
                    let t = machine.threads.get(main + a)?;
                    Some(t.fill.get(i)?.saturating_sub(t.read.get(i)?.below))
                };
                most = most.max(ring.fillers.iter().filter_map(of).max().unwrap_or(0));
                continue;
            }
            let filled = ring
                .fillers
                .iter()
                .filter_map(|f| machine.threads.get(main + f)?.fill.get(i).copied())
                .max()
                .unwrap_or(0);
            let freed =
                ring.readers.iter().filter_map(|r| machine.threads.get(main + r)?.read.get(i).map(|r| r.below)).min();
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
    (&machine.store.defined, &machine.store.columns).hash(&mut hasher);
    for cta in &machine.ctas {
        (&cta.holds, &cta.words, &cta.unfenced, &cta.tensor).hash(&mut hasher);
        cta.named.iter().for_each(|(id, n)| (id, n.threads, n.barrier.index()).hash(&mut hasher));
    }
    hasher.write_u8(0);
    hasher.finish128()
}
