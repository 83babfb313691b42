//! The dialect `ttg.nv`: mbarriers, bulk and asynchronous copies, warpgroup MMAs and named barriers of NVIDIA GPUs.
//!
//! A role acts as one thread of control. Where many of its threads act, the operation states how many: an arrival has a number
//! of `arrivals`, a named barrier counts the threads of the participating roles.
//!
//! *Mbarriers* (PTX ISA, "mbarrier"): a barrier has a phase, a count of pending arrivals and a signed transaction count in
//! bytes. The phase completes when both are zero; then the arrival count is reset. A phase is waited for by the state that an
//! arrival returned, or by its parity: phase 0 has parity 0, and the one before the first, which counts as complete, has parity 1.
//!
//! *Clusters*: programs of a cluster run at the same time, and run the same code. An operation names barriers and slots of the
//! program's own shared memory; those of other programs are the same ones there.
//!
//! Deliberately absent: tensor maps and descriptors, which follow from the encodings of tiles.

use super::region::{Class, Completion};
use super::tcgen05::Tcgen05Op;
use super::{Effect, Proxy};
use crate::named_enum::named_enum;

named_enum! {
    /// Asynchronous operations that are committed in groups, which complete in order.
    NvGroup {
        /// `cp.async`.
        CpAsync = "cp_async",
        /// MMAs of a warpgroup.
        Wgmma = "wgmma",
        /// Bulk copies out of shared memory.
        BulkStore = "bulk_store",
    }
}

impl NvGroup {
    /// The class of its groups.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            NvGroup::CpAsync => Class::CpAsync,
            NvGroup::Wgmma => Class::Wgmma,
            NvGroup::BulkStore => Class::BulkStore,
        }
    }
}

