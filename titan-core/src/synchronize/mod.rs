//! Barriers between the warps of a program, or of a role: where threads could otherwise meet in memory, one stands between.
//!
//! The state is what has been touched since the last barrier. An access that writes what was touched, or reads what was written,
//! needs a barrier in front of it: as late as possible, so that what stands before may overlap with waiting. At joins states
//! unite; around loops they go until nothing changes. So on every path between two accesses that conflict there is a barrier.
//! Barriers that another one makes needless are taken away again.
//!
//! Bytes of shared memory are told apart by the places of regions, by the tiles of a part, and by the slots of rings (`slots`):
//! a copy to a free slot does not conflict with a read of another slot. Asynchronous copies conflict with what was touched
//! before where they are issued, and read and write until they are waited for: a barrier between copy and wait settles nothing.
//!
//! ```text
//! for .. carry(%fill = 2, %read = 0)
//!     ttg.nv.cp_async.wait_group {n = 1}        the copies to slot L have written: each thread knows of its own
//!     ttg.nv.barrier.sync {id = 0, ..}          placed here: other threads' bytes of slot L are read next
//!     .. ttg.local.load of slot L
//!     .. ttg.local.copy_async to slot L + 2     of 3 slots: what was read there, L - 1, was read before the barrier
//!     ttg.nv.cp_async.commit_group
//! ```
//!
//! # Roles
//!
//! A role by itself is a program of its threads, whose barrier is a named one, or that of its warp if it has one warp. What is
//! outside of the roles and what is inside are ordered by the barrier of the program in front of the roles. Two roles run at the
//! same time, and no barrier is of them both: what both touch, mbarriers and counters order, which is not this module's to
//! judge. Outputs that several roles touch were judged where the kernel was verified.
//!
//! Deliberately absent: threads that only meet what they wrote themselves (they get a barrier too), fences between proxies, and
//! waits for copies.

mod regions;
mod slots;
mod state;

use crate::analysis::uses::Tree;
use crate::ir::{Block, BlockData, Claim, Kernel, LaidOut, NvGroup, NvOp, Op, OpId, OpKind, TtgOp};
use regions::Regions;
use slots::Slots;
use state::{State, Touch, join};
use std::collections::{BTreeMap, BTreeSet};

/// Places the barriers of a barrier program whose regions have their places. Gives how many.
pub fn synchronize(kernel: &mut Kernel) -> usize {
    let barriers = needed(kernel);
    let mut crews = BTreeMap::new();
    for id in &barriers {
        crews.insert(*id, None);
    }
    let roles = role_blocks(kernel);
    for (role, block) in &roles {
        kernel.walk_block(*block, &mut |id, _| {
            crews.entry(id).and_modify(|crew| *crew = Some(*role));
        });
    }
    let lanes = kernel.laid_out.as_deref().map_or(32, |laid| laid.lanes);
    let all = kernel.laid_out.as_deref().map_or(1, |laid| laid.warps);
    for (id, role) in &crews {
        let warps = role.map_or(all, |r: usize| kernel.roles.get(r).map_or(1, |r| r.warps));
        let kind = match role.and_then(|r| u8::try_from(r + 1).ok()) {
            Some(_) if warps == 1 => NvOp::WarpSync,
            Some(named) => NvOp::BarrierSync { id: named, threads: warps * lanes },
            None => NvOp::BarrierSync { id: 0, threads: warps * lanes },
        };
        insert_before(kernel, *id, OpKind::Nv(kind));
    }
    barriers.len()
}

/// The operations that conflict with what was touched before, with the barriers that stand there; and those that touch what a
/// copy may be touching, which a barrier does not help. Of the copies of rings the verifier knows more.
#[must_use]
pub fn unordered(kernel: &Kernel) -> (Vec<OpId>, Vec<OpId>) {
    let tree = Tree::new(kernel);
    let mut run = Run::new(kernel, &tree);
    let found = run.conflicts(Some(&BTreeSet::new()));
    (found.into_iter().collect(), run.flying.into_iter().collect())
}

