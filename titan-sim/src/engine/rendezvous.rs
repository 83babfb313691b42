//! Barriers at which agents meet: all of them, or a stated number.
//!
//! Arrivals are counted in agents. A meeting takes place when the expected number has arrived: a stated one, or all that
//! have not ended; in the second case the end of an agent may complete it. Some only arrive (`bar.arrive`), others wait.
//! The participants of a meeting all name the same number; two that do not are a fault, as on hardware it is undefined.
//!
//! Source: PTX ISA, "bar, barrier"; a block's barrier without a count takes all threads that have not exited.

use super::agent::{Agent, AgentSet};
use std::fmt;
use std::hash::{Hash, Hasher};

titan_core::entity! {
    /// A place where agents meet.
    RendezvousId, "rendezvous"
}

/// One such place. Its hash leaves out how many meetings there were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendezvous {
    generation: u32,
    /// The stated number of participants of the meeting that gathers; `None` is all that live.
    expected: Option<u32>,
    waiting: AgentSet,
    /// Those who arrived without waiting, once for each arrival.
    passers: Vec<Agent>,
}

/// A use that no hardware defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RendezvousFault {
    /// Two participants state different numbers.
    Mismatch {
        /// What the first stated; `None` is all.
        first: Option<u32>,
        /// What this one states.
        now: Option<u32>,
    },
    /// An agent that has arrived and not been released arrives again.
    Twice(Agent),
    /// More participants than stated.
    TooMany {
        /// The stated number.
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
            RendezvousFault::Twice(_) => write!(f, "a participant arrives again before the meeting took place"),
            RendezvousFault::TooMany { expected } => write!(f, "more than the expected {expected} arrive"),
        }
    }
}

impl Hash for Rendezvous {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.expected, &self.waiting, &self.passers).hash(state);
    }
}

impl Rendezvous {
    /// How many meetings took place.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// How many arrivals there are for the meeting that gathers.
    #[must_use]
    pub const fn arrived(&self) -> usize {
        self.waiting.len() + self.passers.len()
    }

    /// Who has arrived and waits.
    #[must_use]
    pub const fn waiting(&self) -> &AgentSet {
        &self.waiting
    }

    /// The stated number of participants, if somebody has arrived and stated one.
    #[must_use]
    pub const fn expected(&self) -> Option<u32> {
        self.expected
    }

    /// An agent arrives, to wait or only to be counted.
    ///
    /// # Errors
    /// [`RendezvousFault`]; the state is then as before.
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

    /// If all are there, `live` being the number of those that have not ended, the meeting takes place: first its
    /// participants who waited, then those who only arrived.
    pub fn meet(&mut self, live: usize) -> Option<(Vec<Agent>, Vec<Agent>)> {
        let needed = self.expected.map_or(live, |n| n as usize);
        (self.arrived() > 0 && self.arrived() >= needed).then(|| {
            self.generation += 1;
            self.expected = None;
            (self.waiting.take(), std::mem::take(&mut self.passers))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(n: usize) -> Vec<Agent> {
        (0..n).map(Agent::new).collect()
    }

    #[test]
    fn all_that_live_meet() {
        let (mut r, a) = (Rendezvous::default(), agents(3));
        r.arrive(a[0], None, true).unwrap();
        r.arrive(a[2], None, true).unwrap();
        assert_eq!(r.meet(3), None);
        assert_eq!(r.meet(2), Some((vec![a[0], a[2]], vec![])), "the third has ended");
        assert_eq!((r.generation(), r.meet(2)), (1, None));
    }

    #[test]
    fn a_stated_number_meets_and_some_only_arrive() {
        let (mut r, a) = (Rendezvous::default(), agents(4));
        r.arrive(a[0], Some(2), false).unwrap();
        assert_eq!((r.arrived(), r.meet(4)), (1, None));
        r.arrive(a[3], Some(2), true).unwrap();
        assert_eq!(r.meet(4), Some((vec![a[3]], vec![a[0]])));
    }

    #[test]
    fn misuse_is_a_fault() {
        let (mut r, a) = (Rendezvous::default(), agents(3));
        r.arrive(a[0], Some(2), true).unwrap();
        assert_eq!(r.arrive(a[1], Some(3), true), Err(RendezvousFault::Mismatch { first: Some(2), now: Some(3) }));
        assert_eq!(r.arrive(a[0], Some(2), true), Err(RendezvousFault::Twice(a[0])));
        r.arrive(a[1], Some(2), true).unwrap();
        assert_eq!(r.arrive(a[2], Some(2), true), Err(RendezvousFault::TooMany { expected: 2 }));
    }
}
