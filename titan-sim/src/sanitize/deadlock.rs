//! Deadlock: every agent that has not ended waits, and no operation in flight can release one.
//!
//! | event | rule |
//! |---|---|
//! | wait | the agent waits, unless the phase that it waits for is already complete |
//! | end of a phase, completed rendezvous, any event of the agent | it no longer waits |
//! | exit | the agent retires: it counts neither as waiting nor as active |
//! | wait, exit, completed operation | if all other agents wait at barriers or rendezvous, and no operation will signal: deadlock |
//!
//! A wait consumes nothing, and a mismatched count alone is not a deadlock: a deadlock is a state in which no agent can make progress.
//! Agents that wait for a reason of the client's own can be woken by the client, and so are left out.
//!
//! Source: Triton's sanitizer, waiting flags with phases, active masks and retirement (#9046).

use super::config::Config;
use crate::engine::{Agent, BarrierId, Wait};

/// The agents that wait, and those that have ended.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Waiting {
    waits: Vec<Option<Wait>>,
    over: Vec<bool>,
    left: usize,
    blocked: usize,
}

impl Waiting {
    pub(super) fn new(config: &Config) -> Waiting {
        let n = config.n_agents();
        Waiting { waits: vec![None; n], over: vec![false; n], left: n, blocked: 0 }
    }

    pub(super) fn set(&mut self, agent: Agent, wait: Option<Wait>) {
        if let Some(w) = self.waits.get_mut(agent.index()) {
            self.blocked = self.blocked + usize::from(wait.is_some()) - usize::from(w.is_some());
            *w = wait;
        }
    }

    /// A phase has ended: the agents that waited for it no longer wait.
    pub(super) fn phase_ended(&mut self, barrier: BarrierId, passed: impl Fn(bool) -> bool) {
        if self.blocked == 0 {
            return;
        }
        for w in &mut self.waits {
            if let Some(Wait::Phase { barrier: b, parity }) = *w
                && b == barrier
                && passed(parity)
            {
                *w = None;
                self.blocked -= 1;
            }
        }
    }

    /// An agent that waits at a barrier.
    pub(super) fn at(&self, barrier: BarrierId) -> Option<Agent> {
        let at = |w: &Option<Wait>| matches!(w, Some(Wait::Phase { barrier: b, .. }) if *b == barrier);
        self.waits.iter().position(at).map(Agent::new)
    }

    /// Records the end of an agent; returns whether it had not ended before.
    pub(super) fn exit(&mut self, agent: Agent) -> bool {
        self.set(agent, None);
        let Some(over) = self.over.get_mut(agent.index()).filter(|over| !**over) else { return false };
        *over = true;
        self.left -= 1;
        true
    }

    /// All waiting agents, if no other is left.
    pub(super) fn stuck(&self) -> Option<Vec<(Agent, Wait)>> {
        if self.left == 0 || self.blocked < self.left {
            return None;
        }
        let all: Vec<(Agent, Wait)> =
            self.waits.iter().enumerate().filter_map(|(i, w)| Some((Agent::new(i), (*w)?))).collect();
        let own = |w: &Wait| matches!(w, Wait::Other(_) | Wait::Groups { .. });
        (!all.iter().any(|(_, w)| own(w))).then_some(all)
    }
}
