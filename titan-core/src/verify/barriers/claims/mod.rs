//! Rule 65: the operations at a claim implement it.
//!
//! For a ring between roles, with the slot `s` and the number of earlier rounds `r`:
//!
//! | claim | with mbarriers | with counters |
//! |---|---|---|
//! | acquired | waits at `empty[s]` for the parity `1 - (r & 1)` | waits until the counter of each reader at `s` is at least `r` |
//! | filled | every thread of the role arrives at `full[s]`, itself or when its copies complete; or one thread, with the bytes of its bulk copies to the slot; or both (`filled`) | the same |
//! | ready | waits at `full[s]` for the parity `r & 1` | the same |
//! | released | every warp of the role arrives at `empty[s]`, or at that of every program of the cluster, after a barrier of its lanes if they have read the slot themselves | one thread stores `r + 1` in the counter of its role at `s`, after a barrier of the role's warps |
//!
//! `full` counts the threads of the role that fills, or the one thread that starts bulk copies, or both if each slot is filled in both
//! ways. Bulk copies arrive there only after a fence of its initialisation. `empty` counts the warps of all roles that read, and those of
//! all programs of the cluster if copies are for all of them (`cluster`). So phase `r` of `full[s]` is complete when time `r · slots + s`
//! is filled, and phase `r` of `empty[s]` when it is released. A role that waits for a phase is at most one phase behind (the roles obey
//! the rules of rings), so the parity distinguishes it from the previous one.
//!
//! No other operation uses these barriers and counters. A ring that the same role fills and reads has no mbarriers: program order, waits
//! for commit groups and barriers between warps order the accesses to its slots.

mod apart;
mod cluster;
mod counts;
mod filled;
mod parity;
mod tiles;

use super::wrong;
use crate::analysis::cluster::Differing;
use crate::collections::{SortedMap, SortedSet};
use crate::diag::counted;
use crate::ir::{Block, Claim, Effect, Kernel, LocalOp, NvOp, Op, OpId, OpKind, Pipe, RegionOp, TtgOp, Ty, Value};
use crate::verify::Error;
use crate::verify::coexecution::rings::find::{Claims, FilledBy};
use crate::verify::roles::threads;

/// The objects that the claims of a ring use.
#[derive(Default)]
pub(super) struct Ring {
    /// The roles that fill it, and those that read it.
    fill: SortedSet<usize>,
    read: SortedSet<usize>,
    full: SortedSet<Value>,
    /// The ways in which its slots are filled.
    fills: SortedSet<FilledBy>,
    /// The bytes of a slot that are written for each claim that it is filled, and those that are copied in bulk, with the programs that get
    /// them.
    written: SortedSet<Vec<filled::Bytes>>,
    boxes: SortedSet<Vec<(filled::Bytes, u16)>>,
    /// A copy that is for all programs of the cluster; and an arrival that releases slots in this program alone, and one in all programs.
    pub(super) shared: Option<OpId>,
    pub(super) released: [Option<OpId>; 2],
    empty: SortedSet<Value>,
    /// Whether a wait uses the round itself as the parity, and whether one computes the parity from the number of the round.
    pub(super) parities: [bool; 2],
    /// The counter of each reader, and the counters for which each acquisition waits.
    counters: SortedMap<usize, SortedSet<Value>>,
    awaited: Vec<(OpId, SortedSet<Value>)>,
}

impl Ring {
    /// Its barriers, as arrays, and its counters.
    fn objects(&self) -> impl Iterator<Item = Value> + '_ {
        self.full.iter().chain(&self.empty).chain(self.counters.values().flatten()).copied()
    }

    /// Whether its claims state the numbers of rounds, and not only their parities.
    fn is_counted(&self) -> bool {
        self.parities[1] || !self.counters.is_empty() || !self.awaited.is_empty()
    }

    /// The regions with its barriers and counters.
    pub(super) fn words<'a>(&'a self, kernel: &'a Kernel) -> impl Iterator<Item = Value> + 'a {
        let barriers = self.full.iter().chain(&self.empty).filter_map(|v| kernel.def_op(*v)?.args.first());
        barriers.chain(self.counters.values().flatten()).copied()
    }
}

