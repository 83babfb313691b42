//! The engine: agents, memories, barriers, rendezvous and operations in flight; every event is reported to an observer.
//!
//! Methods that wait return whether the wait passes; if not, the agent is blocked and will be woken to retry. Methods
//! that complete operations pass the payload to the client, which applies it, and only then signal barriers, so that
//! no agent observes a signal before the bytes are in memory.

use super::agent::{Agent, Agents, State, Wait};
use super::event::{Event, Helper, Observer, Place, Stop, Storage};
use super::pending::{Class, Completion, Op, OpId, Pending, Signal};
use super::phase::{BarrierFault, BarrierId, PhaseBarrier};
use super::rendezvous::{Rendezvous, RendezvousFault, RendezvousId};
use super::space::{Space, SpaceId};
use std::fmt;
use std::ops::Range;

/// A machine; `X` is the payload of its asynchronous operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Engine<X> {
    agents: Agents,
    spaces: Vec<Space>,
    barriers: Vec<PhaseBarrier>,
    meetings: Vec<Rendezvous>,
    /// For each rendezvous without a stated number of participants, the agents that take part; `None`: all of them.
    members: Vec<Option<Range<usize>>>,
    pending: Pending<X>,
}

/// The reason why the engine halts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The observer ended the run.
    Stop,
    /// A barrier was misused.
    Barrier(BarrierId, BarrierFault),
    /// A rendezvous was misused.
    Meeting(RendezvousId, RendezvousFault),
    /// A barrier or rendezvous does not exist.
    Unknown,
}

impl From<Stop> for Halt {
    fn from(_: Stop) -> Self {
        Halt::Stop
    }
}

/// A deadlock: the waiting agents and their reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The waiting agents, with their reason and its progress.
    pub waits: Vec<(Agent, Wait, String)>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.waits.iter().map(|(agent, _, what)| format!("{agent} waits for {what}"));
        write!(f, "deadlock: {}", each.collect::<Vec<_>>().join("; "))
    }
}

impl<X> Engine<X> {
    /// Creates a machine with this number of agents, all ready, without memories, barriers or operations.
    #[must_use]
    pub fn new(agents: usize, completion: Completion) -> Engine<X> {
        Engine {
            agents: Agents::new(agents),
            spaces: Vec::new(),
            barriers: Vec::new(),
            meetings: Vec::new(),
            members: Vec::new(),
            pending: Pending::new(completion),
        }
    }

    /// Adds an address space of memory.
    pub fn add_space(&mut self, space: Space) -> SpaceId {
        self.spaces.push(space);
        SpaceId::new(self.spaces.len() - 1)
    }

    /// Adds a barrier, not yet initialised.
    pub fn add_barrier(&mut self) -> BarrierId {
        self.barriers.push(PhaseBarrier::default());
        BarrierId::new(self.barriers.len() - 1)
    }

    /// Adds a rendezvous.
    pub fn add_meeting(&mut self) -> RendezvousId {
        self.meetings.push(Rendezvous::default());
        self.members.push(None);
        RendezvousId::new(self.meetings.len() - 1)
    }

    /// Adds a rendezvous of these agents, such as those of one block of a cluster, for arrivals that state no number of participants.
    pub fn add_meeting_of(&mut self, members: Range<usize>) -> RendezvousId {
        let id = self.add_meeting();
        self.members[id.index()] = Some(members);
        id
    }

    /// The number of live agents that a rendezvous without a stated number of participants waits for.
    fn live_at(&self, place: RendezvousId) -> usize {
        match self.members.get(place.index()) {
            Some(Some(members)) => self.agents.live_among(members.clone()),
            Some(None) | None => self.agents.live(),
        }
    }

    /// The agents of the machine.
    #[must_use]
    pub const fn agents(&self) -> &Agents {
        &self.agents
    }

    /// The agents, to block and wake them for reasons of the client.
    pub const fn agents_mut(&mut self) -> &mut Agents {
        &mut self.agents
    }

    /// The memory with this index.
    #[must_use]
    pub fn space(&self, id: SpaceId) -> Option<&Space> {
        self.spaces.get(id.index())
    }

    /// The memory with this index, mutable. The client reports the access to the observer.
    pub fn space_mut(&mut self, id: SpaceId) -> Option<&mut Space> {
        self.spaces.get_mut(id.index())
    }

    /// The barrier with this index.
    #[must_use]
    pub fn barrier(&self, id: BarrierId) -> Option<&PhaseBarrier> {
        self.barriers.get(id.index())
    }

