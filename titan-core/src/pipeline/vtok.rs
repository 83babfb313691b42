//! Virtual tokens, which compute the counts of waits for completion classes in which a wait for a group includes all older groups.
//!
//! A copy that a thread starts belongs to the thread's next commit group; groups complete in order, and a wait states how many of the
//! youngest may still be in flight (`cp.async.wait_group`, `s_waitcnt`). The token of a stage is the ordinal of its group. At a wait for
//! the stage, the immediate is the number of groups that are certainly younger: the minimum over the paths to the wait. Groups that are not
//! known to be younger are waited for too, so that a wait out of order is slow, but never wrong.
//!
//! A branch that only fills stages commits its group after the branch, on both paths: an iteration without copies commits an empty group.
//! So the counts are the same up to the last iteration, although the last ones copy nothing.
//!
//! A `break` or `continue` takes its state along: after a loop, the counts hold for every path that leaves it.
//!
//! Ordinals are never unrolled. The state at a point is, for each ring, by how many stages its filling side is ahead of its reading side,
//! and the number of younger groups for each of those stages. Loops of constant length are walked; others must return to the state at their
//! head, which is the minimum over its predecessors.
//!
//! [`check`] tests the result by execution with concrete numbers, and shares no code with this pass.

mod check;

pub use check::check;

use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, Family, Flow, Kernel, OpId, OpKind, Pipe, Token, TtgOp, Ty, Value};
use std::collections::VecDeque;

/// Loops with at most this many iterations are walked iteration by iteration.
const WALK: i64 = 64;

/// The positions of commits, and the counts of waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// For each `wait_ready`, the number of groups that may be in flight after it.
    pub waits: SortedMap<OpId, u32>,
    /// Branches and copies after which a group is committed.
    pub commits: SortedSet<OpId>,
}

/// The state of a ring's stages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ring {
    /// The number of stages that are filled (or skipped) without a pending or completed wait; `None` if that differs between paths.
    ahead: Option<i64>,
    /// For the latest stages, the latest first: the number of groups that are certainly younger.
    younger: VecDeque<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    rings: Vec<Ring>,
    /// The pending waits, each with its ring and the age of its stage.
    claims: SortedMap<Value, (Pipe, i64)>,
}

impl State {
    fn join(&mut self, other: &State) {
        for (a, b) in self.rings.iter_mut().zip(&other.rings) {
            if a.ahead != b.ahead {
                a.ahead = None;
            }
            a.younger.truncate(b.younger.len());
            for (x, y) in a.younger.iter_mut().zip(&b.younger) {
                *x = (*x).min(*y);
            }
        }
        self.claims.retain(|v, at| other.claims.get(v) == Some(at));
    }

    /// Commits a group that contains a stage of each of these rings, in this order.
    fn commit(&mut self, filled: &[Pipe], deepest: usize) {
        for ring in &mut self.rings {
            ring.younger.iter_mut().for_each(|n| *n += 1);
        }
        for pipe in filled {
            let Some(ring) = self.rings.get_mut(pipe.index()) else { continue };
            ring.younger.push_front(0);
            ring.younger.truncate(deepest);
            ring.ahead = ring.ahead.map(|n| n + 1);
            for (p, age) in self.claims.values_mut() {
                if p == pipe {
                    *age += 1;
                }
            }
        }
    }
}

/// Assigns groups to the copies of the rings that `counts` selects, all of which are of one completion class.
#[must_use]
pub fn assign(kernel: &Kernel, counts: &dyn Fn(Pipe) -> bool) -> Groups {
    let deepest = kernel.pipes.iter().map(|p| p.slots as usize).max().unwrap_or(1);
    let rings = kernel.pipes.iter().map(|_| Ring { ahead: Some(0), younger: VecDeque::new() }).collect();
    let mut walk = Walk { kernel, deepest, counts, loops: Vec::new(), out: Groups::default() };
    walk.block(kernel.body, State { rings, claims: SortedMap::new() });
    walk.out
}

