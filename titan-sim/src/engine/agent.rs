//! Agents: logical threads of control, and the reasons for which they wait.
//!
//! The client defines what an agent is: a role of a pipeline, a thread of a block, a wave. The engine keeps only whether
//! it is ready, blocked or done, wakes agents when their reason has passed, and reports the reasons if no agent is ready.
//! A woken agent *retries* its wait, which is then evaluated again, as on hardware.

use super::pending::Class;
use super::phase::BarrierId;
use super::rendezvous::RendezvousId;
use std::ops::Range;

titan_core::entity! {
    /// An agent.
    Agent, "agent"
}

/// The reason why an agent waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// The completion of the barrier's phase of this parity.
    Phase {
        /// The barrier.
        barrier: BarrierId,
        /// The parity of the phase that must have ended.
        parity: bool,
    },
    /// The completion of a rendezvous.
    Meeting {
        /// The rendezvous.
        rendezvous: RendezvousId,
    },
    /// At most this many of the agent's own commit groups are outstanding.
    Groups {
        /// The class of the groups.
        class: Class,
        /// The largest number of groups that may be outstanding.
        at_most: u32,
    },
    /// A reason defined and numbered by the client, which also wakes the agent.
    Other(u32),
}

/// The state of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The agent can run.
    Ready,
    /// The agent waits.
    Blocked(Wait),
    /// The agent has ended.
    Done,
}

/// A set of agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AgentSet {
    bits: Vec<u64>,
    len: usize,
}

impl AgentSet {
    /// Inserts an agent; returns whether it is new.
    pub fn insert(&mut self, agent: Agent) -> bool {
        let (word, bit) = (agent.index() / 64, 1 << (agent.index() % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        let new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        self.len += usize::from(new);
        new
    }

    /// Whether the set contains an agent.
    #[must_use]
    pub fn contains(&self, agent: Agent) -> bool {
        self.bits.get(agent.index() / 64).is_some_and(|w| w >> (agent.index() % 64) & 1 == 1)
    }

    /// The number of agents in the set.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The agents of the set, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Agent> + '_ {
        let bits_of = |(i, w): (usize, &u64)| {
            let w = *w;
            (0..64).filter(move |b| w >> b & 1 == 1).map(move |b| Agent::new(i * 64 + b))
        };
        self.bits.iter().enumerate().flat_map(bits_of)
    }

    /// Removes and returns all agents of the set, in ascending order.
    pub fn take(&mut self) -> Vec<Agent> {
        let all = self.iter().collect();
        *self = AgentSet::default();
        all
    }
}

/// The agents of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Agents {
    states: Vec<State>,
}

impl Agents {
    /// Creates `n` agents, all of them ready.
    #[must_use]
    pub fn new(n: usize) -> Agents {
        Agents { states: vec![State::Ready; n] }
    }

    /// The number of agents, including those that have ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there are no agents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// All agents with their states, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (Agent, State)> + '_ {
        self.states.iter().enumerate().map(|(i, s)| (Agent::new(i), *s))
    }

    /// The state of an agent; an agent that does not exist counts as done.
    #[must_use]
    pub fn state(&self, agent: Agent) -> State {
        self.states.get(agent.index()).copied().unwrap_or(State::Done)
    }

    /// Sets an agent's state.
    pub fn set(&mut self, agent: Agent, state: State) {
        if let Some(s) = self.states.get_mut(agent.index()) {
            *s = state;
        }
    }

    /// Makes the agents ready whose wait satisfies `passed`; returns their number.
    pub fn wake(&mut self, passed: impl Fn(Wait) -> bool) -> usize {
        let mut woken = 0;
        for state in &mut self.states {
            if let State::Blocked(wait) = *state
                && passed(wait)
            {
                *state = State::Ready;
                woken += 1;
            }
        }
        woken
    }

    /// The number of agents that have not ended.
    #[must_use]
    pub fn live(&self) -> usize {
        self.states.iter().filter(|s| **s != State::Done).count()
    }

    /// The number of agents in this range that have not ended.
    #[must_use]
    pub fn live_among(&self, agents: Range<usize>) -> usize {
        self.states.get(agents).map_or(0, |states| states.iter().filter(|s| **s != State::Done).count())
    }

    /// Whether some agent can run.
    #[must_use]
    pub fn any_ready(&self) -> bool {
        self.states.contains(&State::Ready)
    }
}
