//! Proxy hazards, by byte range: asynchronous accesses that may not see earlier generic ones.
//!
//! Accesses through two proxies to the same bytes are not ordered by program order or by barriers alone: a proxy fence must
//! come between (PTX ISA, "Proxies" and "membar/fence", `fence.proxy.async`). A hazard is an async access that must be ordered
//! after a generic one:
//!
//! | before | after | hazard |
//! |---|---|---|
//! | generic write | async read | yes |
//! | generic write | async write | yes |
//! | generic read | async write | yes |
//! | generic read | async read | no |
//! | async | generic or async | no: completion carries the fence |
//!
//! Disjoint bytes are never a hazard. The bytes of an access are known up to the part that an index selects: two indices into
//! one region select the same part, different parts (`t % 4` and `(t + 1) % 4`), or cannot be compared, and then they may alias.
//!
//! # The state
//!
//! Walking each role in the order of its text, the analysis keeps the generic accesses that no fence has covered, for the
//! scope of the program and for that of the cluster: a fence of scope `cta` does not cover what other programs' copies do
//! (multicast). States are united at joins. Loops are walked to a fixed point, and may execute zero iterations. A `cp.async` copy
//! is covered only by a fence after it has completed.
//!
//! # Several roles
//!
//! A role publishes its accesses to others by its arrivals. A fence counts *between the access and the arrival*, or in the
//! role that waits, *between its wait and its own access* (or its own arrival, through which causality is transitive): both lie on
//! the path of causality from one access to the other, which is what the memory model of PTX asks for ("proxy-preserved base
//! causality order"). A fence after the arrival is too late, and one before the wait too early. If several paths lead from the
//! arrival to the access, a fence is demanded on each, which is more than PTX asks for: which of them a run has taken is not known.
//!
//! So a hazard between roles is found at the arrival: it involves every asynchronous access that others may make after they have
//! waited for it, directly or through further arrivals, without a fence in between. Copies of `cp.async` that arrive at a barrier
//! themselves complete without a wait of the copying role, so only a role that waits for that barrier can fence them.
//!
//! Programs of a cluster run the same kernel: the accesses of a role before the cluster barrier must be fenced, at cluster scope,
//! from the multicast copies that any role issues after it.
//!
//! # Stores in flight
//!
//! The same walk tracks which bulk stores may still read their regions: where bytes are written again, or the role ends,
//! without a wait for the group of the store, there is a [`Reuse`].
//!
//! # Barrier programs that are laid out
//!
//! There a role is several warps that run the same code: bytes of a generic access by one of them may be accessed asynchronously by
//! another. A fence between the two in program order is on the causality path, on either side of the barrier between the warps:
//! each warp fences its own accesses before it arrives, or all of them fence what they have observed after waiting. Tiles in shared
//! memory (`ttg.local.*`) have the address of their region, an asynchronous copy is a `cp.async`, and a claim accesses no memory.
//!
//! Deliberately absent: everything that the verifier's barrier rules check (that accesses are ordered at all); the proxy of
//! tensor-map reads; rings, whose fences are those of the barrier program that they are expanded to; fences other than generic →
//! async.

mod bytes;
mod flow;
mod reach;
mod state;
mod walk;

use crate::ir::traffic::{On, traffic};
use crate::ir::{FenceSpace, Kernel, OpId, OpKind, Proxy, Scope, TtgOp};
use std::collections::{BTreeMap, BTreeSet};

/// Tentative changes, analysed without editing the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// Fences generic → async to insert in front of operations.
    pub fences: BTreeMap<OpId, (Scope, FenceSpace)>,
    /// Fences to ignore.
    pub gone: BTreeSet<OpId>,
    /// Bulk stores after which to commit their group.
    pub commits: BTreeSet<OpId>,
    /// Waits for bulk stores to insert in front of operations, with the number of groups that may stay in flight.
    pub waits: BTreeMap<OpId, u32>,
}

/// A generic access, and an async one that may not see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// The generic access.
    pub generic: OpId,
    /// The async access.
    pub user: OpId,
    /// The required scope of the fence.
    pub scope: Scope,
    /// The memory that it must order.
    pub space: FenceSpace,
}

/// Accesses that need a fence in front of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// Where the fence is missing: the async access, or an arrival that publishes the generic access to another role.
    pub at: OpId,
    /// The role, in the order of the kernel; 0 for kernels without roles.
    pub role: usize,
    /// The accesses that must be fenced from each other.
    pub pairs: BTreeSet<Pair>,
    /// The pairs that no fence here can cover: copies that may be incomplete.
    pub landing: BTreeSet<Pair>,
}

impl Hazard {
    /// The smallest fence that covers all of them; `None` if no fence does.
    #[must_use]
    pub fn fence(&self) -> Option<(Scope, FenceSpace)> {
        let fences = self.pairs.iter().map(|p| (p.scope, p.space));
        fences.reduce(|(s, m), (scope, space)| (s.max(scope), join(m, space)))
    }
}

/// The smallest space that includes both.
#[must_use]
pub fn join(a: FenceSpace, b: FenceSpace) -> FenceSpace {
    if a == b { a } else { FenceSpace::All }
}

/// A bulk store that may still read its region where that is written again, or at the end of its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reuse {
    /// The store.
    pub store: OpId,
    /// The minimum number of groups that are committed after that of the store; `None` if its own may be open.
    pub younger: Option<u32>,
}

/// The result of the analysis, in program order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Missing fences.
    pub hazards: Vec<Hazard>,
    /// Missing waits for bulk stores: the operations that need one, and the stores.
    pub reuses: Vec<(OpId, BTreeSet<Reuse>)>,
}

impl Found {
    /// The hazard at an operation.
    #[must_use]
    pub fn at(&self, at: OpId) -> Option<&Hazard> {
        self.hazards.iter().find(|h| h.at == at)
    }

    /// The pairs of all hazards.
    #[must_use]
    pub fn pairs(&self) -> BTreeSet<(OpId, Pair)> {
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

/// Whether an access is to memory with known addresses. Those of stages are known after rings were expanded to barriers; tensors
/// are accessed through the async proxy from stages or regions only.
const fn is_stated(on: On) -> bool {
    match on {
        On::Regions | On::Words | On::Local => true,
        On::Tensor | On::Stage => false,
    }
}

/// The scope and space of a fence generic → async.
pub(crate) fn fence_of(kind: &OpKind) -> Option<(Scope, FenceSpace)> {
    if let OpKind::Ttg(TtgOp::Fence { from: Proxy::Generic, to: Proxy::Async, scope, space }) = kind {
        return Some((*scope, *space));
    }
    None
}

/// The concurrent parts: the code before the roles, and each role; or the whole kernel.
#[must_use]
pub fn threads(kernel: &Kernel) -> Vec<crate::ir::Block> {
    reach::threads(kernel)
}
