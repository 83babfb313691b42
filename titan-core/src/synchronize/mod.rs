//! Inserts barriers between the warps of a program, or of a role, so that conflicting accesses of its threads are ordered.
//!
//! The state is the set of accesses since the last barrier. An access that conflicts with one of them needs a barrier before it, which is
//! inserted as late as possible, so that the code before may overlap with waiting. States are united at joins, and iterated to a fixed
//! point around loops. So there is a barrier on every path between two conflicting accesses. Barriers that another one makes redundant are
//! removed again.
//!
//! Bytes of shared memory are distinguished by the addresses of regions, by the tiles of a part, and by the slots of rings (`slots`): a
//! copy to a free slot does not conflict with a read of another slot. An asynchronous copy conflicts with earlier accesses when it is
//! issued, and reads and writes until it has been waited for: a barrier between copy and wait does not order it.
//!
//! ```text
//! for .. carry(%fill = 2, %read = 0)
//!     ttg.nv.cp_async.wait_group {n = 1}        the copies to slot L have written; each thread has waited for its own
//!     ttg.nv.barrier.sync {id = 0, ..}          placed here: other threads' bytes of slot L are read next
//!     .. ttg.local.load of slot L
//!     .. ttg.local.copy_async to slot L + 2     of 3 slots: what was read there, L - 1, was read before the barrier
//!     ttg.nv.cp_async.commit_group
//! ```
//!
//! # Roles
//!
//! A role is treated as a program of its own threads, whose barrier is a named barrier, or the warp barrier if the role has one warp.
//! Accesses outside and inside of the roles are ordered by the program's barrier before the roles. Two roles run concurrently and have no
//! common barrier: accesses of both to the same bytes are ordered by mbarriers and counters, which other rules check. Outputs that several
//! roles access were checked when the kernel was verified.
//!
//! Deliberately absent: accesses of one thread to bytes that it wrote itself (these get a barrier too), fences between proxies, and waits
//! for copies.

mod numbered;
mod regions;
mod slots;
mod state;
mod tiles;

use crate::analysis::uses::Tree;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{
    Block, BlockData, Claim, Class, Completion, Family, Flow, Kernel, LaidOut, NvGroup, NvOp, Op, OpId, OpKind, TtgOp,
    Value,
};
use numbered::{Number, Numbered, Passage};
use regions::Regions;
use slots::{Slot, Slots};
use state::{MostInFlight, State, Turn, join};
use std::rc::Rc;

/// Inserts the barriers of a barrier program whose regions are allocated. Returns the number of barriers.
pub fn synchronize(kernel: &mut Kernel) -> usize {
    let barriers = needed(kernel);
    let mut warp_sets = SortedMap::new();
    for id in &barriers {
        warp_sets.insert(*id, None);
    }
    let roles = role_blocks(kernel);
    for (role, block) in &roles {
        kernel.walk_block(*block, &mut |id, _| {
            warp_sets.entry(id).and_modify(|warp_set| *warp_set = Some(*role));
        });
    }
    let lanes = kernel.laid_out.as_deref().map_or(32, |laid| laid.lanes);
    let all = kernel.laid_out.as_deref().map_or(1, |laid| laid.warps);
    for (id, role) in &warp_sets {
        let warps = role.map_or(all, |r: usize| kernel.roles.get(r).map_or(1, |r| r.warps));
        // A role has threads of its own, so its barrier counts only these. Barrier 0 is the program's.
        let kind = match role.and_then(|r| u8::try_from(r + 1).ok()) {
            Some(_) if warps == 1 => NvOp::WarpSync,
            Some(named) => NvOp::BarrierSync { id: named, threads: warps * lanes },
            None => NvOp::BarrierSync { id: 0, threads: warps * lanes },
        };
        insert_before(kernel, *id, OpKind::Nv(kind));
    }
    barriers.len()
}

