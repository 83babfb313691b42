//! An observer of one order that decides whether its synchronisation is determinate, that is, the same in every other order.
//!
//! For each agent it keeps the events of other agents, and the phases of barriers, that *happen before* its next operation: by the
//! order of each agent's own operations, from the issue of an asynchronous operation to its completion, from everything that makes up a
//! phase to the return of a wait for that phase, and from the start of agents to their first operation. The order of the observed run
//! is used for nothing else. The conditions are D1 to D6 of docs/simulator.md, which proves the theorem that under
//! them every order has the same synchronisation as this one. An event that they do not cover yields a reason, never a certificate.
//!
//! It shares no code with the sanitizer, whose knowledge is about accesses to memory.
//!
//! Deliberately absent: accesses to memory (the sanitizer), deadlock (the run), counters and polled barriers (the full search).

use crate::engine::phase::MAX_BYTES;
use crate::engine::{Agent, BarrierId, Event, FenceSpace, Helper, OpId, Signal, StateHasher};
use std::collections::{BTreeMap, BTreeSet};

/// The events that happen before a point: a number of events of each agent, and a number of phases of each barrier.
#[derive(Clone, Debug, Default)]
struct Known {
    events: Vec<u32>,
    phases: Vec<u64>,
}

impl Known {
    fn learn(&mut self, other: &Known) {
        self.events.resize(self.events.len().max(other.events.len()), 0);
        self.phases.resize(self.phases.len().max(other.phases.len()), 0);
        self.events.iter_mut().zip(&other.events).for_each(|(a, b)| *a = (*a).max(*b));
        self.phases.iter_mut().zip(&other.phases).for_each(|(a, b)| *a = (*a).max(*b));
    }

    fn has(&self, (agent, event): Mark) -> bool {
        self.events.get(agent).is_some_and(|known| *known >= event)
    }

    fn phases_of(&self, barrier: BarrierId) -> u64 {
        self.phases.get(barrier.index()).copied().unwrap_or(0)
    }

    fn learn_phase(&mut self, barrier: BarrierId, complete: u64) {
        self.phases.resize(self.phases.len().max(barrier.index() + 1), 0);
        if let Some(known) = self.phases.get_mut(barrier.index()) {
            *known = (*known).max(complete);
        }
    }
}

/// An event: its agent, and its number among those of the agent.
type Mark = (usize, u32);

/// A part of a phase: its agent, whether an asynchronous operation of that agent, arrivals, bytes.
type Part = (usize, bool, u32, i64);

/// The history of a barrier.
#[derive(Clone, Debug, Default)]
struct Object {
    live: bool,
    /// The program in whose memory it lies; `None` for barriers without a word.
    cta: Option<usize>,
    /// The barrier's identity, which is the same in every order.
    name: (usize, u64),
    /// The event of its initialization, or of the fence that published it.
    since: Option<Mark>,
    fenced: bool,
    /// The number of completed phases.
    phase: u64,
    /// The events that happen before the completion of the current phase, and of the one before.
    gathered: Known,
    complete: Known,
    /// The waits that returned during the current phase.
    waits: Vec<Mark>,
    /// The agents that expect bytes in the current phase and have not arrived since.
    unarrived: BTreeSet<usize>,
    expected: i64,
    copied: i64,
    /// The number of operations in flight that will signal it, and the last phase to which such a signal belongs.
    in_flight: usize,
    signalled: Option<u64>,
    parts: Vec<Part>,
    /// A hash of the parts of each phase so far.
    history: Vec<u128>,
}

/// The observer of one order, which is told of every event of it.
#[derive(Clone, Debug, Default)]
pub struct Certificate {
    /// The number of agents of a program.
    per: usize,
    agents: Vec<Known>,
    barriers: Vec<Object>,
    /// The events that happen before the completion of each operation in flight that signals.
    ops: BTreeMap<OpId, Known>,
    /// For each program, the uses of its barriers by other programs; and the programs that have ended.
    used: BTreeMap<usize, Vec<Mark>>,
    over: BTreeSet<usize>,
    /// The condition that failed, if any: the synchronization may be different in another order.
    why: Option<&'static str>,
}

impl Certificate {
    /// An observer of so many agents, of which each program has `per`: first the agent that starts and joins the others.
    #[must_use]
    pub fn new(agents: usize, per: usize) -> Certificate {
        let known = Known { events: vec![0; agents], phases: Vec::new() };
        Certificate { per: per.max(1), agents: vec![known; agents], ..Certificate::default() }
    }

