//! Rendezvous: barriers of all agents, or of a stated number of them.
//!
//! Arrivals are counted in agents. A rendezvous completes when the expected number has arrived: a stated one, or all agents that
//! have not ended; in the second case the end of an agent may complete it. Some agents only arrive (`bar.arrive`), others wait.
//! All participants state the same number; different numbers are a fault, because they are undefined on hardware.
//!
//! Source: PTX ISA, "bar, barrier"; a block's barrier without a count takes all threads that have not exited.

use super::agent::{Agent, AgentSet};
use std::fmt;
use std::hash::{Hash, Hasher};

titan_core::entity! {
    /// A rendezvous.
    RendezvousId, "rendezvous"
}

/// The state of a rendezvous. Its hash leaves out the number of completions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendezvous {
    generation: u32,
    /// The stated number of participants; `None`: all live agents.
    expected: Option<u32>,
    waiting: AgentSet,
    /// The agents that arrived without waiting, once for each arrival.
    passers: Vec<Agent>,
}

/// A use that is undefined on hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RendezvousFault {
    /// Two participants state different numbers.
    Mismatch {
        /// The number that the first one stated; `None`: all.
        first: Option<u32>,
        /// The number that this one states.
        now: Option<u32>,
    },
    /// An agent that has arrived and not been released arrives again.
    Twice(Agent),
    /// More participants arrive than stated.
    TooMany {
        /// The stated number of participants.
        expected: u32,
    },
}

impl fmt::Display for RendezvousFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |n: &Option<u32>| n.map_or("all".to_owned(), |n| n.to_string());
        match self {
            RendezvousFault::Mismatch { first, now } => {
                write!(f, "one participant expects {}, another {}", said(first), said(now))
            }
            RendezvousFault::Twice(_) => write!(f, "a participant arrives again before the barrier completes"),
            RendezvousFault::TooMany { expected } => write!(f, "more than the expected {expected} participants arrive"),
        }
    }
}

impl Hash for Rendezvous {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.expected, &self.waiting, &self.passers).hash(state);
    }
}

impl Rendezvous {
    /// The number of completions.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The number of arrivals so far.
    #[must_use]
    pub const fn arrived(&self) -> usize {
        self.waiting.len() + self.passers.len()
    }

    /// The agents that have arrived and are waiting.
    #[must_use]
    pub const fn waiting(&self) -> &AgentSet {
        &self.waiting
    }

    /// The stated number of participants, if an agent has arrived and stated one.
    #[must_use]
    pub const fn expected(&self) -> Option<u32> {
        self.expected
    }

    /// Records the arrival of an agent, which waits or only arrives.
    ///
    /// # Errors
    /// [`RendezvousFault`]; the state is then unchanged.
    pub fn arrive(&mut self, agent: Agent, expected: Option<u32>, waits: bool) -> Result<(), RendezvousFault> {
        if self.arrived() == 0 {
            self.expected = expected;
        } else if self.expected != expected {
            return Err(RendezvousFault::Mismatch { first: self.expected, now: expected });
        }
        if waits && self.waiting.contains(agent) {
            return Err(RendezvousFault::Twice(agent));
        }
        if let Some(n) = expected
            && self.arrived() >= n as usize
        {
            return Err(RendezvousFault::TooMany { expected: n });
        }
        if waits {
            self.waiting.insert(agent);
        } else {
            self.passers.push(agent);
        }
        Ok(())
    }

    /// Completes if all participants have arrived; `live` is the number of agents that have not ended. Returns the participants that
    /// waited, and those that only arrived.
    pub fn meet(&mut self, live: usize) -> Option<(Vec<Agent>, Vec<Agent>)> {
        let needed = self.expected.map_or(live, |n| n as usize);
        (self.arrived() > 0 && self.arrived() >= needed).then(|| {
            self.generation += 1;
            self.expected = None;
            (self.waiting.take(), std::mem::take(&mut self.passers))
        })
    }
}