/// The operations that need a barrier before them.
fn needed(kernel: &Kernel) -> SortedSet<OpId> {
    let tree = Tree::new(kernel);
    let mut run = Run::new(kernel, &tree);
    // First, every operation that conflicts with an access since the last barrier gets a barrier, which is put there at once, so that
    // later operations see it. The result is sufficient, but depends on the order in which the walk met the conflicts: a barrier may have
    // been inserted before the states of loops reached their fixed point, and be redundant now.
    let mut barriers = run.conflicts(None);
    let settled: Vec<OpId> = barriers.difference(&run.conflicts(Some(&barriers))).copied().collect();
    // Each of the redundant ones is removed alone, since two of them may be redundant only because of each other. It stays out if all
    // conflicts of the rest are at operations that have a barrier: then no path has lost its order.
    for barrier in settled {
        barriers.remove(&barrier);
        if !run.conflicts(Some(&barriers)).is_subset(&barriers) {
            barriers.insert(barrier);
        }
    }
    hoist(kernel, &mut run, &mut barriers);
    barriers
}

/// Moves the barrier of an arm before its branch if that makes others redundant, because both paths then have one.
///
/// ```text
/// wait for the copies to a stage               wait for the copies to a stage
/// if more { barrier; copies to a free one }    barrier
/// barrier                                      if more { copies to a free one }
/// loads of the stage                           loads of the stage
/// ```
fn hoist(kernel: &Kernel, run: &mut Run<'_>, barriers: &mut SortedSet<OpId>) {
    let mut branches = Vec::new();
    kernel.walk(&mut |id, op| {
        let inside = |block: &Block| kernel.block(*block).ops.iter().filter(|o| barriers.contains(o)).copied();
        if op.kind == OpKind::If {
            branches.push((id, op.regions.iter().flat_map(inside).collect::<Vec<OpId>>()));
        }
    });
    for (branch, own) in branches.into_iter().filter(|(_, own)| !own.is_empty()) {
        // A barrier before the branch orders more than the ones in its arms, so that the attempt cannot be wrong; it can only be of no use.
        // It is kept if it leaves fewer barriers, each of which is needed, and so the loop ends: every branch is tried once.
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
    kernel.ops.push(Op {
        kind,
        args: Vec::new(),
        results: Vec::new(),
        regions: Vec::new(),
        planned: None,
        peeled: false,
        unmasked: false,
        origin: None,
        loc,
    });
    for BlockData { ops, .. } in &mut kernel.blocks {
        if let Some(place) = ops.iter().position(|id| *id == at) {
            ops.insert(place, new);
            return;
        }
    }
}

/// A loop that is being walked, with the states at its back edges and at its exits.
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
    numbered: Numbered,
    /// For each loop over tiles, the outputs of which its iterations write different elements.
    divided: SortedMap<OpId, SortedSet<usize>>,
    /// For each class of commit groups, the greatest number of groups that a wait leaves in flight.
    most_in_flight: MostInFlight,
    /// The accesses of the operations that were walked.
    touches: Vec<Option<Rc<[Number]>>>,
    /// The operations with a barrier before them; `None`: every operation that needs a barrier has one.
    fixed: Option<SortedSet<OpId>>,
    /// The operations that conflict with earlier accesses.
    found: SortedSet<OpId>,
    loops: Vec<Around>,
    /// The state at the head of each loop.
    heads: SortedMap<OpId, State>,
    /// The role whose code is being walked.
    role: Option<usize>,
    /// All accesses of the role.
    of_role: SortedSet<Number>,
}

impl<'k> Run<'k> {
    fn new(kernel: &'k Kernel, tree: &'k Tree) -> Self {
        Run {
            kernel,
            laid: kernel.laid_out.as_deref(),
            regions: Regions::new(kernel),
            slots: Slots::new(kernel, tree),
            numbered: Numbered::default(),
            divided: tiles::divided(kernel),
            most_in_flight: MostInFlight::of(kernel),
            touches: vec![None; kernel.ops.len()],
            fixed: None,
            found: SortedSet::new(),
            loops: Vec::new(),
            heads: SortedMap::new(),
            role: None,
            of_role: SortedSet::new(),
        }
    }