/// An operation of the dialect. Its operands, results and meaning are a row of [`super::op_table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NvOp {
    /// Declares barriers in the words of a region.
    MbarrierAlloc {
        /// The offset of the first one in the region, in bytes.
        at: u32,
        /// The number of barriers.
        n: u32,
    },
    /// Selects one of them.
    MbarrierAt,
    /// Initialises barriers with an arrival count.
    MbarrierInit {
        /// The arrival count of a phase.
        count: u32,
    },
    /// Invalidates the barriers.
    MbarrierInval,
    /// Arrives at a barrier.
    Arrive {
        /// Number of arrivals.
        arrivals: u32,
    },
    /// Arrives at this barrier in each program of the cluster.
    ArriveCluster {
        /// Number of arrivals at each of them.
        arrivals: u32,
    },
    /// Adds to the transaction count (`expect_tx`), and arrives once.
    ArriveExpectTx {
        /// How many.
        bytes: u32,
    },
    /// Adds to the transaction count.
    ExpectTx {
        /// How many.
        bytes: u32,
    },
    /// Waits for the phase of a state.
    MbarrierWait,
    /// Waits for the phase of a parity.
    WaitParity,
    /// Tests whether that phase is complete; may suspend for a limited time.
    TryWait,
    /// Tests whether that phase is complete.
    TestWait,
    /// Makes initialised barriers visible to the async proxy and to the cluster.
    FenceMbarrierInit,

    /// A bulk copy into shared memory, which completes its bytes at a barrier: to a region, or of a tile of a tensor to a tile in
    /// shared memory, by as many instructions as its encoding has panels.
    BulkLoad {
        /// Whether a tensor map says where.
        tensor: bool,
        /// How many.
        bytes: u32,
        /// To which programs of the cluster, a bit for each; 0 is this one alone. A tile is copied in as many equal parts along its
        /// first axis as the cluster has programs: each of them copies the part of its rank to all of them, so that `bytes`, the
        /// whole tile, arrive in each.
        multicast: u16,
    },
    /// A bulk copy out of shared memory, in the open group: of a region, or of a tile in shared memory to a tile of a tensor.
    BulkStore {
        /// Whether a tensor map says where.
        tensor: bool,
        /// How many.
        bytes: u32,
    },
    /// A copy by `cp.async`, in the open group.
    CpAsync {
        /// How many bytes.
        bytes: u32,
    },
    /// Arrives when all earlier `cp.async` of the thread complete.
    CpAsyncArrive {
        /// Whether the arrivals are included in the barrier's count (`.noinc`).
        noinc: bool,
        /// Number of arrivals: one for each thread of the role.
        arrivals: u32,
    },
    /// Orders register accesses before MMAs that use them.
    WgmmaFence,
    /// Starts an MMA on shared memory, in the open group: of regions, to be checked only, or of tiles. Of tiles, A may be in
    /// registers, and the accumulator that of an MMA in flight; the result is in flight.
    Wgmma,
    /// Commits the open group of a class.
    Commit {
        /// Which.
        group: NvGroup,
        /// The number of its token.
        n: u32,
    },
    /// Waits until at most `n` groups of a class are in flight. Results of MMAs that are complete then are its operands, and its
    /// results are their tiles.
    WaitGroup {
        /// Which.
        group: NvGroup,
        /// How many.
        n: u32,
        /// For bulk stores: waits only until they have read shared memory, not until they have written.
        read: bool,
    },

    /// Arrives at a named barrier and waits for all its threads.
    BarrierSync {
        /// Which.
        id: u8,
        /// The number of participating threads.
        threads: u32,
    },
    /// Arrives at a named barrier without waiting.
    BarrierArrive {
        /// Which.
        id: u8,
        /// The number of participating threads.
        threads: u32,
    },
    /// The number of this program in its cluster.
    ClusterRank,
    /// Arrives at the cluster barrier.
    ClusterArrive,
    /// Waits at the cluster barrier.
    ClusterWait,
    /// A barrier of the lanes of each warp of the role.
    WarpSync,
    /// Initialises counters in the words of a region to 0, by one thread.
    SequenceInit,
    /// Stores a counter with release semantics for the role's earlier accesses, by one thread.
    SequenceStore,
    /// Waits until a counter is at least a number, with acquire semantics.
    SequenceWait,
    /// Sets the number of registers of each thread of the role, as its first operation; waits until other roles have released so many.
    SetMaxNReg {
        /// How many.
        registers: u32,
    },
    /// An operation on tensor memory.
    Tcgen05(Tcgen05Op),
}