/// A loop that is being walked, with the states at its back edges and at its exits.
#[derive(Default)]
struct Around {
    next: Option<State>,
    exit: Option<State>,
}

/// Joins the state of another path, if that path is reachable.
fn join(to: &mut Option<State>, from: Option<State>) {
    match (to, from) {
        (Some(to), Some(from)) => to.join(&from),
        (to, from) => *to = to.take().or(from),
    }
}

struct Walk<'k> {
    kernel: &'k Kernel,
    counts: &'k dyn Fn(Pipe) -> bool,
    deepest: usize,
    loops: Vec<Around>,
    out: Groups,
}

impl Walk<'_> {
    /// The state after a block; `None` if its end is unreachable.
    fn block(&mut self, block: Block, entry: State) -> Option<State> {
        let mut state = entry;
        for id in &self.kernel.block(block).ops {
            state = self.op(*id, state)?;
        }
        Some(state)
    }

    /// The state after an operation; `None` if no path leads there.
    fn op(&mut self, id: OpId, mut state: State) -> Option<State> {
        let kernel = self.kernel;
        let op = kernel.op(id);
        match op.kind.family() {
            Family::Flow(Flow::If) => self.branch(id, state),
            Family::Flow(Flow::For(_)) => self.counted(id, state),
            Family::Flow(Flow::Loop) => self.around(op.regions[0], state, false),
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let around = self.loops.len().checked_sub(1 + n as usize).and_then(|at| self.loops.get_mut(at))?;
                let leaves = matches!(op.kind, OpKind::Break(_));
                join(if leaves { &mut around.exit } else { &mut around.next }, Some(state));
                None
            }
            Family::Flow(Flow::Return) => None,
            Family::Ttg(ttg) => {
                self.event(id, ttg, &mut state);
                Some(state)
            }
            // These neither start copies of a ring nor wait for them.
            Family::Flow(Flow::Yield)
            | Family::Data(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => Some(state),
        }
    }

    fn event(&mut self, id: OpId, ttg: &TtgOp, state: &mut State) {
        let kernel = self.kernel;
        let op = kernel.op(id);
        match ttg {
            TtgOp::AsyncProduce { .. } | TtgOp::Fill(_) => {
                let filled: Vec<Pipe> = filled(kernel, id).into_iter().filter(|p| (self.counts)(*p)).collect();
                if filled.is_empty() {
                    return;
                }
                self.out.commits.insert(id);
                state.commit(&filled, self.deepest);
            }
            TtgOp::Ready(pipe) => {
                let Some(ring) = state.rings.get_mut(pipe.index()) else { return };
                if let (Some(ahead), Some(claim)) = (ring.ahead, op.results.first()) {
                    state.claims.insert(*claim, (*pipe, ahead - 1));
                    ring.ahead = Some(ahead - 1);
                }
            }
            TtgOp::WaitReady => {
                let claim = op.args.first().and_then(|v| state.claims.get(v)).copied();
                let younger = claim.and_then(|(pipe, age)| {
                    let age = usize::try_from(age).ok()?;
                    state.rings.get(pipe.index())?.younger.get(age).copied()
                });
                let allowed = younger.unwrap_or(0);
                self.out.waits.entry(id).and_modify(|n| *n = (*n).min(allowed)).or_insert(allowed);
            }
            TtgOp::Roles => op.regions.iter().for_each(|role| drop(self.block(*role, state.clone()))),
            // These neither start copies of a ring nor wait for them.
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Acquire(_)
            | TtgOp::Poisoned
            | TtgOp::ReadPerm
            | TtgOp::Split(_)
            | TtgOp::Join
            | TtgOp::View { .. }
            | TtgOp::Read
            | TtgOp::Consumed
            | TtgOp::Release
            | TtgOp::ComputeIssue
            | TtgOp::ComputeWait
            | TtgOp::AccStart(_)
            | TtgOp::AccMma
            | TtgOp::AccFinish
            | TtgOp::Write
            | TtgOp::StoreIssue(_)
            | TtgOp::StoreWait
            | TtgOp::Finalize
            | TtgOp::Rematerialize
            | TtgOp::Claim(..)
            | TtgOp::Fence { .. } => {}
        }
    }

    fn branch(&mut self, id: OpId, mut state: State) -> Option<State> {
        let op = self.kernel.op(id);
        let filled = only_fills(self.kernel, id).filter(|filled| filled.iter().all(|p| (self.counts)(*p)));
        if let Some(filled) = filled {
            self.out.commits.insert(id);
            state.commit(&filled, self.deepest);
            return Some(state);
        }
        let mut after = None;
        for region in &op.regions {
            let arm = self.block(*region, state.clone());
            join(&mut after, arm);
        }
        after
    }

    fn counted(&mut self, id: OpId, state: State) -> Option<State> {
        let op = self.kernel.op(id);
        let bound = |i: usize| op.args.get(i).and_then(|v| self.kernel.int_constant(*v));
        if let (Some(lo), Some(hi), Some(step @ 1..)) = (bound(0), bound(1), bound(2)) {
            let trips = (hi - lo).max(0).div_euclid(step) + i64::from((hi - lo).max(0) % step > 0);
            if trips <= WALK {
                let (mut now, mut left) = (Some(state), None);
                for _ in 0..trips {
                    let Some(state) = now else { break };
                    let Around { next, exit } = self.iteration(op.regions[0], state);
                    join(&mut left, exit);
                    now = next;
                }
                join(&mut now, left);
                return now;
            }
        }
        self.around(op.regions[0], state, true)
    }

    /// Walks the body of a loop once.
    fn iteration(&mut self, body: Block, state: State) -> Around {
        self.loops.push(Around::default());
        self.block(body, state);
        self.loops.pop().unwrap_or_default()
    }

    /// Walks a loop of any length: the state at its head holds in every iteration, and after a loop with a count.
    fn around(&mut self, body: Block, state: State, counted: bool) -> Option<State> {
        let mut head = state;
        loop {
            let Around { next, mut exit } = self.iteration(body, head.clone());
            let before = head.clone();
            if let Some(next) = next {
                head.join(&next);
            }
            if head == before {
                join(&mut exit, counted.then_some(head));
                return exit;
            }
        }
    }
}

