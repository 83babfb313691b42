//! tidy: table
//! The memory accesses of each operation, with their proxies, and its ordering effects: the table that the proxy analysis reads
//! ([`crate::analysis::proxy`]). A new operation gets its row here, and nowhere else. The matches have no wildcard arm, so that the
//! compiler reports a missing row.
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

use super::region::RegionOp;
use super::{AmdOp, CallProxy, Class, LocalOp, NvOp, OpKind, Proxy, Tcgen05Op, TtgOp};

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

/// A row: at most three accesses, and the ordering effect. An access on [`On::Regions`] of an opaque call is refined by its
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
    const NONE: Traffic = Traffic { accesses: [None; 3], order: Order::None };

    const fn order(order: Order) -> Traffic {
        Traffic { accesses: [None; 3], order }
    }

    const fn one(access: Access) -> Traffic {
        Traffic { accesses: [Some(access), None, None], order: Order::None }
    }

    const fn two(a: Access, b: Access) -> Traffic {
        Traffic { accesses: [Some(a), Some(b), None], order: Order::None }
    }

    const fn three(a: Access, b: Access, c: Access) -> Traffic {
        Traffic { accesses: [Some(a), Some(b), Some(c)], order: Order::None }
    }

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

const fn reads(on: On, proxy: Proxy) -> Access {
    Access { on, proxy, reads: true, writes: false }
}

const fn writes(on: On, proxy: Proxy) -> Access {
    Access { on, proxy, reads: false, writes: true }
}

/// The row of an operation.
#[must_use]
pub const fn traffic(kind: &OpKind) -> Traffic {
    match kind {
        OpKind::Load(..) | OpKind::Get | OpKind::GatherRows { .. } | OpKind::Gather => {
            Traffic::one(reads(On::Tensor, Proxy::Generic))
        }
        // A store may also read its tile from shared memory.
        OpKind::Store(_) => Traffic::two(writes(On::Tensor, Proxy::Generic), reads(On::Local, Proxy::Generic)),
        OpKind::Set | OpKind::ScatterRows | OpKind::Scatter => Traffic::one(writes(On::Tensor, Proxy::Generic)),
        OpKind::Atomic(_) | OpKind::AtomicTile(_) => {
            Traffic::one(Access { on: On::Tensor, proxy: Proxy::Generic, reads: true, writes: true })
        }
        OpKind::Ttg(op) => ttg(op),
        OpKind::Local(op) => match op {
            LocalOp::Store => Traffic::one(writes(On::Local, Proxy::Generic)),
            LocalOp::Load => Traffic::one(reads(On::Local, Proxy::Generic)),
            LocalOp::Copy { .. } => Traffic::two(writes(On::Local, Proxy::Generic), reads(On::Tensor, Proxy::Generic)),
            LocalOp::Alloc { .. }
            | LocalOp::Guard
            | LocalOp::Slice { .. }
            | LocalOp::Reshape(_)
            | LocalOp::Stack
            | LocalOp::Mma
            | LocalOp::Convert
            | LocalOp::Fold { .. } => Traffic::NONE,
        },
        OpKind::Region(op) => region(op),
        OpKind::Nv(op) => nv(op),
        OpKind::Amd(op) => amd(op),
        OpKind::Print(_) => Traffic::one(reads(On::Local, Proxy::Generic)),
        OpKind::Return => Traffic::order(Order::Ends),
        // The offsets of segments are read from tensors that no bulk copy of a region writes.
        OpKind::Segment | OpKind::RaggedCount { .. } | OpKind::RaggedTile { .. } => Traffic::NONE,
        OpKind::Const(_)
        | OpKind::ProgramId(_)
        | OpKind::NumPrograms(_)
        | OpKind::Dim(_)
        | OpKind::Present
        | OpKind::Iota(_)
        | OpKind::Splat(_)
        | OpKind::Unary(_)
        | OpKind::Binary(_)
        | OpKind::Cmp(_)
        | OpKind::Select
        | OpKind::MulAdd
        | OpKind::Cast(_)
        | OpKind::Bitcast(_)
        | OpKind::Reshape(_)
        | OpKind::Broadcast { .. }
        | OpKind::Permute(_)
        | OpKind::Interleave
        | OpKind::Split
        | OpKind::Reduce(..)
        | OpKind::ArgReduce(..)
        | OpKind::ReduceWith(_)
        | OpKind::Scan(..)
        | OpKind::ScanWith(_)
        | OpKind::Mma
        | OpKind::Index(_)
        | OpKind::Slice(_)
        | OpKind::Shared
        | OpKind::Unflatten
        | OpKind::UnflattenGrouped(_)
        | OpKind::Assert(_)
        | OpKind::For(_)
        | OpKind::Loop
        | OpKind::If
        | OpKind::Yield
        | OpKind::Break(_)
        | OpKind::Continue(_) => Traffic::NONE,
    }
}