pub(super) struct Check<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) rings: SortedMap<Pipe, Ring>,
    /// The operations on barriers and counters that belong to a claim.
    explained: SortedSet<OpId>,
    filled_by: SortedMap<OpId, FilledBy>,
    /// The releases by each warp without a barrier of its lanes.
    unmet: SortedSet<OpId>,
    pub(super) errors: Vec<Error>,
    /// The values that may differ between the programs of a cluster.
    pub(super) differing: Differing,
}

/// A claim and its context.
pub(super) struct At<'k> {
    role: usize,
    id: OpId,
    op: &'k Op,
    pipe: Pipe,
    /// The operations of NVIDIA GPUs immediately before it, the nearest first.
    before: Vec<OpId>,
    /// The same operations without copies of tiles by threads.
    behind_copies: Vec<OpId>,
    /// All operations before it in its block.
    ops: &'k [OpId],
}

/// Violations of rule 65. Records how the stages are filled.
pub(super) fn check(kernel: &Kernel, claims: &mut Claims) -> Vec<Error> {
    let mut check = Check {
        kernel,
        rings: SortedMap::new(),
        explained: SortedSet::new(),
        filled_by: SortedMap::new(),
        unmet: SortedSet::new(),
        errors: Vec::new(),
        differing: Differing::new(kernel),
    };
    let roles = threads(kernel);
    for (role, (_, block)) in roles.iter().enumerate() {
        kernel.walk_block(*block, &mut |_, op| {
            if let OpKind::Ttg(TtgOp::Claim(claim, pipe)) = op.kind {
                let ring = check.rings.entry(pipe).or_default();
                let fills = matches!(claim, Claim::Acquired | Claim::Filled);
                if fills { &mut ring.fill } else { &mut ring.read }.insert(role);
            }
        });
    }
    // Filled and read by one and the same role, a ring needs no barriers: nothing of it is between roles.
    let between = |ring: &Ring| ring.fill != ring.read || ring.fill.len() > 1;
    let joined: SortedSet<Pipe> = check.rings.iter().filter(|(_, r)| between(r)).map(|(pipe, _)| *pipe).collect();
    // Of a ring that several roles fill, the times of a stage are not those of one clock, so that nothing else could be shown.
    let several: SortedSet<Pipe> =
        check.rings.iter().filter(|(_, r)| r.fill.len() > 1).map(|(pipe, _)| *pipe).collect();
    let mut filled_twice = SortedMap::new();
    kernel.walk(&mut |id, op| {
        if let OpKind::Ttg(TtgOp::Claim(Claim::Filled, pipe)) = op.kind
            && several.contains(&pipe)
        {
            filled_twice.entry(pipe).or_insert(id);
        }
    });
    for (_, id) in filled_twice {
        check.error(id, "several roles fill this ring");
    }
    for (role, (_, block)) in roles.iter().enumerate() {
        // Claims first: they collect the barriers of each ring, and which operations they explain. What follows
        // compares these with each other, and with everything that is left.
        check.block(*block, role, &joined);
    }
    for pipe in &joined {
        check.counts(*pipe);
        check.filled_alike(*pipe);
        check.written_apart(*pipe, claims);
    }
    check.parts(claims);
    check.clusters();
    // A barrier is a number of arrivals: one more, at any place, would complete a phase too early. So every operation
    // on a barrier must be explained by a claim.
    check.nothing_else();
    check.apart(&joined, claims);
    check.between_roles(&joined, claims);
    check.named_barriers();
    check.outside_of_roles(claims);
    for id in &claims.slotless {
        check.error(
            *id,
            "this accesses the memory of a ring, but not as tiles of a slot (`ttg.region.at`, `ttg.region.tile`)",
        );
    }
    claims.filled_by = check.filled_by;
    claims.unmet = check.unmet;
    claims.joined = joined;
    let counted = check.rings.iter().filter(|(_, ring)| ring.is_counted());
    claims.counted = counted.map(|(pipe, _)| *pipe).collect();
    check.errors
}

impl<'k> Check<'k> {
    pub(super) fn error(&mut self, id: OpId, title: impl Into<String>) {
        self.errors.push(wrong(self.kernel.op(id).loc, title));
    }

