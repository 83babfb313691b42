//! Reachability: the positions of operations in the roles, and the paths through arrivals and waits from one role to another, with the
//! fences on them.

use super::walk::{Fact, Walk, walk};
use super::{Overlay, fence_of};
use crate::collections::SortedMap;
use crate::ir::traffic::{Order, traffic};
use crate::ir::{AmdOp, Block, Def, FenceSpace, Kernel, NvOp, Op, OpId, OpKind, Scope, Stated, TtgOp, Value};

/// The concurrent blocks; in a kernel with roles, the code before the roles is last.
pub(super) fn threads(kernel: &Kernel) -> Vec<Block> {
    let top = &kernel.block(kernel.body).ops;
    let roles = top.iter().find(|id| kernel.op(**id).kind == OpKind::Ttg(TtgOp::Roles));
    match roles {
        Some(op) => kernel.op(*op).regions.iter().copied().chain([kernel.body]).collect(),
        None => vec![kernel.body],
    }
}

/// A point of synchronization between roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SyncPoint {
    /// An mbarrier: its `alloc`, and its index; each is `None` if it is unknown.
    Word(Option<Value>, Option<i64>),
    Named(u8),
    Cluster,
    Waves,
}

impl SyncPoint {
    pub(super) fn is(self, other: SyncPoint) -> bool {
        if let (SyncPoint::Word(a, i), SyncPoint::Word(b, j)) = (self, other) {
            return a.zip(b).is_none_or(|(a, b)| a == b && i.zip(j).is_none_or(|(i, j)| i == j));
        }
        self == other
    }
}

/// The synchronization point at which an operation arrives or waits.
pub(super) fn sync_point(kernel: &Kernel, id: OpId) -> Option<SyncPoint> {
    let op = kernel.op(id);
    if !matches!(
        traffic(&op.kind).order,
        Order::Releases | Order::Acquires | Order::Polls | Order::Synchronizes | Order::ReleasesCopies
    ) {
        return None;
    }
    if let Stated::Named { id, .. } = op.kind.stated() {
        return Some(SyncPoint::Named(id));
    }
    if matches!(op.kind, OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait)) {
        return Some(SyncPoint::Cluster);
    }
    if matches!(op.kind, OpKind::Amd(AmdOp::Barrier)) {
        return Some(SyncPoint::Waves);
    }
    // All other operations that arrive or wait have an mbarrier as the first operand; an unknown one may be any.
    let barrier = *op.args.first()?;
    Some(match kernel.def_op(barrier).map(|o| (&o.kind, &o.args[..])) {
        Some((OpKind::Nv(NvOp::MbarrierAlloc { .. }), _)) => SyncPoint::Word(Some(barrier), None),
        Some((OpKind::Nv(NvOp::MbarrierAt), [alloc, index])) => {
            SyncPoint::Word(Some(*alloc), kernel.int_constant(*index))
        }
        Some(_) | None => SyncPoint::Word(None, None),
    })
}

/// The scopes and spaces for which there may be a path without a fence generic → async.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uncovered(u8);

impl Uncovered {
    const ALL: Uncovered = Uncovered(0b1111);

    /// The bit mask of a set of scopes and spaces, with one bit for each combination.
    fn bits(scopes: impl Fn(Scope) -> bool, spaces: impl Fn(FenceSpace) -> bool) -> u8 {
        let kinds = [
            (Scope::Cta, FenceSpace::Shared),
            (Scope::Cta, FenceSpace::Global),
            (Scope::Cluster, FenceSpace::Shared),
            (Scope::Cluster, FenceSpace::Global),
        ];
        kinds.iter().enumerate().filter(|(_, (s, m))| scopes(*s) && spaces(*m)).map(|(i, _)| 1 << i).sum()
    }

    fn fence(&mut self, (scope, space): (Scope, FenceSpace)) {
        self.0 &= !Uncovered::bits(|s| s <= scope, |m| space == FenceSpace::All || m == space);
    }

    /// Whether there may be a path without a fence of this scope and space.
    pub(super) fn needs(self, scope: Scope, space: FenceSpace) -> bool {
        self.0 & Uncovered::bits(|s| s == scope.min(Scope::Cluster), |m| space == FenceSpace::All || m == space) != 0
    }

    const fn and(self, other: Uncovered) -> Uncovered {
        Uncovered(self.0 & other.0)
    }

    const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Fact for Uncovered {
    fn join(&mut self, other: &Uncovered) {
        self.0 |= other.0;
    }
}

/// The position of an operation: its role, its number in the role, and the loops around it.
#[derive(Clone, Debug)]
pub(super) struct At {
    pub(super) role: usize,
    number: usize,
    loops: Vec<OpId>,
}

/// An operation, and whether another program of the cluster executes it.
type Act = (OpId, bool);

/// A point from which on a role has acquired the accesses of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Begin {
    /// After a wait.
    Wait(OpId),
    /// The head of a role.
    Role(usize),
}

