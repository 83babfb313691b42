//! Tracks the generic accesses of each role that no fence has covered, and finds missing fences.

use super::bytes::{Place, Touched, touched};
use super::reach::{Reach, SyncPoint, Uncovered, sync_point, threads};
use super::state::{Flight, State};
use super::walk::{Walk, walk};
use super::{Found, Hazard, Overlay, Pair, Reuse, fence_of};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::traffic::{Order, Traffic, traffic};
use crate::ir::{Claim, Class, Def, Kernel, LocalOp, NvOp, Op, OpId, OpKind, Proxy, Scope, TtgOp, Value};

/// Finds the missing fences and waits of a kernel.
pub(super) fn run(kernel: &Kernel, overlay: &Overlay) -> Found {
    let (mut touches, mut awaited) = (SortedMap::new(), SortedSet::new());
    kernel.walk(&mut |id, op| {
        if traffic(&op.kind).order == Order::AwaitsToken {
            awaited.extend(token(kernel, op));
        }
        let own = touched(kernel, op);
        if !own.is_empty() {
            touches.insert(id, own);
        }
    });
    let roles = kernel.ops.iter().any(|op| op.kind == OpKind::Ttg(TtgOp::Roles));
    let mut flow = Flow {
        kernel,
        overlay,
        touches,
        awaited,
        reach: Reach::new(kernel, overlay),
        roles,
        role: 0,
        landed: Vec::new(),
        hazards: SortedMap::new(),
        reuses: SortedMap::new(),
    };
    // Copies that arrive at a barrier are known to all roles only after all roles have been walked. The list of these copies only grows, and
    // there are finitely many pairs of a copy and a barrier, so the rounds end.
    loop {
        let before = flow.landed.len();
        for (role, block) in threads(kernel).into_iter().enumerate() {
            flow.role = role;
            walk(kernel, block, State::start(), &mut flow);
        }
        if flow.landed.len() == before {
            return flow.found();
        }
    }
}

struct Flow<'k> {
    kernel: &'k Kernel,
    overlay: &'k Overlay,
    touches: SortedMap<OpId, Vec<Touched>>,
    /// The commits whose tokens are waited for; the groups of others need not be counted.
    awaited: SortedSet<OpId>,
    reach: Reach<'k>,
    /// Whether the kernel has roles.
    roles: bool,
    role: usize,
    /// `cp.async` copies that arrive at a barrier when they complete.
    landed: Vec<(SyncPoint, OpId, usize, Touched)>,
    hazards: SortedMap<OpId, Hazard>,
    reuses: SortedMap<OpId, SortedSet<Reuse>>,
}

/// The commit whose token an operation waits for.
fn token(kernel: &Kernel, op: &Op) -> Option<OpId> {
    match kernel.value(*op.args.first()?).def {
        Def::Result(token, _) => Some(token),
        Def::Param(_) | Def::BlockArg(..) => None,
    }
}

/// Whether both access parts of the same region.
fn same_ring(a: &Touched, b: &Touched) -> bool {
    a.pick().zip(b.pick()).is_some_and(|(a, b)| a.region == b.region)
}

/// The scope of a fence that an access requires.
fn scope_of(kind: &OpKind) -> Scope {
    if matches!(kind, OpKind::Nv(NvOp::BulkLoad { multicast: 1.., .. })) { Scope::Cluster } else { Scope::Cta }
}

impl Walk for Flow<'_> {
    type State = State;

    fn step(&mut self, id: OpId, op: &Op, state: &mut State) {
        if let Some(n) = self.overlay.waits.get(&id) {
            state.await_groups(Class::BulkStore, *n);
        }
        if let Some((scope, space)) = self.overlay.fences.get(&id) {
            state.fence(*scope, *space);
        }
        if self.overlay.gone.contains(&id) {
            return;
        }
        let row = traffic(&op.kind);
        // The order matters. What an operation demands is judged by what precedes it; its own accesses are in the state before its
        // ordering effect, since an arrival that also accesses memory publishes these accesses.
        self.demands(id, op, &row, state);
        self.accesses(id, op, state);
        self.orders(id, op, &row, state);
        self.claims(op, state);
    }

    fn next_iteration(&self, looped: OpId, state: &mut State) {
        state.next_iteration(|v| self.reach.made_in(v, looped));
    }

    fn renamed(&self, from: &[Value], to: &[Value], left: Option<OpId>, state: &mut State) {
        state.rename(from, to, |v| left.is_none_or(|looped| !self.reach.made_in(v, looped)));
    }
}