    fn block(&mut self, block: Block, role: usize, joined: &SortedSet<Pipe>) {
        let kernel = self.kernel;
        let ops = &kernel.block(block).ops;
        for (i, id) in ops.iter().enumerate() {
            let op = kernel.op(*id);
            if let OpKind::Ttg(TtgOp::Claim(claim, pipe)) = op.kind
                && joined.contains(&pipe)
            {
                // Only operations of the same block, immediately before: they are executed exactly as often as the
                // claim, under the same conditions.
                let [before, behind_copies] = [false, true].map(|copies| before(kernel, &ops[..i], copies));
                let at = At { role, id: *id, op, pipe, before, behind_copies, ops: &ops[..i] };
                let done = match claim {
                    Claim::Acquired => self.acquired(&at),
                    Claim::Filled => self.filled(&at),
                    Claim::Next => Some(()),
                    Claim::Ready => self.ready(&at),
                    Claim::Released => self.released(&at),
                };
                if done.is_none() {
                    let name = kernel.pipe_name(pipe);
                    self.error(*id, format!("the operations before this claim do not implement it for `{name}`"));
                }
            }
            for region in &op.regions {
                self.block(*region, role, joined);
            }
        }
    }

    pub(super) fn ring(&mut self, at: &At<'_>) -> &mut Ring {
        self.rings.entry(at.pipe).or_default()
    }

    pub(super) fn explain(&mut self, id: OpId) {
        self.explained.insert(id);
    }

    fn acquired(&mut self, at: &At<'_>) -> Option<()> {
        let turn = at.turn()?;
        let first = *at.before.first()?;
        if let OpKind::Nv(NvOp::WaitParity) = self.kernel.op(first).kind {
            let [barrier, parity] = self.kernel.op(first).args[..] else { return None };
            // A(t) waits for phase r - 1 of `empty`, the release of the round before: its parity is the other one. In
            // round 0 the phase before the first counts as complete, of parity 1 (theorem 4).
            self.is_parity(parity, turn, true, at)?;
            let empty = self.picked(barrier, at)?;
            self.explain(first);
            self.ring(at).empty.insert(empty);
            return Some(());
        }
        let mut awaited = SortedSet::new();
        for id in &at.before {
            let op = self.kernel.op(*id);
            let (OpKind::Nv(NvOp::SequenceWait), [counter, least]) = (&op.kind, &op.args[..]) else { break };
            // The counter of a reader is the number of rounds that it has released; r of them must be, before round r.
            if *least != turn {
                return None;
            }
            awaited.insert(self.part(*counter, at)?);
            self.explain(*id);
        }
        if awaited.is_empty() {
            return None;
        }
        self.ring(at).awaited.push((at.id, awaited));
        Some(())
    }

    fn ready(&mut self, at: &At<'_>) -> Option<()> {
        let first = *at.before.first()?;
        let op = self.kernel.op(first);
        let (OpKind::Nv(NvOp::WaitParity), [barrier, parity]) = (&op.kind, &op.args[..]) else { return None };
        // W(t) waits for phase r of `full`, whose parity is that of r.
        self.is_parity(*parity, at.turn()?, false, at)?;
        let full = self.picked(*barrier, at)?;
        self.explain(first);
        self.ring(at).full.insert(full);
        Some(())
    }

