//! The memory accesses of an operation, with their proxies, and its ordering effect: the part of its row ([`super::op_table`]) that the
//! proxy analysis reads ([`crate::analysis::proxy`]).
//!
//! An access has a proxy (PTX ISA, "Proxies"): *generic* accesses are those of loads and stores and the writes of
//! `cp.async`; *async* ones those of bulk copies and of MMAs that read shared memory. `init` and `inval` of barriers are generic
//! writes of their words. An arrival does not count as an access, nor does the completion of a copy at a barrier: barriers are made
//! visible by `ttg.nv.fence.mbarrier_init`.
//!
//! Operations on rings (`ttg.stage.*`) have rows too; the fences that they need are placed when a target lowers them.
//!
//! `stmatrix` and `ldmatrix` correspond to `ttg.region.write` and `ttg.region.read`; the creation of a descriptor accesses no
//! shared memory and has no operation.

use super::{Class, OpKind, Proxy};

/// The memory of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum On {
    /// The regions among the operands.
    Regions,
    /// The words of the barriers among the operands.
    Words,
    /// The tensor that is the first operand, or the tensor of the source that is the first operand.
    Tensor,
    /// The stage of a ring.
    Stage,
    /// The shared memory of the tiles among the operands.
    Local,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// The accessed memory.
    pub on: On,
    /// The proxy of the access.
    pub proxy: Proxy,
    /// Whether the access may read.
    pub reads: bool,
    /// Whether the access may write.
    pub writes: bool,
}

/// The ordering effect of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No ordering effect.
    None,
    /// An arrival, which releases the role's earlier accesses.
    Releases,
    /// A wait, which acquires what other threads have released.
    Acquires,
    /// A poll, which tests whether a wait would return at once.
    Polls,
    /// A barrier, which both releases and acquires.
    Synchronizes,
    /// Releases the earlier `cp.async` copies once they are complete.
    ReleasesCopies,
    /// Commits the open group of a class.
    Commits(Class),
    /// Waits until at most a given number of groups of a class are in flight.
    Awaits(Class),
    /// Waits for the group of a token.
    AwaitsToken,
    /// A fence between proxies.
    Fences,
    /// A fence that makes initialised barriers visible to the async proxy and to the cluster.
    FencesWords,
    /// Specializes the warps into roles.
    Specializes,
    /// The end of a role, or of the program.
    Ends,
}

/// The traffic of an operation: at most three accesses, and the ordering effect. An access on [`On::Regions`] of an opaque call is refined by its
/// declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The accesses, at most three.
    pub accesses: [Option<Access>; 3],
    /// The ordering effect.
    pub order: Order,
}

/// The proxy of an operation for an analysis that keeps a single state, not one for each region, as the fence pass does in its
/// compatibility mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Does not change the state.
    None,
    /// May write shared memory through the generic proxy.
    Generic,
    /// Accesses shared memory through the async proxy.
    Async,
}

impl Traffic {
    /// The effect of the operation on that state.
    #[must_use]
    pub fn side(&self) -> Side {
        let shared = self.accesses.iter().flatten().filter(|a| matches!(a.on, On::Regions | On::Stage | On::Local));
        shared.fold(Side::None, |side, access| match access.proxy {
            Proxy::Async => side.max(Side::Async),
            Proxy::Generic if access.writes => side.max(Side::Generic),
            Proxy::Generic | Proxy::Tensormap => side,
        })
    }
}

/// The traffic of an operation, which its row states.
#[must_use]
pub const fn traffic(kind: &OpKind) -> Traffic {
    kind.facts().traffic
}

/// No accesses and no ordering effect.
pub(super) const NO_TRAFFIC: Traffic = order(Order::None);

pub(super) const fn order(order: Order) -> Traffic {
    Traffic { accesses: [None; 3], order }
}

pub(super) const fn one(access: Access) -> Traffic {
    Traffic { accesses: [Some(access), None, None], order: Order::None }
}

pub(super) const fn two(a: Access, b: Access) -> Traffic {
    Traffic { accesses: [Some(a), Some(b), None], order: Order::None }
}

pub(super) const fn three(a: Access, b: Access, c: Access) -> Traffic {
    Traffic { accesses: [Some(a), Some(b), Some(c)], order: Order::None }
}

pub(super) const fn reads(on: On, proxy: Proxy) -> Access {
    Access { on, proxy, reads: true, writes: false }
}

pub(super) const fn writes(on: On, proxy: Proxy) -> Access {
    Access { on, proxy, reads: false, writes: true }
}

/// Reads and writes.
pub(super) const fn updates(on: On, proxy: Proxy) -> Access {
    Access { on, proxy, reads: true, writes: true }
}
