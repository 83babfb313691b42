//! The region-hazard analysis: conflicting accesses of threads to a region are separated by a barrier.
//!
//! The state is the set of accesses since the last barrier, by region. A mark that conflicts with one of them needs a barrier before it.
//! States are united at joins, and iterated to a fixed point around loops. So there is a barrier on every path between two conflicting
//! marks, or the check fails. Buffers conflict if their byte ranges overlap.
//!
//! Consecutive marks without an access in between form a row: an access is to all of their regions. After a join, accesses belong to the
//! marks of every path. A barrier or a wait for copies, stores or MMAs ends the validity of marks: a later access to shared memory needs a
//! new mark.
//!
//! Asynchronous copies write until they are waited for: a barrier between the copy and the wait does not order them.
//!
//! # Roles
//!
//! Where warps have roles ([`OpKind::Roles`]), there are three cases:
//!
//! 1. *Within a role.* Its code is treated as a program of its threads, whose barrier is the warp barrier if it has one warp,
//!    otherwise its named barrier. The program's barrier must not occur there.
//! 2. *Outside and inside roles.* Only the program's barrier orders such accesses. If anything in any role conflicts with an earlier
//!    access, the barrier must be before the roles; after them, everything that is marked in them counts as accessed.
//! 3. *Between two roles.* They run concurrently and have no common barrier. Memory that both access must be a ring
//!    ([`Region::Ring`](super::Region::Ring)), ordered by a protocol of mbarriers or counters, or be read only. Anything
//!    else is an error, which [`super::verify`] reports too while the marks exist. Tensors are excepted: accesses of roles to them
//!    were checked in the tile IR.
//!
//! A ring never conflicts with itself: its protocol orders its accesses. It does conflict with the same buffer marked as an ordinary one,
//! and with other buffers at the same addresses; so a barrier must separate it from the initialisation of its mbarriers, and from other
//! uses of its bytes. Copies into a ring complete by its protocol: a wait for all of its slots, as a role executes before it ends, includes
//! them. Arrivals and waits at mbarriers and sequence counters are accesses to the ring, and order nothing else.
//!
//! Deliberately absent: placement of barriers, which happens in the barrier program (`crate::synchronize`), and the distinction of
//! ring slots; fences between proxies (all accesses here are generic); waits for copies, which the lowering inserts; the correctness
//! of protocols, which is checked while rings still have stages.

mod roles;
mod state;

use super::family::{Copying, Family, Flow, Grouped};
use super::func::{Block, Func, Op, OpId};
use super::op::{OpKind, Role, Space};
use crate::collections::{SortedMap, SortedSet};
use state::{State, conflict, join};

/// Checks the barriers of a function with allocated shared memory, and removes the marks. Returns the first error: a mark that
/// conflicts with an earlier access without a barrier in between, or an access to shared memory without a mark.
pub fn check(func: &mut Func) -> Option<String> {
    let said = wrong(func);
    let keep: Vec<bool> = func.ops.iter().map(|op| !matches!(op.kind, OpKind::Access { .. })).collect();
    for block in &mut func.blocks {
        block.ops.retain(|op| keep[op.index()]);
    }
    said
}

fn wrong(func: &Func) -> Option<String> {
    let run = Run::over(func);
    let at = |id: OpId| format!("`{:?}` at line {}", func.op(id).kind, func.op(id).loc.line);
    let unordered = run.unordered.or_else(|| roles::between(func)).map(|(_, why)| why);
    let meets = || run.conflicts.first().map(|id| at(*id));
    unordered
        .or_else(meets)
        .or_else(|| run.unmarked.map(|id| format!("{} accesses shared memory without a mark", at(id))))
}

/// A mark in the code of a role that is not ordered with accesses outside of the role, and the reason. `None` in functions without roles.
pub(super) fn unordered(func: &Func) -> Option<(OpId, String)> {
    if !func.ops.iter().any(|op| matches!(op.kind, OpKind::Roles(_))) {
        return None;
    }
    Run::over(func).unordered.or_else(|| roles::between(func))
}

struct Run<'a> {
    func: &'a Func,
    /// Marks and role operations that conflict with an earlier access.
    conflicts: SortedSet<OpId>,
    loops: Vec<Around>,
    /// The state at the head of each loop.
    heads: SortedMap<OpId, State>,
    /// The role whose code is being walked.
    role: Option<Role>,
    /// The first operation that no barrier can order, and the reason.
    unordered: Option<(OpId, String)>,
    /// The first access to shared memory without a mark.
    unmarked: Option<OpId>,
}

/// A loop that is being walked, with the states at its back edges and exits.
#[derive(Default)]
struct Around {
    next: Option<State>,
    exit: Option<State>,
}

