//! The dialect `ttg.nv`: mbarriers, bulk and asynchronous copies, warpgroup products and named barriers as the hardware has
//! them, for programs that state their protocol themselves.
//!
//! A role acts as one thread of control. Where many of its threads act, the operation says how many: an arrival has a number
//! of `arrivals`, a named barrier counts the threads of the roles that come to it.
//!
//! *Mbarriers* (PTX ISA, "mbarrier"): a barrier has a phase, a count of arrivals that are still missing and a signed count of
//! bytes. The phase completes when both are zero; then the count starts again. Phases are waited for by the state that an
//! arrival gave, or by their parity: phase 0 has parity 0, and the one before the first, which counts as complete, 1.
//!
//! Deliberately absent: tensor maps, swizzles and descriptors, which say what is copied, not when; and other programs of a
//! cluster, of which only the rendezvous is here.

use super::region::{Class, Completion};
use super::{Effect, Proxy};
use crate::named_enum::named_enum;

named_enum! {
    /// What is closed into groups that complete in order.
    NvGroup {
        /// `cp.async`.
        CpAsync = "cp_async",
        /// Products of a warpgroup.
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

/// An operation of the dialect. What each takes, gives and means is a row of [`super::op_table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NvOp {
    /// Barriers, in the words of a region.
    MbarrierAlloc {
        /// Which byte of the region is the first.
        at: u32,
        /// How many.
        n: u32,
    },
    /// One of them.
    MbarrierAt,
    /// Makes barriers of so many arrivals a phase.
    MbarrierInit {
        /// Arrivals of a phase.
        count: u32,
    },
    /// Invalidates the barriers.
    MbarrierInval,
    /// Arrives.
    Arrive {
        /// Number of arrivals.
        arrivals: u32,
    },
    /// Announces bytes, and arrives once.
    ArriveExpectTx {
        /// How many.
        bytes: u32,
    },
    /// Announces bytes.
    ExpectTx {
        /// How many.
        bytes: u32,
    },
    /// Waits for the phase of a state.
    MbarrierWait,
    /// Waits for the phase of a parity.
    WaitParity,
    /// Whether that phase is complete; may wait a while.
    TryWait,
    /// Whether that phase is complete.
    TestWait,
    /// Makes initialised barriers known to the async proxy and to the cluster.
    FenceMbarrierInit,

    /// A bulk copy into shared memory, which brings its bytes to a barrier.
    BulkLoad {
        /// Whether a tensor map says where.
        tensor: bool,
        /// How many.
        bytes: u32,
        /// To which programs of the cluster; 0 is this one alone.
        multicast: u16,
    },
    /// A bulk copy out of shared memory, of the open group.
    BulkStore {
        /// Whether a tensor map says where.
        tensor: bool,
        /// How many.
        bytes: u32,
    },
    /// A copy by `cp.async`, of the open group.
    CpAsync {
        /// How many bytes.
        bytes: u32,
    },
    /// Arrives when all earlier `cp.async` are done.
    CpAsyncArrive {
        /// Whether the arrivals are those that the barrier counts.
        noinc: bool,
        /// Number of arrivals: one for each thread of the role.
        arrivals: u32,
    },
    /// Orders registers before products that use them.
    WgmmaFence,
    /// Starts a product of what is in shared memory, of the open group.
    Wgmma,
    /// Closes the open group of a class.
    Commit {
        /// Which.
        group: NvGroup,
        /// The number of its token.
        n: u32,
    },
    /// Waits until at most `n` groups of a class are in flight.
    WaitGroup {
        /// Which.
        group: NvGroup,
        /// How many.
        n: u32,
        /// Of bulk stores: until they have read shared memory, not until they have written.
        read: bool,
    },

    /// Comes to a named barrier and waits for all others.
    BarrierSync {
        /// Which.
        id: u8,
        /// How many threads come to it.
        threads: u32,
    },
    /// Comes to a named barrier and goes on.
    BarrierArrive {
        /// Which.
        id: u8,
        /// How many threads come to it.
        threads: u32,
    },
    /// Comes to the barrier of the cluster.
    ClusterArrive,
    /// Waits for all others there.
    ClusterWait,
    /// The lanes of each warp of the role wait for each other.
    WarpSync,
    /// Makes counters of the words of a region, at 0: one thread does.
    SequenceInit,
    /// Stores a counter, after all that the role did before: one thread does.
    SequenceStore,
    /// Waits until a counter is at least a number.
    SequenceWait,
    /// Sets how many registers each thread of the role has.
    SetMaxNReg {
        /// How many.
        registers: u32,
    },
}

impl NvOp {
    /// What the operation may do.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        match self {
            NvOp::MbarrierAlloc { .. } | NvOp::MbarrierAt => Effect::Pure,
            NvOp::BulkStore { .. } => Effect::Write,
            NvOp::MbarrierInit { .. }
            | NvOp::MbarrierInval
            | NvOp::Arrive { .. }
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
            | NvOp::SetMaxNReg { .. } => Effect::Pipeline,
        }
    }

    /// The proxy of the accesses to shared memory (PTX ISA, "Proxies"); `None` if there are none.
    #[must_use]
    pub const fn proxy(&self) -> Option<Proxy> {
        match self {
            // Barrier words are written by ordinary stores when they are made and unmade.
            NvOp::MbarrierInit { .. } | NvOp::MbarrierInval | NvOp::CpAsync { .. } | NvOp::SequenceInit => {
                Some(Proxy::Generic)
            }
            NvOp::BulkLoad { .. } | NvOp::BulkStore { .. } | NvOp::Wgmma => Some(Proxy::Async),
            NvOp::MbarrierAlloc { .. }
            | NvOp::MbarrierAt
            | NvOp::Arrive { .. }
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
            | NvOp::SetMaxNReg { .. } => None,
        }
    }

    /// How the work that the operation starts is known to be done.
    #[must_use]
    pub const fn completion(&self) -> Completion {
        match self {
            NvOp::BulkLoad { .. } | NvOp::CpAsyncArrive { .. } => Completion::Phase,
            NvOp::BulkStore { .. } => Completion::Prefix(Class::BulkStore),
            NvOp::CpAsync { .. } => Completion::Prefix(Class::CpAsync),
            NvOp::Wgmma => Completion::Prefix(Class::Wgmma),
            NvOp::MbarrierAlloc { .. }
            | NvOp::MbarrierAt
            | NvOp::MbarrierInit { .. }
            | NvOp::MbarrierInval
            | NvOp::Arrive { .. }
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