impl NvOp {
    /// The effect of the operation.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        match self {
            NvOp::MbarrierAlloc { .. } | NvOp::MbarrierAt | NvOp::ClusterRank => Effect::Pure,
            NvOp::BulkStore { .. } => Effect::Write,
            NvOp::MbarrierInit { .. }
            | NvOp::MbarrierInval
            | NvOp::Arrive { .. }
            | NvOp::ArriveCluster { .. }
            | NvOp::ArriveExpectTx { .. }
            | NvOp::ExpectTx { .. }
            | NvOp::MbarrierWait
            | NvOp::WaitParity
            | NvOp::TryWait
            | NvOp::TestWait
            | NvOp::FenceMbarrierInit
            | NvOp::BulkLoad { .. }
            | NvOp::CpAsync { .. }
            | NvOp::CpAsyncArrive { .. }
            | NvOp::WgmmaFence
            | NvOp::Wgmma
            | NvOp::Commit { .. }
            | NvOp::WaitGroup { .. }
            | NvOp::BarrierSync { .. }
            | NvOp::BarrierArrive { .. }
            | NvOp::ClusterArrive
            | NvOp::ClusterWait
            | NvOp::WarpSync
            | NvOp::SequenceInit
            | NvOp::SequenceStore
            | NvOp::SequenceWait
            | NvOp::SetMaxNReg { .. }
            | NvOp::Tcgen05(_) => Effect::Pipeline,
        }
    }

    /// The proxy of the accesses to shared memory (PTX ISA, "Proxies"); `None` if there are none.
    #[must_use]
    pub const fn proxy(&self) -> Option<Proxy> {
        match self {
            // Initialisation and invalidation of barriers are generic writes.
            NvOp::MbarrierInit { .. } | NvOp::MbarrierInval | NvOp::CpAsync { .. } | NvOp::SequenceInit => {
                Some(Proxy::Generic)
            }
            NvOp::BulkLoad { .. }
            | NvOp::BulkStore { .. }
            | NvOp::Wgmma
            | NvOp::Tcgen05(Tcgen05Op::Mma(_) | Tcgen05Op::Copy { .. }) => Some(Proxy::Async),
            NvOp::MbarrierAlloc { .. }
            | NvOp::MbarrierAt
            | NvOp::Arrive { .. }
            | NvOp::ArriveCluster { .. }
            | NvOp::ClusterRank
            | NvOp::SequenceStore
            | NvOp::ArriveExpectTx { .. }
            | NvOp::ExpectTx { .. }
            | NvOp::MbarrierWait
            | NvOp::WaitParity
            | NvOp::TryWait
            | NvOp::TestWait
            | NvOp::FenceMbarrierInit
            | NvOp::CpAsyncArrive { .. }
            | NvOp::WgmmaFence
            | NvOp::Commit { .. }
            | NvOp::WaitGroup { .. }
            | NvOp::BarrierSync { .. }
            | NvOp::BarrierArrive { .. }
            | NvOp::ClusterArrive
            | NvOp::ClusterWait
            | NvOp::WarpSync
            | NvOp::SequenceWait
            | NvOp::SetMaxNReg { .. }
            | NvOp::Tcgen05(_) => None,
        }
    }

    /// How the asynchronous work of the operation completes.
    #[must_use]
    pub const fn completion(&self) -> Completion {
        match self {
            NvOp::BulkLoad { .. } | NvOp::CpAsyncArrive { .. } => Completion::Phase,
            NvOp::Tcgen05(op) => match op {
                Tcgen05Op::Mma(_) | Tcgen05Op::Copy { .. } | Tcgen05Op::Shift { .. } | Tcgen05Op::Commit { .. } => {
                    Completion::Phase
                }
                Tcgen05Op::Load { .. }
                | Tcgen05Op::Store { .. }
                | Tcgen05Op::Alloc { .. }
                | Tcgen05Op::Dealloc { .. }
                | Tcgen05Op::Relinquish { .. }
                | Tcgen05Op::WaitLoad
                | Tcgen05Op::WaitStore
                | Tcgen05Op::FenceBefore
                | Tcgen05Op::FenceAfter => Completion::Immediate,
            },
            NvOp::BulkStore { .. } => Completion::Prefix(Class::BulkStore),
            NvOp::CpAsync { .. } => Completion::Prefix(Class::CpAsync),
            NvOp::Wgmma => Completion::Prefix(Class::Wgmma),
            NvOp::MbarrierAlloc { .. }
            | NvOp::MbarrierAt
            | NvOp::MbarrierInit { .. }
            | NvOp::MbarrierInval
            | NvOp::Arrive { .. }
            | NvOp::ArriveCluster { .. }
            | NvOp::ClusterRank
            | NvOp::ArriveExpectTx { .. }
            | NvOp::ExpectTx { .. }
            | NvOp::MbarrierWait
            | NvOp::WaitParity
            | NvOp::TryWait
            | NvOp::TestWait
            | NvOp::FenceMbarrierInit
            | NvOp::WgmmaFence
            | NvOp::Commit { .. }
            | NvOp::WaitGroup { .. }
            | NvOp::BarrierSync { .. }
            | NvOp::BarrierArrive { .. }
            | NvOp::ClusterArrive
            | NvOp::ClusterWait
            | NvOp::WarpSync
            | NvOp::SequenceInit
            | NvOp::SequenceStore
            | NvOp::SequenceWait
            | NvOp::SetMaxNReg { .. } => Completion::Immediate,
        }
    }
}