    /// The rendezvous with this index.
    #[must_use]
    pub fn meeting(&self, id: RendezvousId) -> Option<&Rendezvous> {
        self.meetings.get(id.index())
    }

    /// The operations in flight.
    #[must_use]
    pub const fn pending(&self) -> &Pending<X> {
        &self.pending
    }

    fn at(&mut self, id: BarrierId) -> Result<&mut PhaseBarrier, Halt> {
        self.barriers.get_mut(id.index()).ok_or(Halt::Unknown)
    }

    /// Initialises a barrier; `storage` is its word, if observers should check accesses to it.
    ///
    /// # Errors
    /// [`Halt`].
    #[expect(clippy::too_many_arguments, reason = "the barrier, its counts and storage, and who initialises it where")]
    pub fn init(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        count: u32,
        storage: Option<Storage>,
        place: Place,
        obs: &mut impl Observer,
    ) -> Result<(), Halt> {
        self.at(barrier)?;
        obs.event(&Event::Init { barrier, agent, count, storage, place })?;
        self.at(barrier)?.init(count).map_err(|e| Halt::Barrier(barrier, e))
    }

    /// Invalidates a barrier.
    ///
    /// # Errors
    /// [`Halt`].
    pub fn invalidate(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        place: Place,
        obs: &mut impl Observer,
    ) -> Result<(), Halt> {
        self.at(barrier)?;
        obs.event(&Event::Invalidate { barrier, agent, place })?;
        self.at(barrier)?.invalidate().map_err(|e| Halt::Barrier(barrier, e))
    }

    /// Reports an arrival, changes the barrier by `change`, and wakes the agents that waited for the completed phase.
    fn touch(
        &mut self,
        barrier: BarrierId,
        told: Arrival,
        obs: &mut impl Observer,
        change: impl FnOnce(&mut PhaseBarrier) -> Result<bool, BarrierFault>,
    ) -> Result<(), Halt> {
        let phase = self.at(barrier)?.phase();
        let Arrival { agent, helper, count, bytes, drops, relaxed } = told;
        obs.event(&Event::Arrive { barrier, agent, helper, phase, count, bytes, drops, relaxed })?;
        let ended = change(self.at(barrier)?).map_err(|e| Halt::Barrier(barrier, e))?;
        if ended {
            obs.event(&Event::Flip { barrier, phase: phase + 1 })?;
            let passed = self.at(barrier)?.clone();
            self.agents
                .wake(|w| matches!(w, Wait::Phase { barrier: b, parity } if b == barrier && passed.passed(parity)));
        }
        Ok(())
    }

    /// Expects `bytes` (0 for none) and arrives `count` times (possibly 0).
    ///
    /// # Errors
    /// [`Halt`].
    pub fn arrive(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        count: u32,
        bytes: u32,
        obs: &mut impl Observer,
    ) -> Result<(), Halt> {
        self.arrive_ordered(agent, barrier, (count, bytes), None, obs)
    }

    /// The same; `relaxed` as in [`Event::Arrive`].
    ///
    /// # Errors
    /// [`Halt`].
    pub fn arrive_ordered(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        (count, bytes): (u32, u32),
        relaxed: Option<(SpaceId, u64)>,
        obs: &mut impl Observer,
    ) -> Result<(), Halt> {
        let told = Arrival { agent, helper: None, count, bytes: bytes.into(), drops: false, relaxed };
        // The bytes are added first, so that the arrival cannot complete the phase without them.
        self.touch(barrier, told, obs, |b| {
            let by_bytes = if bytes > 0 { b.expect(bytes)? } else { false };
            let by_count = if count > 0 { b.arrive(count)? } else { false };
            Ok(by_bytes || by_count)
        })
    }

    /// Arrives, and lowers the arrival count of later phases. `relaxed`: as in [`Event::Arrive`].
    ///
    /// # Errors
    /// [`Halt`].
    pub fn arrive_and_drop(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        count: u32,
        relaxed: Option<(SpaceId, u64)>,
        obs: &mut impl Observer,
    ) -> Result<(), Halt> {
        let told = Arrival { agent, helper: None, count, bytes: 0, drops: true, relaxed };
        self.touch(barrier, told, obs, |b| b.arrive_and_drop(count))
    }