/// The ring of the slot that an operation fills.
fn filled(kernel: &Kernel, id: OpId) -> Option<Pipe> {
    let slot = kernel.op(id).args.first()?;
    if let Ty::Token(Token::Slot, pipe) = kernel.ty(*slot) { Some(pipe) } else { None }
}

/// The rings that a branch fills, in order, if it contains no other operations on rings, has one empty arm, and fills without loops or
/// nested branches.
fn only_fills(kernel: &Kernel, id: OpId) -> Option<Vec<Pipe>> {
    let op = kernel.op(id);
    let mut found = Vec::new();
    let mut arms = 0;
    for region in &op.regions {
        let before = found.len();
        for inner in &kernel.block(*region).ops {
            let op = kernel.op(*inner);
            match op.kind.family() {
                Family::Ttg(TtgOp::AsyncProduce { .. } | TtgOp::Fill(_)) => found.extend(filled(kernel, *inner)),
                Family::Ttg(TtgOp::Acquire(_) | TtgOp::Source(..) | TtgOp::SourceRows { .. }) => {}
                Family::Ttg(_) => return None,
                Family::Data(_) | Family::Local(_) if op.regions.is_empty() => {}
                Family::Flow(Flow::Yield) => {}
                Family::Data(_)
                | Family::Flow(
                    Flow::For(_) | Flow::Loop | Flow::If | Flow::Break(_) | Flow::Continue(_) | Flow::Return,
                )
                | Family::Local(_)
                | Family::Region(_)
                | Family::Nv(_)
                | Family::Amd(_) => return None,
            }
        }
        arms += usize::from(found.len() > before);
    }
    (arms == 1).then_some(found)
}
