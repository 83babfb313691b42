//! The region-hazard analysis: where threads of a program could meet in a region, a barrier stands between.
//!
//! The state is what has been touched since the last barrier, by region. A mark that writes what was touched, or reads what
//! was written, needs a barrier in front of it. At joins states unite; around loops they go until nothing changes. So on every
//! path between two marks that conflict there is a barrier. What one barrier settles asks for no second one: those that only
//! a guess about loops asked for are taken away again. Buffers conflict when their places overlap, whichever value lies there.
//!
//! Barriers go right in front of the mark: as late as possible, so that what stands before may overlap with waiting. Marks that
//! follow each other without an access between them hold together: an access touches what all of them say, when it happens.
//! Where control joins, what follows belongs to the marks of every way.
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
//!    was touched before, it stands in front of the roles; behind them, all that is marked in them counts as touched.
//! 3. *Two roles.* They run at the same time, and no barrier is of them both. What both touch is a ring
//!    ([`Region::Ring`](super::Region::Ring)), which a protocol of mbarriers or counters orders, or both only read it. Anything
//!    else is an error: nothing is placed, the marks stay, and [`super::verify`] says which. Tensors are excepted: the tile IR
//!    has looked at what roles do to them.
//!
//! A ring never conflicts with itself: no barrier comes between accesses that a protocol orders. It does conflict with the
//! same buffer marked as an ordinary one, and with others in its place: so its mbarriers are initialised, and its bytes used
//! again, on the other side of a barrier. Copies into a ring arrive by its protocol: whoever waits for all of its slots, as
//! a role does before it ends, has waited for them. Arrivals and waits at mbarriers and sequence counters are accesses to the
//! ring, and settle nothing else.
//!
//! Deliberately absent: fences between proxies (all accesses here are generic); waiting for copies, which the lowering does;
//! whether a protocol is right, which is decided where rings still have stages.

mod roles;
mod state;

use super::func::{Block, Func, Op, OpId};
use super::op::{OpKind, Role};
use state::{State, conflict, join};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the barriers of a function whose shared memory has its places, and removes the marks. Gives what is wrong: a mark
/// that conflicts with what was touched before, without a barrier between.
pub fn check(func: &mut Func) -> Option<String> {
    let meets = unordered(func).or_else(|| {
        let at = Run::new(func).conflicts(Some(&BTreeSet::new())).into_iter().next()?;
        Some((at, format!("`{:?}` at line {}", func.op(at).kind, func.op(at).loc.line)))
    });
    let keep: Vec<bool> = func.ops.iter().map(|op| !matches!(op.kind, OpKind::Access { .. })).collect();
    for block in &mut func.blocks {
        block.ops.retain(|op| keep[op.index()]);
    }
    meets.map(|(_, why)| why)
}

/// A mark in the code of a role that nothing orders with what others do, and why; in functions with roles only.
pub(super) fn unordered(func: &Func) -> Option<(OpId, String)> {
    if !func.ops.iter().any(|op| matches!(op.kind, OpKind::Roles(_))) {
        return None;
    }
    let mut run = Run::new(func);
    run.conflicts(None);
    run.unordered.or_else(|| roles::between(func))
}

struct Run<'a> {
    func: &'a Func,
    /// Marks with a barrier in front; if it is not known which, every mark that needs one has it.
    fixed: Option<BTreeSet<OpId>>,
    /// Marks that conflict with what was touched before.
    conflicts: BTreeSet<OpId>,
    loops: Vec<Around>,
    /// What may be pending at the head of each loop.
    heads: BTreeMap<OpId, State>,
    /// The role whose code is being walked.
    role: Option<Role>,
    /// The first operation found that no barrier can order, and why.
    unordered: Option<(OpId, String)>,
}

/// A loop that is being walked: what is pending where it goes on, and where it is left.
#[derive(Default)]
struct Around {
    next: Option<State>,
    exit: Option<State>,
}

impl Run<'_> {
    fn new(func: &Func) -> Run<'_> {
        Run {
            func,
            fixed: None,
            conflicts: BTreeSet::new(),
            loops: Vec::new(),
            heads: BTreeMap::new(),
            role: None,
            unordered: None,
        }
    }

    /// The marks that conflict with what was touched since the last barrier, when these have one in front, or all that conflict.
    fn conflicts(&mut self, fixed: Option<&BTreeSet<OpId>>) -> BTreeSet<OpId> {
        self.fixed = fixed.cloned();
        self.heads.clear();
        loop {
            let heads = self.heads.clone();
            self.conflicts.clear();
            self.block(self.func.body, State::default());
            if self.heads == heads {
                return std::mem::take(&mut self.conflicts);
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
                let meets = state.touched.iter().any(|other| conflict(self.func, touch, *other));
                if self.settle(id, meets) {
                    state.touched.clear();
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
                state.copy();
                Some(state)
            }
            OpKind::CopyWait(n) => {
                state.wait(*n);
                Some(state)
            }
            OpKind::Load { .. }
            | OpKind::Store { .. }
            | OpKind::Atomic { .. }
            | OpKind::CompareSwap(_)
            | OpKind::LoadMatrix { .. }
            | OpKind::CopyArrive { .. }
            | OpKind::MbarrierInit { .. }
            | OpKind::MbarrierInvalidate { .. }
            | OpKind::MbarrierArrive { .. }
            | OpKind::MbarrierWait
            | OpKind::StoreRelease { .. }
            | OpKind::LoadAcquire
            | OpKind::SequenceWait => {
                state.access();
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

    /// Notes that an operation needs a barrier in front; whether it has one.
    fn settle(&mut self, id: OpId, needs: bool) -> bool {
        if needs {
            self.conflicts.insert(id);
        }
        self.fixed.as_ref().map_or(needs, |fixed| fixed.contains(&id))
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