    /// Adds pending arrivals to the current phase.
    ///
    /// # Errors
    /// [`Halt`].
    pub fn add_pending(&mut self, barrier: BarrierId, count: u32, obs: &mut impl Observer) -> Result<(), Halt> {
        self.at(barrier)?;
        obs.event(&Event::Expect { barrier, count })?;
        self.at(barrier)?.add_pending(count).map_err(|e| Halt::Barrier(barrier, e))
    }

    /// Tests whether the phase of this parity is complete; if so, the agent has acquired it.
    ///
    /// # Errors
    /// [`Halt`].
    pub fn test(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        parity: bool,
        obs: &mut impl Observer,
    ) -> Result<bool, Halt> {
        self.test_ordered(agent, barrier, parity, None, obs)
    }

    /// The same; `relaxed` as in [`Event::Observe`].
    ///
    /// # Errors
    /// [`Halt`].
    pub fn test_ordered(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        parity: bool,
        relaxed: Option<(SpaceId, u64)>,
        obs: &mut impl Observer,
    ) -> Result<bool, Halt> {
        let b = self.at(barrier)?;
        if !b.is_live() {
            obs.event(&Event::Wait { agent, wait: Wait::Phase { barrier, parity } })?;
            return Err(Halt::Barrier(barrier, BarrierFault::NotLive));
        }
        let (passed, phase) = (b.passed(parity), b.phase());
        if passed {
            obs.event(&Event::Observe { barrier, agent, phase, relaxed })?;
        }
        Ok(passed)
    }

    /// Tests a phase as [`test`](Self::test) does, but blocks the agent if it is not complete.
    ///
    /// # Errors
    /// [`Halt`].
    pub fn wait_phase(
        &mut self,
        agent: Agent,
        barrier: BarrierId,
        parity: bool,
        obs: &mut impl Observer,
    ) -> Result<bool, Halt> {
        let passed = self.test(agent, barrier, parity, obs)?;
        if !passed {
            let wait = Wait::Phase { barrier, parity };
            self.agents.set(agent, State::Blocked(wait));
            obs.event(&Event::Wait { agent, wait })?;
        }
        Ok(passed)
    }

    /// Agents arrive at a rendezvous, and wait unless `waits` is false. Its completion releases the waiting agents.
    ///
    /// # Errors
    /// [`Halt`].
    pub fn meet(
        &mut self,
        agents: &[Agent],
        place: RendezvousId,
        expected: Option<u32>,
        waits: bool,
        obs: &mut impl Observer,
    ) -> Result<(), Halt> {
        let meeting = self.meetings.get_mut(place.index()).ok_or(Halt::Unknown)?;
        for agent in agents {
            meeting.arrive(*agent, expected, waits).map_err(|e| Halt::Meeting(place, e))?;
            if waits {
                self.agents.set(*agent, State::Blocked(Wait::Meeting { rendezvous: place }));
            }
        }
        self.try_meet(place, obs)?;
        let wait = Wait::Meeting { rendezvous: place };
        for agent in agents.iter().filter(|a| self.agents.state(**a) == State::Blocked(wait)) {
            obs.event(&Event::Wait { agent: *agent, wait })?;
        }
        Ok(())
    }

    fn try_meet(&mut self, place: RendezvousId, obs: &mut impl Observer) -> Result<(), Halt> {
        let live = self.live_at(place);
        let Some((waited, passed)) = self.meetings.get_mut(place.index()).and_then(|m| m.meet(live)) else {
            return Ok(());
        };
        waited.iter().for_each(|a| self.agents.set(*a, State::Ready));
        Ok(obs.event(&Event::Meet { rendezvous: place, waited: &waited, passed: &passed })?)
    }

    /// Agents end; a rendezvous of all live agents may complete by that.
    ///
    /// # Errors
    /// [`Halt`].
    pub fn exit(&mut self, agents: &[Agent], obs: &mut impl Observer) -> Result<(), Halt> {
        agents.iter().for_each(|agent| self.agents.set(*agent, State::Done));
        for i in 0..self.meetings.len() {
            self.try_meet(RendezvousId::new(i), obs)?;
        }
        agents.iter().try_for_each(|agent| Ok(obs.event(&Event::Exit { agent: *agent })?))
    }