const fn ttg(op: &TtgOp) -> Traffic {
    match op {
        TtgOp::AsyncProduce { proxy, .. } => Traffic::one(writes(On::Stage, *proxy)),
        TtgOp::Fill(_) | TtgOp::Write => Traffic::one(writes(On::Stage, Proxy::Generic)),
        TtgOp::Read => Traffic::one(reads(On::Stage, Proxy::Generic)),
        TtgOp::ComputeIssue | TtgOp::AccMma => Traffic::one(reads(On::Stage, Proxy::Async)),
        TtgOp::StoreIssue(_) => Traffic::two(reads(On::Stage, Proxy::Async), writes(On::Tensor, Proxy::Async)),
        TtgOp::Fence { .. } => Traffic::order(Order::Fences),
        TtgOp::Roles => Traffic::order(Order::Specializes),
        TtgOp::Finalize => Traffic::order(Order::Ends),
        // Rings have their own protocol; the ordering of their operations is checked by the verifier.
        TtgOp::Source(..)
        | TtgOp::SourceRows { .. }
        | TtgOp::Acquire(_)
        | TtgOp::Ready(_)
        | TtgOp::WaitReady
        | TtgOp::Poisoned
        | TtgOp::ReadPerm
        | TtgOp::Split(_)
        | TtgOp::Join
        | TtgOp::View { .. }
        | TtgOp::Consumed
        | TtgOp::Release
        | TtgOp::ComputeWait
        | TtgOp::AccStart(_)
        | TtgOp::AccFinish
        | TtgOp::StoreWait
        | TtgOp::Claim(..)
        | TtgOp::Rematerialize => Traffic::NONE,
    }
}

const fn region(op: &RegionOp) -> Traffic {
    match op {
        RegionOp::Place { .. } | RegionOp::At | RegionOp::Tile { .. } => Traffic::NONE,
        RegionOp::Read => Traffic::one(reads(On::Regions, Proxy::Generic)),
        RegionOp::Write => Traffic::one(writes(On::Regions, Proxy::Generic)),
        RegionOp::Call(call) => {
            let proxy = match call.declared() {
                CallProxy::Generic => Proxy::Generic,
                CallProxy::Async => Proxy::Async,
                CallProxy::None => return Traffic::NONE,
            };
            Traffic::one(Access { on: On::Regions, proxy, reads: true, writes: true })
        }
        RegionOp::Wait => Traffic::order(Order::AwaitsToken),
    }
}

