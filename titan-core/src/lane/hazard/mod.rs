//! The region-hazard analysis: where threads of a program could meet in a region, a barrier stands between.
//!
//! The state is what has been touched since the last barrier, by region. A mark that writes what was touched, or reads what
//! was written, needs a barrier in front of it. At joins states unite; around loops they go until nothing changes. So on every
//! path between two marks that conflict there is a barrier, or the check complains. Buffers conflict when their places overlap,
//! whichever value lies there.
//!
//! Marks that follow each other without an access between them hold together: an access touches what all of them say, when it
//! happens. Where control joins, what follows belongs to the marks of every way. A barrier or a wait for copies ends what was
//! marked before: an access to shared memory behind it needs a mark of its own.
//!
//! Asynchronous copies write when they are waited for: a barrier between the copy and the wait settles nothing.
//!
//! # Roles
//!
//! Where warps have roles ([`OpKind::Roles`]), there are three cases:
//!
//! 1. *A role by itself.* Its code is a program of its threads, whose barrier is the role's: that of the warp if it has one warp,
//!    else its named one, with its threads. The program's barrier must not stand there.
//! 2. *What is outside and what is inside.* Only the program's barrier orders them. If anything in any role conflicts with what
//!    was touched before, it must stand in front of the roles; behind them, all that is marked in them counts as touched.
//! 3. *Two roles.* They run at the same time, and no barrier is of them both. What both touch is a ring
//!    ([`Region::Ring`](super::Region::Ring)), which a protocol of mbarriers or counters orders, or both only read it. Anything
//!    else is an error, which [`super::verify`] says too while the marks are there. Tensors are excepted: the tile IR has looked
//!    at what roles do to them.
//!
//! A ring never conflicts with itself: no barrier comes between accesses that a protocol orders. It does conflict with the
//! same buffer marked as an ordinary one, and with others in its place: so its mbarriers are initialised, and its bytes used
//! again, on the other side of a barrier. Copies into a ring arrive by its protocol: whoever waits for all of its slots, as
//! a role does before it ends, has waited for them. Arrivals and waits at mbarriers and sequence counters are accesses to the
//! ring, and settle nothing else.
//!
//! Deliberately absent: placing barriers, which is done in the barrier program (`crate::synchronize`), and what slots of a ring
//! are told apart by there; fences between proxies (all accesses here are generic); waiting for copies, which the lowering does;
//! whether a protocol is right, which is decided where rings still have stages.

mod roles;
mod state;

use super::func::{Block, Func, Op, OpId};
use super::op::{OpKind, Role, Space};
use state::{State, conflict, join};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the barriers of a function whose shared memory has its places, and removes the marks. Gives what is wrong: a mark
/// that conflicts with what was touched before, without a barrier between; or an access to shared memory that no mark names.
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
        .or_else(|| run.unmarked.map(|id| format!("{} touches shared memory without a mark", at(id))))
}

/// A mark in the code of a role that nothing orders with what others do, and why; in functions with roles only.
pub(super) fn unordered(func: &Func) -> Option<(OpId, String)> {
    if !func.ops.iter().any(|op| matches!(op.kind, OpKind::Roles(_))) {
        return None;
    }
    Run::over(func).unordered.or_else(|| roles::between(func))
}

struct Run<'a> {
    func: &'a Func,
    /// Marks, and roles, that conflict with what was touched before.
    conflicts: BTreeSet<OpId>,
    loops: Vec<Around>,
    /// What may be pending at the head of each loop.
    heads: BTreeMap<OpId, State>,
    /// The role whose code is being walked.
    role: Option<Role>,
    /// The first operation found that no barrier can order, and why.
    unordered: Option<(OpId, String)>,
    /// The first access to shared memory found that no mark names.
    unmarked: Option<OpId>,
}

/// A loop that is being walked: what is pending where it goes on, and where it is left.
#[derive(Default)]
struct Around {
    next: Option<State>,
    exit: Option<State>,
}

impl Run<'_> {
    /// What is wrong with a function.
    fn over(func: &Func) -> Run<'_> {
        let mut run = Run {
            func,
            conflicts: BTreeSet::new(),
            loops: Vec::new(),
            heads: BTreeMap::new(),
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

    /// What is pending after a block, `None` if its end is not reached.
    fn block(&mut self, block: Block, entry: State) -> Option<State> {
        let func = self.func;
        let mut state = entry;
        for id in &func.block(block).ops {
            state = self.op(*id, func.op(*id), state)?;
        }
        Some(state)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only marks, barriers and control change what is pending")]
    fn op(&mut self, id: OpId, op: &Op, mut state: State) -> Option<State> {
        match &op.kind {
            OpKind::Access { region, write } => {
                let touch = (*region, *write);
                if state.touched.iter().any(|other| conflict(self.func, touch, *other)) {
                    self.conflicts.insert(id);
                }
                state.mark(touch);
                Some(state)
            }
            kind @ (OpKind::Barrier | OpKind::NamedBarrier { .. } | OpKind::WarpBarrier) => {
                if self.is_whole(kind) {
                    // What was marked before has been touched before.
                    state.touched.clear();
                    state.close();
                }
                Some(state)
            }
            OpKind::CopyAsync { .. } => {
                self.named(id, state.copy());
                Some(state)
            }
            OpKind::CopyWait(n) => {
                state.wait(*n);
                state.close();
                Some(state)
            }
            OpKind::Load { space, .. }
            | OpKind::Store { space, .. }
            | OpKind::Atomic { space, .. }
            | OpKind::CompareSwap(space) => {
                let marked = state.access();
                self.named(id, marked || *space == Space::Global);
                Some(state)
            }
            OpKind::LoadMatrix { .. }
            | OpKind::CopyArrive { .. }
            | OpKind::MbarrierInit { .. }
            | OpKind::MbarrierInvalidate { .. }
            | OpKind::MbarrierArrive { .. }
            | OpKind::MbarrierWait
            | OpKind::StoreRelease { .. }
            | OpKind::LoadAcquire
            | OpKind::SequenceWait => {
                self.named(id, state.access());
                Some(state)
            }
            OpKind::If => {
                let mut after = None;
                for arm in &op.regions {
                    if let Some(out) = self.block(*arm, state.clone()) {
                        join(&mut after, out);
                    }
                }
                after
            }
            OpKind::Roles(roles) => self.split(id, roles, op, state),
            OpKind::For | OpKind::Loop => self.repeat(id, op, state),
            OpKind::Break(n) | OpKind::Continue(n) => {
                let around = self.loops.len().checked_sub(1 + *n as usize).and_then(|at| self.loops.get_mut(at))?;
                join(if matches!(op.kind, OpKind::Break(_)) { &mut around.exit } else { &mut around.next }, state);
                None
            }
            OpKind::Return => None,
            _ => Some(state),
        }
    }

    /// Notes whether a mark names what an operation touches.
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
        // A `for` also ends at its head.
        if op.kind == OpKind::For {
            join(&mut exit, head.clone());
        }
        self.heads.insert(id, head);
        exit
    }
}
