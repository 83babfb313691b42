//! The role on which a wait depends.

use super::run::{Fault, On, Run, Stuck, Wait, loop_of};
use super::state::{State, TokenState};
use crate::ir::{Block, Pipe, Ty};

/// The number of iterations of a loop that may be peeled, in addition to the slots of all rings.
const AHEAD: usize = 4;

impl Run<'_> {
    /// Whether the loops of two roles use a common ring.
    pub(super) fn share_a_ring(&self, state: &State, a: usize, b: usize) -> bool {
        let body = |r: usize| loop_of(state, r).and_then(|l| self.kernel.op(l.op).regions.first().copied());
        let (Some(a), Some(b)) = (body(a), body(b)) else { return false };
        let barriers = |o: &usize| self.objects.serves(self.kernel, a, *o) && self.objects.serves(self.kernel, b, *o);
        (0..self.kernel.pipes.len()).map(Pipe::new).any(|p| self.touches(a, p) && self.touches(b, p))
            || (0..self.objects.barriers.len()).any(|o| barriers(&o))
    }

    /// The role on which a wait depends.
    pub(super) fn provider(&self, state: &State, wait: &Wait) -> Option<usize> {
        // Any role whose loop arrives at the barrier. It need not be the right one: executing an iteration that exists
        // is always a legal step.
        if let On::Phase(barrier, _) = wait.on {
            let serves = |r: &usize| {
                let inside = loop_of(state, *r).map(|l| self.kernel.op(l.op).regions.clone()).unwrap_or_default();
                inside.iter().any(|b| self.objects.serves(self.kernel, *b, barrier))
            };
            return (0..state.roles.len()).filter(|r| *r != wait.role).find(serves);
        }
        let standing = self.one_who_could(state, wait).filter(|p| *p != wait.role)?;
        let inside = loop_of(state, standing).map(|l| self.kernel.op(l.op).regions.clone())?;
        inside.iter().any(|b| self.waited_in(*b, wait.on)).then_some(standing)
    }

    /// The role that fills the awaited stage, or one that has not released the awaited slot.
    pub(super) fn one_who_could(&self, state: &State, wait: &Wait) -> Option<usize> {
        match wait.on {
            On::Filled(pipe) => state.rings[pipe.index()].filler,
            On::Free(pipe) => {
                let ring = &state.rings[pipe.index()];
                let slots = i64::from(self.kernel.pipe(pipe).map_or(1, |p| p.slots));
                // Time t = acquired waits for the release of t - D by each reader; one that has not released it is the
                // one that is waited for.
                ring.readers.iter().find(|r| !r.released.has(ring.acquired - slots)).map(|r| r.role)
            }
            On::Phase(..) => None,
        }
    }

    pub(super) fn waited_in(&self, block: Block, on: On) -> bool {
        match on {
            On::Filled(pipe) | On::Free(pipe) => self.touches(block, pipe),
            On::Phase(barrier, _) => self.objects.serves(self.kernel, block, barrier),
        }
    }

    pub(super) fn stuck(&self, state: &State, waits: Vec<Wait>) -> Fault {
        let ended = state.roles.iter().map(|r| r.frames.is_empty()).collect();
        let stuck = |wait: Wait| {
            let provider = self.one_who_could(state, &wait);
            let behind = provider.and_then(|r| loop_of(state, r)).map(|l| {
                let body = self.kernel.op(l.op).regions.first().copied();
                (l.op, body.is_some_and(|b| self.waited_in(b, wait.on)))
            });
            Stuck {
                wait,
                provider,
                behind,
                holds: self.holds(state, &wait),
                may_hold: self.may_hold(state, &wait),
                told: self.incomplete(state, &wait, self.symbols.example.is_some()),
            }
        };
        Fault::Stuck { waits: waits.into_iter().map(stuck).collect(), ended }
    }

    /// The number of stages of a ring that the waiting role holds itself.
    pub(super) fn holds(&self, state: &State, wait: &Wait) -> usize {
        let (On::Filled(pipe) | On::Free(pipe)) = wait.on else { return 0 };
        let count = |held: &TokenState| match held {
            TokenState::Time(p, _) => usize::from(*p == pipe),
            TokenState::Acc(list) => list.iter().filter(|(p, _)| *p == pipe).count(),
            TokenState::Mma => 0,
        };
        let all: usize = state.roles[wait.role].tokens.values().map(count).sum();
        // The pending wait itself does not count as held.
        let all = all + state.roles[wait.role].pairs.holds(pipe);
        all.saturating_sub(usize::from(wait.on == On::Filled(pipe)))
    }

    /// The number of stages that the accumulators of the waiting role may hold in addition to those that they hold; `None` if it has no
    /// accumulators that hold stages of the ring.
    fn may_hold(&self, state: &State, wait: &Wait) -> Option<usize> {
        let (On::Filled(pipe) | On::Free(pipe)) = wait.on else { return None };
        let more =
            state.roles[wait.role].tokens.iter().filter_map(|(value, held)| match (held, self.kernel.ty(*value)) {
                (TokenState::Acc(list), Ty::Acc(_, _, keep)) if list.iter().any(|(p, _)| *p == pipe) => {
                    Some(usize::from(keep).saturating_sub(list.len()))
                }
                (_, _) => None,
            });
        more.reduce(|a, b| a + b)
    }

    /// Whether a role may be executed ahead of the others: at most by the slots of all rings.
    pub(super) fn may_run_ahead(&self, state: &State, role: usize) -> bool {
        let slots: usize = self.kernel.pipes.iter().map(|p| p.slots as usize).sum();
        // A slot is used for the first time, then again in each round, and a parity repeats after two: so many
        // iterations lead from the beginning to a state that repeats, if there is one. The limit makes peeling end.
        let turning = self.objects.barriers.iter().map(|b| b.n).chain(self.objects.memories.iter().map(|m| m.n)).max();
        let slots = slots + 2 * usize::try_from(turning.unwrap_or(0)).unwrap_or(0);
        loop_of(state, role).is_none_or(|l| l.peeled < slots + AHEAD)
    }
}