    fn released(&mut self, at: &At<'_>) -> Option<()> {
        let first = *at.before.first()?;
        let op = self.kernel.op(first);
        let met = at.before.get(1).map_or(&OpKind::Yield, |id| &self.kernel.op(*id).kind);
        let warps = self.warps(at.role)?;
        let of_a_warp = *met == OpKind::Nv(NvOp::WarpSync);
        let threads = warps.checked_mul(self.lanes()?)?;
        // A barrier of all threads of the role, or of the lanes of its only warp.
        let whole = of_a_warp && warps == 1
            || matches!(met, OpKind::Nv(NvOp::BarrierSync { threads: all, .. }) if *all == threads);
        match (&op.kind, &op.args[..]) {
            (OpKind::Nv(NvOp::Arrive { arrivals } | NvOp::ArriveCluster { arrivals }), [barrier]) => {
                // One lane of each warp arrives, after its warp: together as many as `empty` counts for this role.
                if *arrivals != warps {
                    return None;
                }
                let everywhere = matches!(op.kind, OpKind::Nv(NvOp::ArriveCluster { .. }));
                self.ring(at).released[usize::from(everywhere)] = Some(first);
                if !(whole || of_a_warp) {
                    // Nothing orders the reads of the other lanes of a warp, so that there must be none.
                    self.unmet.insert(at.id);
                }
                let empty = self.picked(*barrier, at)?;
                self.ring(at).empty.insert(empty);
            }
            (OpKind::Nv(NvOp::SequenceStore), [counter, times]) => {
                // One thread stores for all of the role, so that all must be done. After round r, r + 1 rounds are
                // released.
                if !whole || !self.is_one_more(*times, at.turn()?) {
                    return None;
                }
                let counter = self.part(*counter, at)?;
                let role = at.role;
                self.ring(at).counters.entry(role).or_default().insert(counter);
            }
            (_, _) => return None,
        }
        self.explain(first);
        Some(())
    }

    /// Checks that every operation on an mbarrier or counter belongs to a claim.
    fn nothing_else(&mut self) {
        let kernel = self.kernel;
        let mut stray = Vec::new();
        kernel.walk(&mut |id, op| {
            // Only these operations have mbarriers and counters as operands.
            let OpKind::Nv(nv) = op.kind else { return };
            let of_tiles = op.args.iter().any(|v| matches!(kernel.ty(*v), Ty::Smem(..)));
            let comes = match nv {
                NvOp::Arrive { .. }
                | NvOp::ArriveCluster { .. }
                | NvOp::ArriveExpectTx { .. }
                | NvOp::ExpectTx { .. }
                | NvOp::MbarrierWait
                | NvOp::WaitParity
                | NvOp::TryWait
                | NvOp::TestWait
                | NvOp::CpAsyncArrive { .. }
                | NvOp::MbarrierInval
                | NvOp::BulkLoad { .. }
                | NvOp::SequenceStore
                | NvOp::SequenceWait
                // Split arrivals and waits of a role are not supported.
                | NvOp::BarrierArrive { .. }
                | NvOp::CpAsync { .. }
                // Rings are not lowered to tensor memory.
                | NvOp::Tcgen05(_)
                | NvOp::ClusterArrive
                | NvOp::ClusterWait => true,
                // The groups of bulk stores of tiles are ordered by barriers between warps and by waits.
                NvOp::BulkStore { .. } => !of_tiles,
                NvOp::MbarrierAlloc { .. }
                | NvOp::MbarrierAt
                | NvOp::MbarrierInit { .. }
                | NvOp::SequenceInit
                | NvOp::FenceMbarrierInit
                | NvOp::ClusterRank
                | NvOp::WgmmaFence
                | NvOp::Wgmma
                | NvOp::WarpSync
                | NvOp::SetMaxNReg { .. }
                | NvOp::Commit { .. }
                | NvOp::WaitGroup { .. }
                | NvOp::BarrierSync { .. } => false,
            };
            if comes && !self.explained.contains(&id) {
                stray.push(id);
            }
        });
        for id in stray {
            self.error(id, "no claim explains this operation");
        }
    }

