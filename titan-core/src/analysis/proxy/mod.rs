//! Proxy hazards, by byte range: asynchronous accesses that may not see earlier generic ones.
//!
//! Accesses to the same bytes through two proxies are not ordered by program order or by barriers alone: a proxy fence must be between them
//! (PTX ISA, "Proxies" and "membar/fence", `fence.proxy.async`). A hazard is an async access that must be ordered after a generic one:
//!
//! | before | after | hazard |
//! |---|---|---|
//! | generic write | async read | yes |
//! | generic write | async write | yes |
//! | generic read | async write | yes |
//! | generic read | async read | no |
//! | async | generic or async | no: the completion includes the fence |
//!
//! Accesses to disjoint bytes are never a hazard. The bytes of an access are known up to the part that an index selects: two indices into
//! one region select the same part, or different parts (`t % 4` and `(t + 1) % 4`), or cannot be compared and then may alias.
//!
//! # The state
//!
//! The analysis walks each role in program order, and keeps the generic accesses that no fence has covered, for the scope of the program
//! and for that of the cluster: a fence of scope `cta` does not cover accesses by copies of other programs (multicast). States are united
//! at joins. Loops are walked to a fixed point, and may execute zero iterations. A `cp.async` copy is covered only by a fence after it has
//! completed.
//!
//! # Several roles
//!
//! A role publishes its accesses to others by its arrivals. A fence counts if it is *between the access and the arrival*, or, in the role
//! that waits, *between its wait and its own access* (or its own arrival, through which causality is transitive). Both are on the path of
//! causality from one access to the other, as the memory model of PTX requires ("proxy-preserved base causality order"). A fence after the
//! arrival is too late, and one before the wait is too early. If several paths lead from the arrival to the access, a fence is required on
//! each of them, which is more than PTX requires, because it is unknown which of them a run takes.
//!
//! So a hazard between roles is reported at the arrival: it involves every asynchronous access that other roles may make after they have
//! waited for it, directly or through further arrivals, without a fence in between. `cp.async` copies that arrive at a barrier themselves
//! complete without a wait of the copying role, so that only a role that waits for that barrier can fence them.
//!
//! Programs of a cluster run the same kernel: the accesses of a role before the cluster barrier must be fenced, at cluster scope,
//! from the multicast copies that any role issues after it.
//!
//! # Copies that run ahead in a ring
//!
//! While an MMA reads one slot of a ring, `cp.async` copies into others are in flight, and the indices of both are carried by a loop, so that
//! they cannot be compared. What the program claims about slots (`ttg.claim`), which other rules prove, tells them apart:
//!
//! ```text
//! cp_async.wait_group {n = 2}      the oldest of three copies is complete; which slot it fills is not visible here
//! claim.ready %ring, %s            it is %s: some copy in flight was for it, and needs a fence from now on
//! fence.proxy generic → async
//! wgmma %ring[%s], ..              reads no slot with a copy in flight, because %s is ready
//! claim.released %ring, %s
//! ```
//!
//! Which slots are ready is followed through the values that loops carry and branches yield (`state`).
//!
//! # Stores in flight
//!
//! The same walk tracks which bulk stores may still read their regions. If bytes are written again, or the role ends, without a wait for
//! the group of the store, there is a [`Reuse`].
//!
//! # Laid-out barrier programs
//!
//! In these, a role has several warps that execute the same code: bytes of a generic access by one of them may be accessed asynchronously
//! by another. A fence between the two in program order is on the path of causality, on either side of the barrier between the warps: each
//! warp fences its own accesses before it arrives, or all of them fence what they have observed after waiting. Between an arrival at an mbarrier and
//! a wait for it, a fence is on no path from one warp to another (`reach`). Tiles in shared memory
//! (`ttg.local.*`) have the address of their region, an asynchronous copy is a `cp.async`, and a claim accesses no memory.
//!
//! Deliberately absent: what the verifier's rules of barriers check (whether accesses are ordered at all); the proxy of tensor-map reads;
//! rings, whose fences are those of the barrier program to which they are lowered; fences other than generic → async.

mod bytes;
mod flow;
mod reach;
mod state;
mod walk;

use crate::collections::{SortedMap, SortedSet};
use crate::ir::traffic::{On, traffic};
use crate::ir::{FenceSpace, Kernel, OpId, OpKind, Proxy, Scope, TtgOp};