    /// The reason why the synchronization may be different in another order, if there is one.
    #[must_use]
    pub const fn why(&self) -> Option<&'static str> {
        self.why
    }

    fn fail(&mut self, why: &'static str) {
        self.why.get_or_insert(why);
    }

    fn require(&mut self, holds: bool, why: &'static str) {
        if !holds {
            self.fail(why);
        }
    }

    /// A hash of everything that all orders have in common: the events of each agent, and the parts of each phase.
    #[must_use]
    pub fn identity(&self) -> u128 {
        let mut barriers: Vec<_> = self
            .barriers
            .iter()
            .filter(|b| b.live)
            .map(|b| {
                let mut open = b.parts.clone();
                open.sort_unstable();
                (b.name, &b.history, open)
            })
            .collect();
        barriers.sort_unstable();
        let events: Vec<_> = self.agents.iter().enumerate().map(|(a, known)| known.events.get(a)).collect();
        StateHasher::of(&(barriers, events))
    }

    fn known(&self, agent: usize) -> Known {
        self.agents.get(agent).cloned().unwrap_or_default()
    }

    /// Counts the next event of an agent.
    fn event(&mut self, agent: Agent) -> Mark {
        let a = agent.index();
        let count = self.agents.get_mut(a).and_then(|known| known.events.get_mut(a));
        let Some(count) = count else {
            self.fail("an agent that is not known");
            return (a, 0);
        };
        *count += 1;
        (a, *count)
    }

    fn barrier(&mut self, barrier: BarrierId) -> &mut Object {
        if self.barriers.len() <= barrier.index() {
            self.barriers.resize_with(barrier.index() + 1, Object::default);
        }
        &mut self.barriers[barrier.index()]
    }

    /// D1: a barrier is used after it was initialised and published, and before its program ends.
    fn uses(&mut self, mark: Mark, barrier: BarrierId) {
        let known = self.known(mark.0);
        let object = self.barrier(barrier);
        let (live, since, cta) = (object.live, object.since, object.cta);
        self.require(live && since.is_none_or(|since| known.has(since)), "a barrier may be used before it is there");
        if let Some(cta) = cta.filter(|cta| *cta != mark.0 / self.per) {
            self.require(!self.over.contains(&cta), "a barrier of a program that has ended is used");
            self.used.entry(cta).or_default().push(mark);
        }
    }

    fn init(&mut self, (agent, barrier): (Agent, BarrierId), name: u64, stored: bool) {
        let cta = agent.index() / self.per;
        // A named barrier is created by the first arrival, whichever agent makes it, so its creation is not an event of an agent.
        let mark = stored.then(|| self.event(agent));
        let object = self.barrier(barrier);
        let again = object.live;
        *object = Object { live: true, name: (cta, name), ..Object::default() };
        (object.cta, object.since) = (mark.map(|_| cta), mark);
        self.require(!again, "a barrier is initialised again");
    }

    fn fence(&mut self, agent: Agent) {
        let mark = self.event(agent);
        let own = |o: &&mut Object| o.live && !o.fenced && o.since.is_some_and(|(who, _)| who == mark.0);
        self.barriers.iter_mut().filter(own).for_each(|o| (o.fenced, o.since) = (true, Some(mark)));
    }

    fn issue(&mut self, agent: Agent, op: OpId, signals: &[Signal]) {
        if signals.is_empty() {
            return;
        }
        let mark = self.event(agent);
        for signal in signals {
            let (Signal::Bytes { barrier, .. } | Signal::Arrive { barrier }) = signal;
            self.uses(mark, *barrier);
            self.barrier(*barrier).in_flight += 1;
        }
        let known = self.known(mark.0);
        self.ops.insert(op, known);
    }

    fn arrive(&mut self, (agent, barrier): (Agent, BarrierId), helper: Option<Helper>, count: u32, bytes: i64) {
        let known = match helper {
            Some(helper) => self.ops.get(&helper.op).cloned(),
            None => {
                let mark = self.event(agent);
                self.uses(mark, barrier);
                Some(self.known(mark.0))
            }
        };
        let Some(known) = known else { return self.fail("an operation that is not known") };
        let object = self.barrier(barrier);
        let phase = object.phase;
        object.gathered.learn(&known);
        object.parts.push((agent.index(), helper.is_some(), count, bytes));
        object.expected += bytes.max(0);
        object.copied -= bytes.min(0);
        let fits = object.expected.max(object.copied) <= MAX_BYTES;
        if helper.is_some() {
            (object.in_flight, object.signalled) = (object.in_flight.saturating_sub(1), Some(phase));
        } else if count > 0 {
            object.unarrived.remove(&agent.index());
        } else {
            object.unarrived.insert(agent.index());
        }
        self.require(known.phases_of(barrier) >= phase, "an arrival may be counted in an earlier phase");
        self.require(count > 0 || bytes != 0, "a phase has a part that it does not need");
        self.require(fits, "the bytes of a phase may leave their range");
    }

    fn flip(&mut self, barrier: BarrierId, phase: u64) {
        let object = self.barrier(barrier);
        let returned = object.waits.iter().all(|wait| object.gathered.has(*wait));
        let told = object.unarrived.is_empty();
        object.complete = std::mem::take(&mut object.gathered);
        object.complete.learn_phase(barrier, phase);
        object.phase = phase;
        object.waits.clear();
        (object.expected, object.copied) = (0, 0);
        object.parts.sort_unstable();
        let parts = StateHasher::of(&object.parts);
        object.history.push(parts);
        object.parts.clear();
        self.require(returned, "a phase may end before a wait for the one before returns");
        self.require(told, "bytes may be expected after the phase that they belong to");
    }

    fn observe(&mut self, agent: Agent, barrier: BarrierId, phase: u64) {
        let mark = self.event(agent);
        self.uses(mark, barrier);
        let before = self.known(mark.0).phases_of(barrier);
        let object = self.barrier(barrier);
        let (current, complete) = (object.phase, object.complete.clone());
        object.waits.push(mark);
        if let Some(known) = self.agents.get_mut(mark.0) {
            known.learn(&complete);
        }
        self.require(current == phase, "a wait for another phase than the last complete one");
        self.require(before + 1 >= phase, "a wait may return for an earlier phase of its parity");
    }

    fn fork(&mut self, agent: Agent, into: &[Agent]) {
        let mark = self.event(agent);
        let known = self.known(mark.0);
        for other in into {
            match self.agents.get_mut(other.index()) {
                Some(other) => other.learn(&known),
                None => self.fail("an agent that is not known"),
            }
        }
    }

    /// Records the end of an agent; a program ends after its warps.
    fn exit(&mut self, agent: Agent) {
        let mark = self.event(agent);
        let (known, cta) = (self.known(mark.0), mark.0 / self.per);
        let main = cta * self.per;
        if mark.0 != main {
            if let Some(program) = self.agents.get_mut(main) {
                program.learn(&known);
            }
            return;
        }
        let used = self.used.get(&cta).is_none_or(|marks| marks.iter().all(|mark| known.has(*mark)));
        let arrived = self.barriers.iter().enumerate().filter(|(_, o)| o.cta == Some(cta)).all(|(i, o)| {
            o.in_flight == 0 && o.signalled.is_none_or(|phase| known.phases_of(BarrierId::new(i)) > phase)
        });
        self.over.insert(cta);
        self.require(used, "a program may end before another one uses its barrier");
        self.require(arrived, "a program may end before a copy arrives");
    }

    /// Records the next event.
    pub fn told(&mut self, event: &Event<'_>) {
        match *event {
            Event::Issue { agent, op, signals, .. } => self.issue(agent, op, signals),
            Event::Complete { op, .. } => drop(self.ops.remove(&op)),
            Event::Init { barrier, agent, storage, place, .. } => {
                let name = storage.map_or(place.index() as u64, |s| s.address);
                self.init((agent, barrier), name, storage.is_some());
            }
            Event::Arrive { barrier, agent, helper, count, bytes, relaxed, .. } => {
                self.arrive((agent, barrier), helper, count, bytes);
                self.require(relaxed.is_none(), "a relaxed arrival");
            }
            Event::Flip { barrier, phase } => self.flip(barrier, phase),
            Event::Observe { barrier, agent, phase, relaxed } => {
                self.observe(agent, barrier, phase);
                self.require(relaxed.is_none(), "a relaxed wait");
            }
            Event::Fence { agent, space: FenceSpace::Inits, .. } => self.fence(agent),
            Event::Fork { agent, into } => self.fork(agent, into),
            Event::Exit { agent } => self.exit(agent),
            Event::Invalidate { .. } => self.fail("a barrier is invalidated"),
            Event::Expect { .. } => self.fail("a phase gets more arrivals while it runs"),
            Event::Meet { .. } | Event::Join { .. } => self.fail("agents meet without a barrier"),
            Event::Overwrite { .. } | Event::Forward { .. } | Event::Release { .. } | Event::Acquire { .. } => {
                self.fail("a counter")
            }
            // These events concern one agent alone, or only the sanitizer.
            Event::Access(_)
            | Event::Commit { .. }
            | Event::GroupWait { .. }
            | Event::Fence { space: FenceSpace::All | FenceSpace::Shared | FenceSpace::Global, .. }
            | Event::SyncFence { .. }
            | Event::Free { .. }
            | Event::Wait { .. }
            | Event::At { .. } => {}
        }
    }
}