/// The positions of all operations, and the paths between roles.
pub(super) struct Reach<'k> {
    kernel: &'k Kernel,
    overlay: &'k Overlay,
    threads: Vec<Block>,
    at: SortedMap<OpId, At>,
    owner: SortedMap<Block, OpId>,
    /// The operations that arrive or wait, with their synchronization points.
    sync_points: Vec<(OpId, SyncPoint)>,
    /// For each start, what is uncovered before the operations after it that access memory or arrive.
    paths: SortedMap<Begin, SortedMap<OpId, Uncovered>>,
    after: SortedMap<OpId, SortedMap<Act, Uncovered>>,
}

/// The data-flow analysis of what is uncovered from one point on.
struct Path<'k> {
    overlay: &'k Overlay,
    from: Option<OpId>,
    open: SortedMap<OpId, Uncovered>,
}

impl Walk for Path<'_> {
    type State = Uncovered;

    fn step(&mut self, id: OpId, op: &Op, state: &mut Uncovered) {
        if let Some(fence) = self.overlay.fences.get(&id) {
            state.fence(*fence);
        }
        if self.overlay.gone.contains(&id) {
            return;
        }
        let row = traffic(&op.kind);
        let matters =
            row.accesses.iter().any(Option::is_some) || matches!(row.order, Order::Releases | Order::Synchronizes);
        if matters && !state.is_empty() {
            self.open.entry(id).or_default().join(state);
        }
        if let Some(fence) = fence_of(&op.kind) {
            state.fence(fence);
        }
        if self.from == Some(id) {
            *state = Uncovered::ALL;
        }
    }

    fn next_iteration(&self, _: OpId, _: &mut Uncovered) {}

    fn renamed(&self, _: &[Value], _: &[Value], _: Option<OpId>, _: &mut Uncovered) {}
}