const fn nv(op: &NvOp) -> Traffic {
    match op {
        NvOp::MbarrierInit { .. } | NvOp::MbarrierInval => Traffic::one(writes(On::Words, Proxy::Generic)),
        NvOp::Arrive { .. }
        | NvOp::ArriveCluster { .. }
        | NvOp::ArriveExpectTx { .. }
        | NvOp::BarrierArrive { .. }
        | NvOp::ClusterArrive => Traffic::order(Order::Releases),
        NvOp::MbarrierWait | NvOp::WaitParity | NvOp::ClusterWait => Traffic::order(Order::Acquires),
        NvOp::TryWait | NvOp::TestWait => Traffic::order(Order::Polls),
        NvOp::BarrierSync { .. } => Traffic::order(Order::Synchronizes),
        NvOp::SequenceInit => Traffic::one(writes(On::Regions, Proxy::Generic)),
        NvOp::SequenceStore => Traffic::order(Order::Releases),
        NvOp::SequenceWait => Traffic::order(Order::Acquires),
        NvOp::FenceMbarrierInit => Traffic::order(Order::FencesWords),
        // The operands of copies and MMAs are regions, or tiles in regions; the row lists both.
        NvOp::BulkLoad { .. } => Traffic::three(
            writes(On::Regions, Proxy::Async),
            writes(On::Local, Proxy::Async),
            reads(On::Tensor, Proxy::Async),
        ),
        NvOp::BulkStore { .. } => Traffic::three(
            reads(On::Regions, Proxy::Async),
            reads(On::Local, Proxy::Async),
            writes(On::Tensor, Proxy::Async),
        ),
        NvOp::CpAsync { .. } => Traffic::two(writes(On::Regions, Proxy::Generic), reads(On::Tensor, Proxy::Generic)),
        NvOp::CpAsyncArrive { .. } => Traffic::order(Order::ReleasesCopies),
        NvOp::Wgmma => Traffic::two(reads(On::Regions, Proxy::Async), reads(On::Local, Proxy::Async)),
        NvOp::Commit { group, .. } => Traffic::order(Order::Commits(group.class())),
        NvOp::WaitGroup { group, .. } => Traffic::order(Order::Awaits(group.class())),
        // These read regions. Tensor memory is outside of this table.
        NvOp::Tcgen05(Tcgen05Op::Mma(_) | Tcgen05Op::Copy { .. }) => Traffic::one(reads(On::Regions, Proxy::Async)),
        // A commit orders nothing except the completion of MMAs and copies.
        NvOp::Tcgen05(
            Tcgen05Op::Commit { .. }
            | Tcgen05Op::Alloc { .. }
            | Tcgen05Op::Dealloc { .. }
            | Tcgen05Op::Relinquish { .. }
            | Tcgen05Op::Load { .. }
            | Tcgen05Op::Store { .. }
            | Tcgen05Op::Shift { .. }
            | Tcgen05Op::WaitLoad
            | Tcgen05Op::WaitStore
            | Tcgen05Op::FenceBefore
            | Tcgen05Op::FenceAfter,
        ) => Traffic::NONE,
        // `expect_tx` does not release the role's earlier accesses.
        NvOp::ExpectTx { .. }
        | NvOp::ClusterRank
        | NvOp::MbarrierAlloc { .. }
        | NvOp::MbarrierAt
        | NvOp::WgmmaFence
        // The lanes of a warp count as one thread of control here.
        | NvOp::WarpSync
        | NvOp::SetMaxNReg { .. } => Traffic::NONE,
    }
}

/// gfx942 has one proxy, so that no fences between proxies are needed.
const fn amd(op: &AmdOp) -> Traffic {
    match op {
        AmdOp::BufferLoadLds { .. } => {
            Traffic::two(writes(On::Regions, Proxy::Generic), reads(On::Tensor, Proxy::Generic))
        }
        AmdOp::DsRead { .. } => Traffic::one(reads(On::Regions, Proxy::Generic)),
        AmdOp::DsWrite { .. } => Traffic::one(writes(On::Regions, Proxy::Generic)),
        AmdOp::Barrier => Traffic::order(Order::Synchronizes),
        AmdOp::Waitcnt { .. } | AmdOp::Mfma | AmdOp::SetPrio { .. } => Traffic::NONE,
    }
}