impl Run<'_> {
    /// Runs the analysis over a function.
    fn over(func: &Func) -> Run<'_> {
        let mut run = Run {
            func,
            conflicts: SortedSet::new(),
            loops: Vec::new(),
            heads: SortedMap::new(),
            role: None,
            unordered: None,
            unmarked: None,
        };
        loop {
            let heads = run.heads.clone();
            run.block(func.body, State::default());
            if run.heads == heads {
                return run;
            }
        }
    }

    /// The state after a block; `None` if its end is unreachable.
    fn block(&mut self, block: Block, entry: State) -> Option<State> {
        let func = self.func;
        let mut state = entry;
        for id in &func.block(block).ops {
            state = self.op(*id, func.op(*id), state)?;
        }
        Some(state)
    }

    /// The state after an operation that executes one of its regions.
    fn either(&mut self, op: &Op, state: &State) -> Option<State> {
        let mut after = None;
        for arm in &op.regions {
            if let Some(out) = self.block(*arm, state.clone()) {
                join(&mut after, out);
            }
        }
        after
    }

    fn op(&mut self, id: OpId, op: &Op, mut state: State) -> Option<State> {
        match op.kind.family() {
            Family::Mark { region, write } => {
                let touch = (region, write);
                if state.touched.iter().any(|other| conflict(self.func, touch, *other)) {
                    self.conflicts.insert(id);
                }
                state.mark(touch);
                Some(state)
            }
            Family::Barrier(barrier) => {
                if self.is_whole(barrier) {
                    // The barrier orders the accesses of all earlier marks.
                    state.touched.clear();
                    state.close();
                }
                Some(state)
            }
            // The mbarrier of a bulk copy orders its accesses.
            Family::Copy(Copying::Fill) => {
                self.named(id, state.copy());
                Some(state)
            }
            Family::Group(Grouped::Mma(_)) => {
                self.named(id, state.multiply());
                Some(state)
            }
            Family::Group(Grouped::Commit) => {
                state.mmas.commit();
                Some(state)
            }
            Family::Group(Grouped::Await(n)) => {
                state.await_mmas(n);
                state.close();
                Some(state)
            }
            Family::Copy(Copying::Drain) => {
                self.named(id, state.store());
                Some(state)
            }
            Family::Copy(Copying::CommitDrains) => {
                state.stores.commit();
                Some(state)
            }
            Family::Copy(Copying::AwaitDrains(n)) => {
                state.await_stores(n);
                state.close();
                Some(state)
            }
            Family::Copy(Copying::AwaitFills(n)) => {
                state.wait(n);
                state.close();
                Some(state)
            }
            Family::Access { space, .. } => {
                let marked = state.access();
                self.named(id, marked || space == Space::Global);
                Some(state)
            }
            Family::Matrix { .. } | Family::Protocol => {
                self.named(id, state.access());
                Some(state)
            }
            Family::Flow(Flow::If) => self.either(op, &state),
            Family::Flow(Flow::Roles(roles)) => self.split(id, roles, op, state),
            Family::Flow(Flow::For | Flow::Loop) => self.repeat(id, op, state),
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let around = self.loops.len().checked_sub(1 + n as usize).and_then(|at| self.loops.get_mut(at))?;
                join(if matches!(op.kind, OpKind::Break(_)) { &mut around.exit } else { &mut around.next }, state);
                None
            }
            Family::Flow(Flow::Return) => None,
            // These neither access memory nor wait for accesses. That fences and barriers of a cluster order something is not used here.
            Family::Pure
            | Family::Warp
            | Family::Copy(Copying::CommitFills)
            | Family::Order
            | Family::Group(Grouped::Plain)
            | Family::Flow(Flow::Yield) => Some(state),
        }
    }

    /// Records an access to shared memory that no mark covers.
    fn named(&mut self, id: OpId, marked: bool) {
        if !marked {
            self.unmarked.get_or_insert(id);
        }
    }

    fn repeat(&mut self, id: OpId, op: &Op, state: State) -> Option<State> {
        let mut entry = self.heads.remove(&id);
        join(&mut entry, state);
        let entry = entry.unwrap_or_default();
        self.loops.push(Around::default());
        if let Some(body) = op.regions.first() {
            self.block(*body, entry.clone());
        }
        let Around { next, mut exit } = self.loops.pop().unwrap_or_default();
        let mut head = Some(entry);
        if let Some(next) = next {
            join(&mut head, next);
        }
        let head = head.unwrap_or_default();
        // A `for` exits when the bounds are reached, which is at its head.
        if op.kind == OpKind::For {
            join(&mut exit, head.clone());
        }
        self.heads.insert(id, head);
        exit
    }
}