impl<'k> Reach<'k> {
    pub(super) fn new(kernel: &'k Kernel, overlay: &'k Overlay) -> Reach<'k> {
        let mut reach = Reach {
            kernel,
            overlay,
            threads: threads(kernel),
            at: SortedMap::new(),
            owner: SortedMap::new(),
            sync_points: Vec::new(),
            paths: SortedMap::new(),
            after: SortedMap::new(),
        };
        for (role, block) in reach.threads.clone().into_iter().enumerate() {
            let mut number = 0;
            reach.place(block, role, &mut number, &mut Vec::new());
        }
        let mut sync_points: Vec<(OpId, SyncPoint)> =
            reach.at.keys().filter_map(|id| Some((*id, sync_point(kernel, *id)?))).collect();
        sync_points.sort_by_key(|(id, _)| reach.position(*id));
        reach.sync_points = sync_points;
        reach
    }

    fn place(&mut self, block: Block, role: usize, number: &mut usize, loops: &mut Vec<OpId>) {
        for id in &self.kernel.block(block).ops {
            *number += 1;
            self.at.insert(*id, At { role, number: *number, loops: loops.clone() });
            let op = self.kernel.op(*id);
            if op.kind == OpKind::Ttg(TtgOp::Roles) {
                continue;
            }
            let looped = op.kind.is_loop();
            loops.extend(looped.then_some(*id));
            for region in &op.regions {
                self.owner.insert(*region, *id);
                self.place(*region, role, number, loops);
            }
            if looped {
                loops.pop();
            }
        }
    }

    /// The position in program order, role by role.
    pub(super) fn position(&self, id: OpId) -> (usize, usize) {
        self.at.get(&id).map_or((usize::MAX, 0), |a| (a.role, a.number))
    }

    /// Whether a value is computed anew in each iteration of a loop.
    pub(super) fn made_in(&self, value: Value, looped: OpId) -> bool {
        let around = |id: OpId| self.at.get(&id).is_some_and(|a| a.loops.contains(&looped));
        match self.kernel.value(value).def {
            Def::Param(_) => false,
            Def::Result(op, _) => around(op),
            Def::BlockArg(block, _) => self.owner.get(&block).is_some_and(|owner| *owner == looped || around(*owner)),
        }
    }

    /// The operations after a point of a role, each with what may be uncovered before it.
    fn path(&mut self, begin: Begin) -> &SortedMap<OpId, Uncovered> {
        let (kernel, overlay) = (self.kernel, self.overlay);
        let (role, from, start) = match begin {
            Begin::Wait(wait) => (self.at.get(&wait).map(|a| a.role), Some(wait), Uncovered::default()),
            Begin::Role(role) => (Some(role), None, Uncovered::ALL),
        };
        let block = role.and_then(|r| self.threads.get(r).copied());
        self.paths.entry(begin).or_insert_with(|| {
            let mut path = Path { overlay, from, open: SortedMap::new() };
            if let Some(block) = block {
                walk(kernel, block, start, &mut path);
            }
            path.open
        })
    }

    /// The operations of other roles after the specialization into roles, each with what may be uncovered before it.
    pub(super) fn after_specialization(&mut self, role: usize) -> Vec<(OpId, Uncovered)> {
        let others: Vec<usize> = (0..self.threads.len()).filter(|r| *r != role).collect();
        others.into_iter().flat_map(|r| self.path(Begin::Role(r)).clone()).collect()
    }

    /// Whether the threads of a role are several warps, each of which executes the same code.
    fn has_warps(&self, role: usize) -> bool {
        let Some(laid) = self.kernel.laid_out.as_deref() else { return false };
        self.kernel.roles.get(role).map_or(laid.warps, |role| role.warps) > 1
    }

    /// The operations that may access memory after a wait for an arrival, each with what may be uncovered before it. Those of the arriving
    /// role itself are included where another program of the cluster executes them, or another warp of the role:
    ///
    /// ```text
    /// warp 0: read %slot; arrive %b; fence; ..          warp 1: ..; fence; wait %b; bulk load to %slot
    /// ```
    ///
    /// Both warps execute read, arrive, fence, wait and load in this order. Yet no fence is on the path from the read of warp 0 to the load of
    /// warp 1: one comes after the arrival, the other before the wait. A barrier at which all warps of a role meet has no such gap, and one
    /// thread needs no path, since its operations are in program order.
    pub(super) fn after(&mut self, arrival: OpId) -> SortedMap<Act, Uncovered> {
        if let Some(known) = self.after.get(&arrival) {
            return known.clone();
        }
        let found = self.search(arrival);
        self.after.insert(arrival, found.clone());
        found
    }

    fn search(&mut self, arrival: OpId) -> SortedMap<Act, Uncovered> {
        let own = self.at.get(&arrival).map(|a| a.role);
        let several = own.is_some_and(|own| self.has_warps(own));
        let mut found: SortedMap<Act, Uncovered> = SortedMap::new();
        let mut begun: SortedMap<Act, Uncovered> = SortedMap::new();
        // A search over arrivals, each with the kinds of fences that are missing on some path to it. From an arrival, the search goes to all
        // waits that may be for it, and from each of these to the operations after it; an arrival among them tells further roles. An
        // operation is taken up again only if a kind of fence is missing that was not known to be (`grows`): four kinds for each of two
        // programs, so the search ends. Missing kinds along a path are those missing on both of its parts (`and`).
        let mut open = vec![(arrival, false, Uncovered::ALL)];
        while let Some((tells, peer, uncovered)) = open.pop() {
            let Some(word) = sync_point(self.kernel, tells) else { continue };
            let learns = |id: OpId| {
                matches!(traffic(&self.kernel.op(id).kind).order, Order::Acquires | Order::Polls | Order::Synchronizes)
            };
            let waits: Vec<OpId> =
                self.sync_points.iter().filter(|(id, at)| learns(*id) && word.is(*at)).map(|(id, _)| *id).collect();
            let kind = &self.kernel.op(tells).kind;
            let everywhere = word == SyncPoint::Cluster || matches!(kind, OpKind::Nv(NvOp::ArriveCluster { .. }));
            let programs: &[bool] = match (everywhere, peer) {
                (true, _) => &[false, true],
                (false, true) => &[true],
                (false, false) => &[false],
            };
            // All warps of a role meet at a barrier of its own.
            let meets = self.at.get(&tells).map(|a| a.role) == own && traffic(kind).order == Order::Synchronizes;
            for wait in waits {
                let role = self.at.get(&wait).map(|a| a.role);
                for other in programs {
                    let act = (wait, *other);
                    let in_order = role == own && !act.1 && (!several || meets);
                    if !in_order && grows(&mut begun, act, uncovered) {
                        for (id, lacks) in self.path(Begin::Wait(wait)) {
                            let lacks = uncovered.and(*lacks);
                            if !lacks.is_empty() && grows(&mut found, (*id, act.1), lacks) {
                                open.push((*id, act.1, lacks));
                            }
                        }
                    }
                }
            }
        }
        found
    }
}

/// Merges `more` into the known state of an operation; returns whether it changes.
fn grows(known: &mut SortedMap<Act, Uncovered>, act: Act, more: Uncovered) -> bool {
    let entry = known.entry(act).or_default();
    let before = *entry;
    entry.join(&more);
    *entry != before
}
