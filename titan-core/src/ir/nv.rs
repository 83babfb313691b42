//! The dialect `ttg.nv`: mbarriers, bulk and asynchronous copies, warpgroup MMAs and named barriers of NVIDIA GPUs.
//!
//! A role acts as one thread of control. Where several of its threads act, the operation states their number: an arrival has a number of
//! `arrivals`, and a named barrier counts the threads of the participating roles.
//!
//! *Mbarriers* (PTX ISA, "mbarrier"): a barrier has a phase, a count of pending arrivals and a signed transaction count in bytes. The phase
//! completes when both are zero; then the arrival count is reset. A wait names the phase by the state that an arrival returned, or by its
//! parity: phase 0 has parity 0; the phase before the first one has parity 1 and counts as complete.
//!
//! *Clusters*: the programs of a cluster run concurrently and execute the same code. An operation names barriers and slots in the shared
//! memory of its own program; in the other programs of the cluster it means those at the same addresses.
//!
//! Deliberately absent: tensor maps and descriptors, which follow from the encodings of tiles.

use super::region::Class;
use super::tcgen05::Tcgen05Op;
use crate::named_enum::named_enum;

named_enum! {
    /// Asynchronous operations that complete in order, in groups.
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
    /// The class of these groups.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            NvGroup::CpAsync => Class::CpAsync,
            NvGroup::Wgmma => Class::Wgmma,
            NvGroup::BulkStore => Class::BulkStore,
        }
    }
}

/// A bulk copy of one in every few elements along an axis (`elementStrides` of a tensor map), as a program states it whose operands are
/// regions. Boxes divide the axis, beginning at element 0; a copy from coordinate `x` takes the elements `x`, `x + every`, .., as many as
/// a box has, rounded up, and so possibly elements of the next box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// The axis of the tensor.
    pub along: u8,
    /// The extent of the boxes along it, in elements of the tensor; 0 if no box is stated.
    pub boxed: u32,
    /// The distance of the elements that are copied.
    pub every: u32,
    /// Whether positions of the tile beyond the end of the box must hold zero.
    pub zeros: bool,
}

impl Strided {
    /// No box is stated.
    pub const NONE: Strided = Strided { along: 0, boxed: 0, every: 1, zeros: false };
}

/// An operation of the dialect. Its operands, results and meaning are a row of [`super::op_table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NvOp {
    /// Declares barriers in the words of a region.
    MbarrierAlloc {
        /// The offset of the first barrier in the region, in bytes.
        at: u32,
        /// The number of barriers.
        n: u32,
    },
    /// Selects one barrier of an array.
    MbarrierAt,
    /// Initialises barriers with an arrival count.
    MbarrierInit {
        /// The number of arrivals that complete a phase.
        count: u32,
    },
    /// Invalidates the barriers.
    MbarrierInval,
    /// Arrives at a barrier.
    Arrive {
        /// The number of arrivals.
        arrivals: u32,
    },
    /// Arrives at this barrier in each program of the cluster.
    ArriveCluster {
        /// The number of arrivals at each of these barriers.
        arrivals: u32,
    },
    /// Adds to the transaction count (`expect_tx`), and arrives once.
    ArriveExpectTx {
        /// The bytes that are added to the transaction count.
        bytes: u32,
    },
    /// Adds to the transaction count.
    ExpectTx {
        /// The bytes that are added to the transaction count.
        bytes: u32,
    },
    /// Waits for the phase that a state identifies.
    MbarrierWait,
    /// Waits for the phase with a given parity.
    WaitParity,
    /// Tests whether the phase with a given parity is complete; may suspend the thread for a limited time (`try_wait`).
    TryWait,
    /// Tests whether the phase with a given parity is complete, without suspending the thread (`test_wait`).
    TestWait,
    /// Makes initialised barriers visible to the async proxy and to the cluster.
    FenceMbarrierInit,

    /// A bulk copy into shared memory, which signals its bytes to an mbarrier: from a tensor to a region, or from a tile of a tensor to a
    /// tile in shared memory, with one instruction for each panel of the tile's encoding.
    BulkLoad {
        /// Whether it is a tensor copy (`cp.async.bulk.tensor`), which addresses its source by a tensor map.
        tensor: bool,
        /// The size of the copy in bytes.
        bytes: u32,
        /// The programs of the cluster that receive the data, as a bit mask; 0 means this program alone. In a multicast, a tile is divided
        /// along its first axis into as many equal parts as the cluster has programs. Each program copies the part of its rank to all of
        /// them, so that `bytes`, the whole tile, arrive in each.
        multicast: u16,
        /// The elements of the box that are copied, if the program states a box.
        strided: Strided,
    },
    /// A bulk copy out of shared memory, in the open group: from a region, or from a tile in shared memory to a tile of a tensor.
    BulkStore {
        /// Whether it is a tensor copy (`cp.async.bulk.tensor`), which addresses its destination by a tensor map.
        tensor: bool,
        /// The size of the copy in bytes.
        bytes: u32,
    },
    /// A copy by `cp.async`, in the open group.
    CpAsync {
        /// The size of the copy in bytes.
        bytes: u32,
    },
    /// Arrives at a barrier once all earlier `cp.async` copies of the executing threads are complete.
    CpAsyncArrive {
        /// Whether the arrivals are included in the barrier's count (`.noinc`).
        noinc: bool,
        /// The number of arrivals: one for each thread of the role.
        arrivals: u32,
    },
    /// Orders register accesses before MMAs that use them.
    WgmmaFence,
    /// Starts an MMA on operands in shared memory, in the open group. With regions as operands it is only verified, not lowered. With
    /// tiles, A may be in registers, and the accumulator may be the result of an MMA in flight; the result is in flight.
    Wgmma,
    /// Commits the open group of a class.
    Commit {
        /// The class of the group.
        group: NvGroup,
        /// The number of the group's token.
        n: u32,
    },
    /// Waits until at most `n` groups of a class are in flight. Its operands are the results of the MMAs that are complete after the wait,
    /// and its results are these tiles.
    WaitGroup {
        /// The class of the groups.
        group: NvGroup,
        /// The number of groups that may stay in flight.
        n: u32,
        /// For bulk stores: whether the wait is only for their reads of shared memory, and not for their writes (`.read`).
        read: bool,
    },

    /// Arrives at a named barrier and waits for all participating threads.
    BarrierSync {
        /// The number of the barrier.
        id: u8,
        /// The number of participating threads.
        threads: u32,
    },
    /// Arrives at a named barrier without waiting.
    BarrierArrive {
        /// The number of the barrier.
        id: u8,
        /// The number of participating threads.
        threads: u32,
    },
    /// The rank of this program in its cluster.
    ClusterRank,
    /// Arrives at the cluster barrier.
    ClusterArrive,
    /// Waits at the cluster barrier.
    ClusterWait,
    /// Synchronizes the lanes of each warp of the role (`bar.warp.sync`).
    WarpSync,
    /// Sets the counters in the words of a region to 0; one thread does it.
    SequenceInit,
    /// Stores to a counter with release semantics for the role's earlier accesses; one thread does it.
    SequenceStore,
    /// Waits until a counter has at least a given value, with acquire semantics.
    SequenceWait,
    /// Sets the number of registers of each thread of the role, as its first operation (`setmaxnreg`). An increase waits until other roles
    /// have released enough registers.
    SetMaxNReg {
        /// The number of registers per thread.
        registers: u32,
    },
    /// An operation on tensor memory.
    Tcgen05(Tcgen05Op),
}