    /// Checks that a ring has one region, with a part for each slot, so that slots that differ select different bytes.
    fn parts(&mut self, claims: &Claims) {
        let kernel = self.kernel;
        let mut regions: SortedMap<Pipe, SortedSet<Value>> = SortedMap::new();
        let mut rings: SortedMap<Value, SortedSet<Pipe>> = SortedMap::new();
        kernel.walk(&mut |_, op| {
            if let (OpKind::Ttg(TtgOp::Claim(_, pipe)), Some(region)) = (&op.kind, op.args.first()) {
                regions.entry(*pipe).or_default().insert(*region);
                rings.entry(*region).or_default().insert(*pipe);
            }
        });
        let loc = |region: Value| kernel.def_op(region).map(|op| op.loc).unwrap_or_default();
        for (region, pipe) in &claims.ring_of {
            let made = kernel.def_op(*region).map(|op| &op.kind);
            let slots = kernel.pipe(*pipe).map(|p| p.slots);
            let (name, ring) = (kernel.display_name(*region), kernel.pipe_name(*pipe));
            let Some(OpKind::Region(RegionOp::Place { parts, .. })) = made else {
                self.errors.push(wrong(loc(*region), format!("the memory of `{ring}` is not a region")));
                continue;
            };
            // With fewer parts than slots, two slots would be the same bytes.
            if Some(*parts) != slots {
                let slots = slots.unwrap_or(0);
                let (has, wanted) = (counted(*parts, "part"), counted(slots, "slot"));
                let title = format!("`{name}` has {has}, but its ring `{ring}` has {wanted}");
                self.errors.push(wrong(loc(*region), title).help(format!("`parts = {slots}`")));
            }
        }
        for (pipe, own) in regions.iter().filter(|(_, own)| own.len() > 1) {
            let title = format!("the slots of `{}` are in several regions", kernel.pipe_name(*pipe));
            self.errors.extend(own.last().map(|region| wrong(loc(*region), title)));
        }
        for (region, _) in rings.iter().filter(|(_, own)| own.len() > 1) {
            let title = format!("`{}` is the memory of several rings", kernel.display_name(*region));
            self.errors.push(wrong(loc(*region), title));
        }
    }

    fn lanes(&self) -> Option<u32> {
        self.kernel.laid_out.as_deref().map(|laid| laid.lanes)
    }

    fn warps(&self, role: usize) -> Option<u32> {
        self.kernel.roles.get(role).map(|r| r.warps)
    }

    /// The array of barriers from which the slot of a claim selects one, if it has as many elements as the ring has slots.
    fn picked(&self, barrier: Value, at: &At<'_>) -> Option<Value> {
        let op = self.kernel.def_op(barrier).filter(|op| op.kind == OpKind::Nv(NvOp::MbarrierAt))?;
        let [alloc, slot] = op.args[..] else { return None };
        let made = self.kernel.def_op(alloc)?;
        let slots = self.kernel.pipe(at.pipe).map(|p| p.slots);
        let right = matches!(made.kind, OpKind::Nv(NvOp::MbarrierAlloc { n, .. }) if Some(n) == slots);
        // The same value selects the barrier and names the slot in the claim, so that no arithmetic on it needs to be
        // believed.
        (right && Some(&slot) == at.op.args.get(1)).then_some(alloc)
    }

    /// The region from which the slot of a claim selects a part.
    fn part(&self, part: Value, at: &At<'_>) -> Option<Value> {
        let op = self.kernel.def_op(part).filter(|op| op.kind == OpKind::Region(RegionOp::At))?;
        let [region, slot] = op.args[..] else { return None };
        let made = self.kernel.def_op(region)?;
        let slots = self.kernel.pipe(at.pipe).map(|p| p.slots);
        let right = matches!(made.kind, OpKind::Region(RegionOp::Place { parts, .. }) if Some(parts) == slots);
        (right && Some(&slot) == at.op.args.get(1)).then_some(region)
    }
}

impl At<'_> {
    /// The value with the number of earlier rounds.
    fn turn(&self) -> Option<Value> {
        self.op.args.get(2).copied()
    }
}

/// The operations of NVIDIA GPUs immediately before a claim, the nearest first. Integer arithmetic and fences may be in between, and copies
/// of tiles by threads if `copies` says so: the slots that these access are checked elsewhere.
fn before(kernel: &Kernel, ops: &[OpId], copies: bool) -> Vec<OpId> {
    let mut found = Vec::new();
    for id in ops.iter().rev() {
        let kind = &kernel.op(*id).kind;
        let is_number = kind.effect() == Effect::Pure
            || matches!(kind, OpKind::Nv(NvOp::MbarrierAt) | OpKind::Region(RegionOp::At));
        let is_copy = copies && matches!(kind, OpKind::Local(LocalOp::Copy { .. }));
        // These neither wait nor arrive, so that they may stand anywhere between.
        if is_number || is_copy || matches!(kind, OpKind::Ttg(TtgOp::Fence { .. })) {
            continue;
        }
        let OpKind::Nv(_) = kind else { break };
        found.push(*id);
    }
    found
}
