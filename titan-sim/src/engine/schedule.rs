//! Scheduling of agents.
//!
//! A client calls [`Scheduler::pick`] to choose among the agents that can run. A model checker tries all of them instead.

use super::rng::Rng;

/// The order in which agents run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// In turn; each agent runs until it blocks or ends.
    #[default]
    InTurn,
    /// At random, determined by this seed; each agent runs for a few steps.
    Seeded(u64),
}

/// The state of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scheduler {
    last: usize,
    rng: Option<Rng>,
}

impl Scheduler {
    /// Creates the initial state of a schedule.
    #[must_use]
    pub fn new(schedule: Schedule) -> Scheduler {
        let rng = match schedule {
            Schedule::InTurn => None,
            Schedule::Seeded(seed) => Some(Rng::new(seed)),
        };
        Scheduler { last: usize::MAX, rng }
    }

    /// One of the `n` candidates that can run: in turn, the next after the last one.
    pub fn pick(&mut self, n: usize, can_run: impl Fn(usize) -> bool) -> Option<usize> {
        let start = match &mut self.rng {
            None => self.last.wrapping_add(1),
            Some(rng) => rng.below(n),
        };
        let found = (0..n).map(|i| start.wrapping_add(i) % n).find(|i| can_run(*i));
        self.last = found.unwrap_or(self.last);
        found
    }

    /// The number of steps for which the picked agent may run, at most `most`.
    pub fn quantum(&mut self, most: u32) -> u32 {
        match &mut self.rng {
            None => most,
            Some(rng) => 1 + u32::try_from(rng.below(most.min(32) as usize)).unwrap_or(0),
        }
    }
}