/// The operations that get a barrier in front.
fn needed(kernel: &Kernel) -> BTreeSet<OpId> {
    let tree = Tree::new(kernel);
    let mut run = Run::new(kernel, &tree);
    let mut barriers = run.conflicts(None);
    // What one barrier settles may have asked for another when less was known of the loops.
    let settled: Vec<OpId> = barriers.difference(&run.conflicts(Some(&barriers))).copied().collect();
    for barrier in settled {
        barriers.remove(&barrier);
        if !run.conflicts(Some(&barriers)).is_subset(&barriers) {
            barriers.insert(barrier);
        }
    }
    hoist(kernel, &mut run, &mut barriers);
    barriers
}

/// Puts barriers of an arm in front of its branch, where others become needless by that: then there is one on both ways.
///
/// ```text
/// wait for the copies to a stage               wait for the copies to a stage
/// if more { barrier; copies to a free one }    barrier
/// barrier                                      if more { copies to a free one }
/// loads of the stage                           loads of the stage
/// ```
fn hoist(kernel: &Kernel, run: &mut Run<'_>, barriers: &mut BTreeSet<OpId>) {
    let mut branches = Vec::new();
    kernel.walk(&mut |id, op| {
        let inside = |block: &Block| kernel.block(*block).ops.iter().filter(|o| barriers.contains(o)).copied();
        if op.kind == OpKind::If {
            branches.push((id, op.regions.iter().flat_map(inside).collect::<Vec<OpId>>()));
        }
    });
    for (branch, own) in branches.into_iter().filter(|(_, own)| !own.is_empty()) {
        let mut tried = barriers.clone();
        tried.retain(|id| !own.contains(id));
        tried.insert(branch);
        let needing = run.conflicts(Some(&tried));
        if !needing.is_subset(&tried) {
            continue;
        }
        let settled: Vec<OpId> = tried.difference(&needing).copied().filter(|id| *id != branch).collect();
        for id in settled {
            tried.remove(&id);
            if !run.conflicts(Some(&tried)).is_subset(&tried) {
                tried.insert(id);
            }
        }
        if tried.len() < barriers.len() {
            *barriers = tried;
        }
    }
}

fn role_blocks(kernel: &Kernel) -> Vec<(usize, Block)> {
    let mut found = Vec::new();
    kernel.walk(&mut |_, op| {
        if op.kind == OpKind::Ttg(TtgOp::Roles) {
            found.extend(op.regions.iter().copied().enumerate());
        }
    });
    found
}

fn insert_before(kernel: &mut Kernel, at: OpId, kind: OpKind) {
    let new = OpId::new(kernel.ops.len());
    let loc = kernel.op(at).loc;
    kernel.ops.push(Op { kind, args: Vec::new(), results: Vec::new(), regions: Vec::new(), loc });
    for BlockData { ops, .. } in &mut kernel.blocks {
        if let Some(place) = ops.iter().position(|id| *id == at) {
            ops.insert(place, new);
            return;
        }
    }
}

/// A loop that is being walked: what may be pending where it goes on, and where it is left.
struct Around {
    op: OpId,
    next: Option<State>,
    exit: Option<State>,
}

struct Run<'k> {
    kernel: &'k Kernel,
    laid: Option<&'k LaidOut>,
    regions: Regions,
    slots: Slots<'k>,
    /// Operations with a barrier in front; if it is not known which, every one that needs it has it.
    fixed: Option<BTreeSet<OpId>>,
    /// Operations that conflict with what was touched before.
    found: BTreeSet<OpId>,
    /// Operations that touch what a copy may be touching.
    flying: BTreeSet<OpId>,
    loops: Vec<Around>,
    /// What may be pending at the head of each loop.
    heads: BTreeMap<OpId, State>,
    /// The role whose code is being walked.
    role: Option<usize>,
    /// All that the role touches.
    of_role: BTreeSet<Touch>,
}

impl<'k> Run<'k> {
    fn new(kernel: &'k Kernel, tree: &'k Tree) -> Self {
        Run {
            kernel,
            laid: kernel.laid_out.as_deref(),
            regions: Regions::new(kernel),
            slots: Slots::new(kernel, tree),
            fixed: None,
            found: BTreeSet::new(),
            flying: BTreeSet::new(),
            loops: Vec::new(),
            heads: BTreeMap::new(),
            role: None,
            of_role: BTreeSet::new(),
        }
    }