    /// Issues an operation, in the open group of its agent and class unless it is `ungrouped`. With [`Completion::Early`]
    /// the client completes it at once.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn issue(&mut self, op: Op<X>, ungrouped: bool, place: Place, obs: &mut impl Observer) -> Result<OpId, Stop> {
        let (agent, class) = (op.agent, op.class);
        let id = if ungrouped { self.pending.issue_ungrouped(op) } else { self.pending.issue(op) };
        let signals = self.pending.get(id).map_or(&[][..], |op| &op.signals);
        obs.event(&Event::Issue { agent, op: id, class, place, grouped: !ungrouped, signals })?;
        Ok(id)
    }

    /// Commits an agent's open group of a class.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn commit(&mut self, agent: Agent, class: Class, obs: &mut impl Observer) -> Result<(), Stop> {
        let groups = self.pending.commit(agent, class);
        obs.event(&Event::Commit { agent, class, groups })
    }

    /// Waits until at most `at_most` groups are outstanding, completing the required operations now: at the latest moment.
    ///
    /// # Errors
    /// The errors of `apply`, and [`Halt`].
    pub fn wait_groups<E: From<Halt>>(
        &mut self,
        agent: Agent,
        class: Class,
        at_most: u32,
        obs: &mut impl Observer,
        mut apply: impl FnMut(&mut [Space], &Op<X>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (asked, complete) = self.pending.wait(agent, class, at_most);
        for op in asked {
            self.complete(op, obs, &mut apply)?;
        }
        Ok(obs.event(&Event::GroupWait { agent, class, complete }).map_err(Halt::from)?)
    }

    /// Completes an operation and those that must complete before it: applies each, then signals.
    ///
    /// # Errors
    /// The errors of `apply`, and [`Halt`].
    pub fn complete<E: From<Halt>>(
        &mut self,
        op: OpId,
        obs: &mut impl Observer,
        mut apply: impl FnMut(&mut [Space], &Op<X>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (id, op) in self.pending.take(op) {
            apply(&mut self.spaces, &op)?;
            let Op { agent, class, .. } = op;
            for signal in &op.signals {
                self.signal(agent, Helper { class, op: id }, *signal, obs)?;
            }
            obs.event(&Event::Complete { op: id, agent, class }).map_err(Halt::from)?;
        }
        Ok(())
    }

    fn signal(&mut self, agent: Agent, helper: Helper, signal: Signal, obs: &mut impl Observer) -> Result<(), Halt> {
        let told = |count, bytes| Arrival { agent, helper: Some(helper), count, bytes, drops: false, relaxed: None };
        match signal {
            Signal::Bytes { barrier, bytes } => {
                self.touch(barrier, told(0, -i64::from(bytes)), obs, |b| b.complete(bytes))
            }
            Signal::Arrive { barrier } => self.touch(barrier, told(1, 0), obs, |b| b.arrive(1)),
        }
    }

    /// An operation that completes now at random; see [`Pending::happens`].
    pub fn happens(&mut self) -> Option<OpId> {
        self.pending.happens()
    }

    /// The waiting agents, if no agent is ready, some have not ended, and no operation is in flight.
    #[must_use]
    pub fn deadlock(&self) -> Option<Deadlock> {
        if self.agents.any_ready() || self.agents.live() == 0 || !self.pending.is_empty() {
            return None;
        }
        let blocked = self.agents.iter().filter_map(|(agent, state)| match state {
            State::Blocked(wait) => Some((agent, wait, self.reason(wait))),
            State::Ready | State::Done => None,
        });
        Some(Deadlock { waits: blocked.collect() })
    }

    /// The description of a wait, with its progress.
    #[must_use]
    pub fn reason(&self, wait: Wait) -> String {
        match wait {
            Wait::Phase { barrier, parity } => {
                let parity = u8::from(parity);
                self.barrier(barrier)
                    .map_or_else(String::new, |b| format!("the phase of parity {parity} of {barrier}: {}", b.missing()))
            }
            Wait::Meeting { rendezvous } => self.meeting(rendezvous).map_or_else(String::new, |m| {
                let needed = m.expected().map_or_else(|| self.live_at(rendezvous).to_string(), |n| n.to_string());
                format!("{rendezvous}: {} of {needed} have arrived", m.arrived())
            }),
            Wait::Groups { class, at_most } => {
                format!("at most {at_most} outstanding groups of class {}", class.0)
            }
            Wait::Other(n) => format!("reason {n}"),
        }
    }
}

/// The fields of [`Event::Arrive`] other than the barrier.
struct Arrival {
    agent: Agent,
    helper: Option<Helper>,
    count: u32,
    bytes: i64,
    drops: bool,
    relaxed: Option<(SpaceId, u64)>,
}