/// Tentative changes to a kernel, which is analysed without being edited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// Fences generic → async to insert before operations.
    pub fences: SortedMap<OpId, (Scope, FenceSpace)>,
    /// Fences to ignore.
    pub gone: SortedSet<OpId>,
    /// Bulk stores after which their group is to be committed.
    pub commits: SortedSet<OpId>,
    /// Waits for bulk stores to insert before operations, with the number of groups that may stay in flight.
    pub waits: SortedMap<OpId, u32>,
}

/// A generic access, and an async access that may not observe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// The generic access.
    pub generic: OpId,
    /// The async access.
    pub user: OpId,
    /// The scope that the fence must have.
    pub scope: Scope,
    /// The memory that the fence must order.
    pub space: FenceSpace,
}

/// Accesses that need a fence before an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The operation before which the fence is missing: the async access, or an arrival that publishes the generic access to another role.
    pub at: OpId,
    /// The number of the role, in the order of the kernel; 0 for kernels without roles.
    pub role: usize,
    /// The accesses that must be fenced from each other.
    pub pairs: SortedSet<Pair>,
    /// The pairs that no fence at this operation can cover, because the copies may be incomplete.
    pub landing: SortedSet<Pair>,
}

impl Hazard {
    /// The fence with the smallest scope and space that covers all pairs; `None` if no fence does.
    #[must_use]
    pub fn fence(&self) -> Option<(Scope, FenceSpace)> {
        let fences = self.pairs.iter().map(|p| (p.scope, p.space));
        fences.reduce(|(s, m), (scope, space)| (s.max(scope), join(m, space)))
    }
}

/// The smallest space that includes both spaces.
#[must_use]
pub fn join(a: FenceSpace, b: FenceSpace) -> FenceSpace {
    if a == b { a } else { FenceSpace::All }
}

/// A bulk store that may still read its region when that is written again, or at the end of its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reuse {
    /// The operation of the store.
    pub store: OpId,
    /// The minimum number of groups committed after the group of the store; `None` if that group may still be open.
    pub younger: Option<u32>,
}

/// The result of the analysis, in program order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Missing fences.
    pub hazards: Vec<Hazard>,
    /// Missing waits for bulk stores: the operations that need one, and the stores.
    pub reuses: Vec<(OpId, SortedSet<Reuse>)>,
}

impl Found {
    /// The hazard at an operation.
    #[must_use]
    pub fn at(&self, at: OpId) -> Option<&Hazard> {
        self.hazards.iter().find(|h| h.at == at)
    }

    /// The pairs of all hazards.
    #[must_use]
    pub fn pairs(&self) -> SortedSet<(OpId, Pair)> {
        self.hazards.iter().flat_map(|h| h.pairs.iter().chain(&h.landing).map(|p| (h.at, *p))).collect()
    }
}

/// Analyses a kernel with tentative changes. The kernel must be well-formed.
#[must_use]
pub fn find(kernel: &Kernel, overlay: &Overlay) -> Found {
    let mut any = false;
    kernel.walk(&mut |_, op| {
        let row = traffic(&op.kind);
        any |= row.accesses.iter().flatten().any(|a| a.proxy == Proxy::Async && is_stated(a.on));
    });
    if any { flow::run(kernel, overlay) } else { Found::default() }
}

/// Whether the memory of an access has known addresses. The addresses of stages are known after rings were lowered to barriers; tensors are
/// accessed through the async proxy only from stages or regions.
const fn is_stated(on: On) -> bool {
    match on {
        On::Regions | On::Words | On::Local => true,
        On::Tensor | On::Stage => false,
    }
}

/// The scope and space of an operation that is a fence generic → async.
pub(crate) fn fence_of(kind: &OpKind) -> Option<(Scope, FenceSpace)> {
    if let OpKind::Ttg(TtgOp::Fence { from: Proxy::Generic, to: Proxy::Async, scope, space }) = kind {
        return Some((*scope, *space));
    }
    None
}

/// The concurrent parts of a kernel: the code before the roles, and each role; or the whole kernel.
#[must_use]
pub fn threads(kernel: &Kernel) -> Vec<crate::ir::Block> {
    reach::threads(kernel)
}