impl Flow<'_> {
    fn found(self) -> Found {
        let reach = self.reach;
        let mut hazards: Vec<Hazard> = self.hazards.into_values().collect();
        // What lacks a fence in program order lacks it on the path through an arrival at an mbarrier too: it is one mistake.
        let at_users = hazards.iter().flat_map(|h| h.pairs.iter().filter(|pair| pair.user == h.at));
        let in_order: SortedSet<(OpId, OpId)> = at_users.map(|pair| (pair.generic, pair.user)).collect();
        for hazard in hazards.iter_mut().filter(|h| sync_point(self.kernel, h.at) != Some(SyncPoint::Cluster)) {
            let at = hazard.at;
            hazard.pairs.retain(|pair| pair.user == at || !in_order.contains(&(pair.generic, pair.user)));
        }
        hazards.retain(|h| !h.pairs.is_empty() || !h.landing.is_empty());
        hazards.sort_by_key(|h| reach.position(h.at));
        let mut reuses: Vec<(OpId, SortedSet<Reuse>)> = self.reuses.into_iter().collect();
        reuses.sort_by_key(|(at, _)| reach.position(*at));
        Found { hazards, reuses }
    }

    /// Checks which accesses must have been fenced or waited for before an operation.
    fn demands(&mut self, id: OpId, op: &Op, row: &Traffic, state: &State) {
        for t in self.touches.get(&id).cloned().unwrap_or_default() {
            self.demand(id, (id, t, scope_of(&op.kind)), None, state);
            self.reused(id, &t, false, state);
        }
        match row.order {
            Order::Releases | Order::Synchronizes => {
                for ((user, peer), open) in self.reach.after(id) {
                    // Other programs access the memory of this one only by multicast.
                    if !peer || scope_of(&self.kernel.op(user).kind) > Scope::Cta {
                        self.foreign(id, (user, open), !peer, state);
                    }
                }
            }
            Order::Specializes => {
                for (user, open) in self.reach.after_specialization(self.role) {
                    self.foreign(id, (user, open), true, state);
                }
            }
            Order::Ends if !(self.roles && op.kind == OpKind::Return) => {
                let open = state.stores.iter().map(|((store, _), f)| Reuse { store: *store, younger: f.younger });
                let open: SortedSet<Reuse> = open.collect();
                if !open.is_empty() {
                    self.reuses.entry(id).or_default().extend(open);
                }
            }
            Order::None
            | Order::Acquires
            | Order::Polls
            | Order::ReleasesCopies
            | Order::Commits(_)
            | Order::Awaits(_)
            | Order::AwaitsToken
            | Order::Fences
            | Order::FencesWords
            | Order::Ends => {}
        }
    }

    /// Checks the accesses of another role, another warp of the role, or another program, after a wait for an arrival. `here`: in the same
    /// program.
    fn foreign(&mut self, at: OpId, (user, uncovered): (OpId, Uncovered), here: bool, state: &State) {
        let scope = scope_of(&self.kernel.op(user).kind);
        // The thread that issues bulk stores of a role also waits for them, in program order.
        let own = here && self.reach.position(user).0 == self.role;
        for t in self.touches.get(&user).cloned().unwrap_or_default() {
            self.demand(at, (user, t, scope), Some(uncovered), state);
            if !own {
                self.reused(at, &t, true, state);
            }
        }
    }

    /// Records missing fences. `uncovered` applies to accesses in other roles: the scopes that these roles have not fenced after their
    /// waits.
    fn demand(
        &mut self,
        at: OpId,
        (user, t, scope): (OpId, Touched, Scope),
        uncovered: Option<Uncovered>,
        state: &State,
    ) {
        let foreign = uncovered.is_some();
        if t.proxy == Proxy::Async {
            // No copy into this slot is in flight.
            let ready = !foreign && state.is_ready(self.kernel, &t);
            for (key, mark) in &state.seen {
                // For an access of another role, a fence after that role's wait is as good as one here, before the arrival: the pair is open
                // only if both are missing.
                let open = if scope > Scope::Cta { mark.cluster } else { mark.cta };
                let open = open && uncovered.is_none_or(|u| u.needs(scope, mark.touched.space()));
                let conflicts = t.writes || mark.touched.writes;
                // The slot of this access is ready: the copies in flight in the same ring are for other slots.
                if key.landing && ready && same_ring(&t, &mark.touched) {
                    continue;
                }
                if !open || !conflicts || !t.overlaps(&mark.touched, foreign || key.loose) {
                    continue;
                }
                let pair = Pair { generic: key.op, user, scope, space: mark.touched.space() };
                let new = || Hazard { at, role: self.role, pairs: SortedSet::new(), landing: SortedSet::new() };
                let hazard = self.hazards.entry(at).or_insert_with(new);
                if key.landing {
                    hazard.landing.insert(pair)
                } else {
                    hazard.pairs.insert(pair)
                };
            }
        }
    }

    /// Records the bulk stores that may still read bytes which an access writes.
    fn reused(&mut self, at: OpId, t: &Touched, foreign: bool, state: &State) {
        if t.writes && matches!(t.place, Place::Shared { .. }) {
            for ((store, loose), flight) in &state.stores {
                if t.overlaps(&flight.touched, foreign || *loose) {
                    self.reuses.entry(at).or_default().insert(Reuse { store: *store, younger: flight.younger });
                }
            }
        }
    }

    /// What the program claims about slots of rings, which other rules prove.
    fn claims(&self, op: &Op, state: &mut State) {
        let (OpKind::Ttg(TtgOp::Claim(claim, _)), [region, index]) = (&op.kind, &op.args[..]) else { return };
        match claim {
            Claim::Ready => state.slot_ready(*region, *index),
            Claim::Released => state.slot_released(*region, *index),
            Claim::Acquired | Claim::Filled | Claim::Next => {}
        }
    }

    fn accesses(&self, id: OpId, op: &Op, state: &mut State) {
        let copy =
            matches!(op.kind, OpKind::Nv(NvOp::CpAsync { .. }) | OpKind::Local(LocalOp::Copy { asynchronous: true }));
        for (n, t) in self.touches.get(&id).into_iter().flatten().enumerate() {
            match t.proxy {
                Proxy::Generic => state.access((id, n), *t, copy && t.writes, false),
                Proxy::Async | Proxy::Tensormap => {}
            }
            if matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. })) && matches!(t.place, Place::Shared { .. }) {
                state.stores.insert((id, false), Flight { touched: *t, younger: None });
            }
        }
        if self.overlay.commits.contains(&id) {
            state.close(Class::BulkStore, None);
        }
    }

    fn orders(&mut self, id: OpId, op: &Op, row: &Traffic, state: &mut State) {
        match row.order {
            Order::Fences => {
                if let Some((scope, space)) = fence_of(&op.kind) {
                    state.fence(scope, space);
                }
            }
            Order::FencesWords => {
                let kernel = self.kernel;
                state.fence_words(|op| matches!(kernel.op(op).kind, OpKind::Nv(NvOp::MbarrierInit { .. })));
            }
            Order::Commits(class) => state.close(class, self.awaited.contains(&id).then_some(id)),
            Order::Awaits(class) => {
                if let OpKind::Nv(NvOp::WaitGroup { n, .. }) = op.kind {
                    state.await_groups(class, n);
                }
            }
            Order::AwaitsToken => {
                if let Some(token) = token(self.kernel, op) {
                    state.await_token(token);
                }
            }
            Order::ReleasesCopies => {
                let at = sync_point(self.kernel, id).unwrap_or(SyncPoint::Word(None, None));
                for (copy, n, t) in state.tell_copies(at) {
                    if !self.landed.contains(&(at, copy, n, t)) {
                        self.landed.push((at, copy, n, t));
                    }
                }
            }
            Order::Acquires | Order::Polls | Order::Synchronizes => {
                let Some(at) = sync_point(self.kernel, id) else { return };
                // A poll orders nothing, but the copies that it may have observed must be fenced.
                if row.order != Order::Polls {
                    state.learn_copies(at);
                }
                for (_, copy, n, t) in self.landed.iter().filter(|(told, ..)| told.is(at)) {
                    state.access((*copy, *n), *t, false, true);
                }
            }
            Order::None | Order::Releases | Order::Specializes | Order::Ends => {}
        }
    }
}