    /// The operations that conflict with an access since the last barrier, given the barriers in `fixed`; without `fixed`, every
    /// conflicting operation gets a barrier.
    fn conflicts(&mut self, fixed: Option<&SortedSet<OpId>>) -> SortedSet<OpId> {
        self.fixed = fixed.cloned();
        self.heads.clear();
        // The whole kernel is walked again until the states at the heads of all loops stay the same. They only grow: `repeat` joins what
        // reaches a head with what was known of it. Accesses, names of slots and ages of groups are finite in number, so this ends. What is
        // found in the last walk holds for any number of iterations, since the state at each head then includes that at its back edges.
        loop {
            let heads = self.heads.clone();
            self.found.clear();
            self.block(self.kernel.body, State::default());
            if self.heads == heads {
                return std::mem::take(&mut self.found);
            }
        }
    }

    /// The state after a block; `None` if its end is unreachable.
    fn block(&mut self, block: Block, entry: State) -> Option<State> {
        let kernel = self.kernel;
        let mut state = entry;
        for id in &kernel.block(block).ops {
            state = self.op(*id, kernel.op(*id), state)?;
        }
        Some(state)
    }

    /// Records whether an operation needs a barrier before it; returns whether it has one.
    fn settle(&mut self, id: OpId, needs: bool) -> bool {
        if needs {
            self.found.insert(id);
        }
        self.fixed.as_ref().map_or(needs, |fixed| fixed.contains(&id))
    }