    /// The operations that conflict with what was touched since the last barrier, when these have one in front, or all that
    /// conflict.
    fn conflicts(&mut self, fixed: Option<&BTreeSet<OpId>>) -> BTreeSet<OpId> {
        self.fixed = fixed.cloned();
        self.heads.clear();
        loop {
            let heads = self.heads.clone();
            self.found.clear();
            self.flying.clear();
            self.block(self.kernel.body, State::default());
            if self.heads == heads {
                return std::mem::take(&mut self.found);
            }
        }
    }

    /// What may be pending after a block, `None` if its end is not reached.
    fn block(&mut self, block: Block, entry: State) -> Option<State> {
        let kernel = self.kernel;
        let mut state = entry;
        for id in &kernel.block(block).ops {
            state = self.op(*id, kernel.op(*id), state)?;
        }
        Some(state)
    }

    /// Notes that an operation needs a barrier in front; whether it has one.
    fn settle(&mut self, id: OpId, needs: bool) -> bool {
        if needs {
            self.found.insert(id);
        }
        self.fixed.as_ref().map_or(needs, |fixed| fixed.contains(&id))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "every other operation is what its row of traffic says")]
    fn op(&mut self, id: OpId, op: &Op, mut state: State) -> Option<State> {
        match &op.kind {
            OpKind::For(_) | OpKind::Loop => self.repeat(id, op, &state),
            OpKind::If => {
                // A barrier that an arm needs may stand in front of both.
                if self.settle(id, false) {
                    state.meet();
                }
                let mut after = None;
                for arm in &op.regions {
                    if let Some(out) = self.block(*arm, state.clone()) {
                        join(&mut after, out);
                    }
                }
                if op.regions.len() < 2 {
                    join(&mut after, state);
                }
                after
            }
            OpKind::Ttg(TtgOp::Roles) => Some(self.parts(id, op, state)),
            OpKind::Break(n) | OpKind::Continue(n) => {
                let leaves = matches!(op.kind, OpKind::Break(_));
                let around = self.loops.len().checked_sub(1 + *n as usize)?;
                // What loops inside of that one carry is over too.
                for inner in self.loops[around + 1..].iter().rev() {
                    state = state.renamed(&|slot| self.slots.along(inner.op, None, true, slot), &[]);
                }
                let looped = self.loops[around].op;
                let names = self.slots.handed(looped, Some(id), leaves);
                let state = state.renamed(&|slot| self.slots.along(looped, Some(id), leaves, slot), &names);
                let around = self.loops.get_mut(around)?;
                join(if leaves { &mut around.exit } else { &mut around.next }, state);
                None
            }
            OpKind::Return => {
                self.ends(id, &state);
                None
            }
            OpKind::Ttg(TtgOp::Finalize) => {
                self.ends(id, &state);
                Some(state)
            }
            OpKind::Yield => Some(state),
            OpKind::Ttg(TtgOp::Claim(claim, _)) => {
                if let [region, slot, ..] = op.args[..]
                    && let Some(ring) = self.regions.of(region)
                {
                    match claim {
                        Claim::Acquired => state.acquired(ring, slot),
                        Claim::Ready => state.is_ready(ring, slot),
                        Claim::Released => state.released(ring, slot),
                        Claim::Filled | Claim::Next => {}
                    }
                }
                Some(state)
            }
            OpKind::Nv(NvOp::Commit { group: NvGroup::CpAsync, .. }) => {
                state.commit();
                Some(state)
            }
            OpKind::Nv(NvOp::WaitGroup { group: NvGroup::CpAsync, n, .. }) => {
                self.arrive(state.wait(*n as usize), &mut state);
                Some(state)
            }
            OpKind::Nv(NvOp::BarrierSync { .. } | NvOp::WarpSync) if self.is_whole(&op.kind) => {
                state.meet();
                Some(state)
            }
            _ => {
                self.access(id, op, &mut state);
                Some(state)
            }
        }
    }

    /// A role or the program ends: nothing that it has started is under way.
    fn ends(&mut self, id: OpId, state: &State) {
        if state.has_copies(&self.regions.claimed) {
            self.flying.insert(id);
        }
    }

    /// Whether all threads that run the code come to this barrier.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other operation is a barrier of all")]
    fn is_whole(&self, kind: &OpKind) -> bool {
        let (Some(laid), OpKind::Nv(nv)) = (self.laid, kind) else { return false };
        let warps = self.role.map_or(laid.warps, |r| self.kernel.roles.get(r).map_or(u32::MAX, |r| r.warps));
        match nv {
            NvOp::WarpSync => warps == 1,
            NvOp::BarrierSync { threads, .. } => *threads == warps.saturating_mul(laid.lanes),
            _ => false,
        }
    }

    fn access(&mut self, id: OpId, op: &Op, state: &mut State) {
        let touches = self.regions.touches(self.kernel, &self.slots, op);
        touches.iter().for_each(|touch| self.note_role(*touch));
        let is_ours = |(bytes, _): &Touch| self.role.is_none() || !self.is_joined(*bytes);
        let ours: Vec<Touch> = touches.iter().copied().filter(is_ours).collect();
        let needs = ours.iter().any(|touch| state.conflicts(*touch));
        if ours.iter().any(|touch| state.is_under_way(*touch, &self.regions.claimed)) {
            self.flying.insert(id);
        }
        if self.settle(id, needs) {
            state.meet();
        }
        if matches!(op.kind, OpKind::Print(_)) && !ours.is_empty() {
            // Its threads meet in between.
            state.meet();
        }
        if op.kind.completion() != crate::ir::Completion::Immediate {
            touches.iter().for_each(|touch| state.copy(*touch));
        }
        // Who comes later must not touch what a copy may write at any time.
        ours.into_iter().for_each(|touch| state.touch(touch));
    }

    /// Copies are done: they may have touched memory until now.
    fn arrive(&mut self, done: BTreeSet<Touch>, state: &mut State) {
        for touch in done {
            self.note_role(touch);
            if self.role.is_none() || !self.is_joined(touch.0) {
                state.touch(touch);
            }
        }
    }

    /// Notes what a role touches, if one runs here.
    fn note_role(&mut self, (bytes, writes): Touch) {
        if self.role.is_some() {
            self.of_role.insert((bytes.renamed(&|_| None), writes));
        }
    }

    fn is_joined(&self, bytes: state::Bytes) -> bool {
        matches!(bytes, state::Bytes::Shared { region, .. } if self.regions.joined.contains(&region))
    }

    /// The roles of a program: what they touch conflicts with what was touched before, and is touched after. Copies may be under
    /// way when roles begin and when they end: each role has those of its threads.
    fn parts(&mut self, id: OpId, op: &Op, mut state: State) -> State {
        let (mut all, mut after) = (BTreeSet::new(), None);
        for (role, block) in op.regions.iter().enumerate() {
            self.role = Some(role);
            self.of_role.clear();
            if let Some(out) = self.block(*block, state.under_way()) {
                join(&mut after, out.renamed(&|_| None, &[]));
            }
            all.append(&mut self.of_role);
        }
        self.role = None;
        after.into_iter().for_each(|out| state.take_under_way(out));
        let needs = all.iter().any(|touch| state.conflicts(*touch));
        if self.settle(id, needs) {
            state.meet();
        }
        all.into_iter().for_each(|touch| state.touch(touch));
        state
    }

    fn repeat(&mut self, id: OpId, op: &Op, state: &State) -> Option<State> {
        let mut entry = self.heads.remove(&id);
        let names = self.slots.entered(id);
        join(&mut entry, state.renamed(&|slot| self.slots.entering(id, slot), &names));
        let entry = entry.unwrap_or_default();
        self.loops.push(Around { op: id, next: None, exit: None });
        if let Some(body) = op.regions.first() {
            self.block(*body, entry.clone());
        }
        let Around { next, mut exit, .. } = self.loops.pop()?;
        let mut head = Some(entry);
        if let Some(next) = next {
            join(&mut head, next);
        }
        let head = head.unwrap_or_default();
        // A `for` also ends at its head.
        if matches!(op.kind, OpKind::For(_)) {
            let names = self.slots.handed(id, None, true);
            join(&mut exit, head.renamed(&|slot| self.slots.along(id, None, true, slot), &names));
        }
        self.heads.insert(id, head);
        exit
    }
}