    fn op(&mut self, id: OpId, op: &Op, mut state: State) -> Option<State> {
        match op.kind.family() {
            Family::Flow(Flow::For(_) | Flow::Loop) => self.repeat(id, op, &state),
            Family::Flow(Flow::If) => {
                // A branch accesses nothing itself; but `hoist` tries whether a barrier before it replaces those of its arms.
                if self.settle(id, false) {
                    // Whatever came before the branch is ordered for both arms and for what follows them.
                    state.barrier();
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
            Family::Ttg(TtgOp::Roles) => Some(self.parts(id, op, state)),
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let leaves = matches!(op.kind, OpKind::Break(_));
                let around = self.loops.len().checked_sub(1 + n as usize)?;
                // This leaves the loops nested in that loop too.
                // From the innermost loop outwards: at each, names of slots of that loop get the names that they have
                // after it.
                let inner: Vec<OpId> = self.loops[around + 1..].iter().rev().map(|inner| inner.op).collect();
                for inner in inner {
                    state = self.renamed(&state, Passage::Edge(inner, None, true), &[]);
                }
                let looped = self.loops[around].op;
                let names = self.slots.handed(looped, Some(id), leaves);
                let state = self.renamed(&state, Passage::Edge(looped, Some(id), leaves), &names);
                let around = self.loops.get_mut(around)?;
                join(if leaves { &mut around.exit } else { &mut around.next }, state);
                None
            }
            Family::Flow(Flow::Return) => None,
            Family::Ttg(TtgOp::Finalize) | Family::Flow(Flow::Yield) => Some(state),
            Family::Ttg(TtgOp::Claim(claim, _)) => {
                if let [region, slot, ..] = op.args[..]
                    && let Some(ring) = self.regions.of(region)
                {
                    match claim {
                        Claim::Acquired => state.acquired(&self.numbered, ring, slot),
                        Claim::Ready => state.is_ready(&self.numbered, ring, slot),
                        Claim::Released => state.released(&self.numbered, ring, slot),
                        Claim::Filled | Claim::Next => {}
                    }
                }
                Some(state)
            }
            // A thread that waits for its groups knows that *its* copies have happened, and nothing about those of other threads. So what the
            // groups access counts as accessed at the wait, and only the next barrier orders it with the accesses of other threads.
            Family::Nv(NvOp::Commit { group, .. }) => {
                state.commit(group, self.most_in_flight.of_class(group));
                Some(state)
            }
            Family::Nv(NvOp::WaitGroup { group, n, read }) => {
                self.arrive(state.wait(&self.numbered, group, (n as usize, read)), &mut state);
                Some(state)
            }
            Family::Nv(NvOp::BarrierSync { .. } | NvOp::WarpSync) if self.is_whole(&op.kind) => {
                // Barriers that the program has already are seen like those that are placed here.
                state.barrier();
                Some(state)
            }
            // The accesses of these operations are in the table of accesses; none of them orders threads.
            Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => {
                self.access(id, op, &mut state);
                Some(state)
            }
        }
    }

    /// Whether all threads that execute this code take part in the barrier.
    fn is_whole(&self, kind: &OpKind) -> bool {
        let (Some(laid), OpKind::Nv(nv)) = (self.laid, kind) else { return false };
        let warps = self.role.map_or(laid.warps, |r| self.kernel.roles.get(r).map_or(u32::MAX, |r| r.warps));
        let lanes = *nv == NvOp::WarpSync && warps == 1;
        lanes || matches!(nv, NvOp::BarrierSync { threads, .. } if *threads == warps.saturating_mul(laid.lanes))
    }

    /// The state after a passage.
    fn renamed(&mut self, state: &State, passage: Passage, names: &[(Value, Value)]) -> State {
        let Run { slots, numbered, divided, .. } = self;
        let name = |slot: Slot| match passage {
            Passage::Entry(looped) => slots.entering(looped, slot),
            Passage::Edge(looped, edge, leaves) => slots.along(looped, edge, leaves, slot),
            Passage::Role => None,
        };
        let turn = match passage {
            Passage::Edge(looped, _, leaves) => match divided.get(&looped) {
                Some(_) if leaves => Turn::Left,
                Some(outputs) => Turn::Next(outputs),
                None => Turn::Same,
            },
            Passage::Entry(_) => Turn::Same,
            Passage::Role => Turn::Left,
        };
        state.renamed(|number| numbered.renamed(number, passage, &name, turn), names)
    }

    /// The accesses of an operation.
    fn touches(&mut self, id: OpId, op: &Op) -> Rc<[Number]> {
        // Accesses do not depend on the state, and an operation is walked many times.
        if let Some(Some(known)) = self.touches.get(id.index()) {
            return Rc::clone(known);
        }
        let touches = self.regions.touches(self.kernel, &self.slots, op);
        let numbers: Rc<[Number]> = touches.into_iter().map(|touch| self.numbered.number(touch)).collect();
        if let Some(known) = self.touches.get_mut(id.index()) {
            *known = Some(Rc::clone(&numbers));
        }
        numbers
    }

    fn access(&mut self, id: OpId, op: &Op, state: &mut State) {
        let touches = self.touches(id, op);
        if touches.is_empty() {
            if self.settle(id, false) {
                state.barrier();
            }
            return;
        }
        touches.iter().for_each(|touch| self.note_role(*touch));
        let ours: Vec<Number> = touches.iter().copied().filter(|touch| self.is_ours(*touch)).collect();
        // Before the accesses of this operation are added: those of one operation are not ordered against each other.
        let needs = ours.iter().any(|touch| state.conflicts(&self.numbered, *touch));
        if self.settle(id, needs) {
            state.barrier();
        }
        if matches!(op.kind, OpKind::Print(_)) && !ours.is_empty() {
            // The lowering of a print contains a barrier of its threads.
            state.barrier();
        }
        match op.kind.completion() {
            Completion::Immediate => {}
            Completion::Prefix(Class::Wgmma) => touches.iter().for_each(|touch| state.copy(NvGroup::Wgmma, *touch)),
            Completion::Prefix(Class::BulkStore) => {
                touches.iter().for_each(|touch| state.copy(NvGroup::BulkStore, *touch));
            }
            Completion::Prefix(Class::CpAsync | Class::Tcgen05 | Class::Vmcnt | Class::Lgkmcnt) | Completion::Phase => {
                touches.iter().for_each(|touch| state.copy(NvGroup::CpAsync, *touch));
            }
        }
        // The start of a copy is an access too: later accesses must not be to bytes that a copy may write at any time.
        ours.into_iter().for_each(|touch| state.touch(&self.numbered, touch));
    }

    /// Records that copies are complete: their accesses may have happened at any time until now.
    fn arrive(&mut self, done: SortedSet<Number>, state: &mut State) {
        for touch in done {
            self.note_role(touch);
            if self.is_ours(touch) {
                state.touch(&self.numbered, touch);
            }
        }
    }

    /// Records an access of a role, if this code is in one.
    fn note_role(&mut self, touch: Number) {
        if self.role.is_some() {
            self.of_role.insert(self.numbered.renamed(touch, Passage::Role, &|_| None, Turn::Left));
        }
    }

    /// Whether barriers order an access, not mbarriers and counters between roles.
    fn is_ours(&self, touch: Number) -> bool {
        let is_joined = || self.numbered.region(touch).is_some_and(|region| self.regions.joined.contains(&region));
        self.role.is_none() || !is_joined()
    }

    /// Walks the roles of a program. Their accesses may conflict with those before, and count as accesses for the code after. Copies may be
    /// in flight when roles begin and when they end: each role has those of its own threads, and waits for no others. That no role accesses
    /// what a copy accesses that is in flight when the roles begin is a rule of the verifier.
    fn parts(&mut self, id: OpId, op: &Op, mut state: State) -> State {
        let (mut all, mut after) = (SortedSet::new(), None);
        // Each role is walked by itself from the same state: the barrier before the roles has ordered all accesses, and only copies are still
        // in flight. What all of its operations access counts, for the code after the roles, as accessed since the last barrier: it is not
        // known which of them come last.
        let begun = state.in_flight();
        for (role, block) in op.regions.iter().enumerate() {
            self.role = Some(role);
            self.of_role.clear();
            if let Some(out) = self.block(*block, begun.clone()) {
                join(&mut after, self.renamed(&out, Passage::Role, &[]));
            }
            all.extend(std::mem::take(&mut self.of_role));
        }
        self.role = None;
        after.into_iter().for_each(|out| state.replace_in_flight(out));
        let needs = all.iter().any(|touch| state.conflicts(&self.numbered, *touch));
        if self.settle(id, needs) {
            state.barrier();
        }
        all.into_iter().for_each(|touch| state.touch(&self.numbered, touch));
        state
    }

    fn repeat(&mut self, id: OpId, op: &Op, state: &State) -> Option<State> {
        // The state at the head is what was found in earlier walks, and what enters the loop now. Around the back edge, slots and tiles get
        // the names that they have in the next iteration (`Passage::Edge`).
        let mut entry = self.heads.remove(&id);
        let names = self.slots.entered(id);
        join(&mut entry, self.renamed(state, Passage::Entry(id), &names));
        let entry = entry.unwrap_or_default();
        self.loops.push(Around { op: id, next: None, exit: None });
        if let Some(body) = op.regions.first() {
            self.block(*body, entry.clone());
        }
        let Around { next, mut exit, .. } = self.loops.pop()?;
        let mut head = Some(entry);
        if let Some(next) = next {
            // States only grow: the next walk begins with this one, until the back edge adds nothing. In the second
            // walk of a loop, accesses of the iteration before are in the state at its head, under the names that they
            // have one iteration later.
            join(&mut head, next);
        }
        let head = head.unwrap_or_default();
        // A `for` also exits at its head.
        if matches!(op.kind, OpKind::For(_)) {
            let names = self.slots.handed(id, None, true);
            join(&mut exit, self.renamed(&head, Passage::Edge(id, None, true), &names));
        }
        self.heads.insert(id, head);
        exit
    }
}
