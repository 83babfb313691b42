//! tidy: table
//! The dialect of NVIDIA in the lane IR: operations that other machines do not have, each with its contract.
//!
//! A back end of another vendor rejects them all. The words are those of [`OpKind`], which contains them.
//!
//! An mbarrier is an opaque object of 8 bytes in shared memory, aligned to 8. It counts arrivals; with the last expected arrival a *phase*
//! completes and the next one begins. The parities of the phases are 0, 1, 0, … from [`NvOp::MbarrierInit`] on; the phase before the
//! first one has parity 1 and counts as complete. A waiting thread must not be more than one phase behind.

pub(super) mod print;
pub(super) mod types;

use super::family::{Barrier, Copying, Family, Grouped};
use super::op::{MmaAtom, OpKind};
use super::uniform::Level;

/// The place of an operand of a warpgroup's MMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupOperand {
    /// In registers, each warp with its own 16 rows of A, as for [`OpKind::Mma`]. Only for A.
    Registers,
    /// In shared memory, given by a matrix descriptor. If transposed, rows (for B: columns) are contiguous in memory, otherwise elements
    /// along K are.
    Shared {
        /// Whether it is transposed; only for 16-bit elements.
        transposed: bool,
    },
}

/// A matrix instruction of a warpgroup: four consecutive warps, of which the first number is a multiple of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupMma {
    /// The shape and element types. M is 64, and N a multiple of 8 up to 256.
    pub atom: MmaAtom,
    /// The place of A.
    pub a: GroupOperand,
    /// Whether B is transposed; B is always in shared memory.
    pub b_transposed: bool,
    /// Whether C is zero; the operation then has no operand C.
    pub fresh: bool,
}

impl GroupMma {
    /// The number of warps of a warpgroup.
    pub const WARPS: u32 = 4;
    /// The number of rows of D.
    pub const M: u32 = 64;

    /// The numbers of registers of A and of D in each lane, for 32 lanes per warp: a register of A is a packed word, one of D an element.
    #[must_use]
    pub const fn registers(&self) -> (usize, usize) {
        let a = match self.a {
            GroupOperand::Registers => 4,
            GroupOperand::Shared { .. } => 0,
        };
        (a, self.atom.n as usize / 2)
    }
}

/// The kind of an operation of NVIDIA's dialect, with its attributes. `a`, `b` and `p` are operands as for [`OpKind`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NvOp {
    /// Starts a copy of 4, 8 or 16 bytes from the global address `b` to the shared address `a + offset`; both are multiples of the size. If
    /// masked and `p` is false, it writes zeros and reads nothing.
    CopyAsync {
        /// The size in bytes.
        bytes: u8,
        /// The offset from the shared address in bytes.
        offset: i32,
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// Commits this thread's open group of copies.
    CopyCommit,
    /// Waits until at most `n` of this thread's latest groups are in flight. Other threads see the copied bytes after a barrier.
    CopyWait(u32),
    /// Arrives at the mbarrier at `a` once all copies that this thread has started before are complete, whether their groups are committed
    /// or not. It does not wait. The arrival is one of those that the phase expects. If masked and `p` is false, it has no effect.
    CopyArrive {
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// Initialises an mbarrier in the 8 bytes at `a`, which must not be one already: each phase expects `count` arrivals. One thread
    /// executes it, and a barrier must separate it from every use.
    MbarrierInit {
        /// The arrival count, from 1 to 2²⁰ − 1.
        count: u32,
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// Ends the lifetime of the mbarrier at `a`; its 8 bytes become ordinary memory. One thread executes it, and a barrier must separate
    /// every use from it.
    MbarrierInvalidate {
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// Arrives `count` times at the mbarrier at `a`, with release semantics: a thread that waits for the phase observes all accesses of
    /// this thread before the arrival, and those that it has observed. The phase must expect at least `count` more arrivals.
    MbarrierArrive {
        /// The number of arrivals, from 1 to 2²⁰ − 1; some targets support only 1.
        count: u32,
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// Waits until the phase with parity `b` (`b32`, 0 or 1) of the mbarrier at `a` is complete, with acquire semantics. Each lane waits
    /// separately; they reconverge after the wait.
    MbarrierWait,
    /// Adds to the bytes that the current phase of the mbarrier at `a` expects, then arrives once. Release semantics as for
    /// [`NvOp::MbarrierArrive`].
    MbarrierExpect {
        /// The number of bytes.
        bytes: u32,
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// Makes the mbarriers that this thread has initialised visible to bulk copies, and to the cluster.
    MbarrierFence,
    /// Arrives once at the mbarrier at `a`, an address in the cluster, with release semantics at cluster scope.
    MbarrierArriveCluster {
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// The address in the cluster (`b32`) of the same shared address `a` in the program of rank `b`.
    MapCluster,
    /// Arrives at the barrier of the cluster, which counts the threads of all its programs. Release semantics.
    ClusterArrive,
    /// Waits at the barrier of the cluster, after an arrival. Acquire semantics.
    ClusterWait,
    /// The address of a tensor map of the function, `b64`.
    TensorMap(u32),
    /// The address of an entry of the table that was made of this tensor map of the function before it runs, `b64`; the operand is the number
    /// of the entry, which must exist. The entry is acquired, so that bulk copies of this thread see it.
    MapEntry(u32),
    /// Makes an entry of the table of this tensor map of the function: the same map with other extents along `axes`. The operands are the
    /// number of the entry, and an extent for each axis, at least 1. The entry is released, so that kernels that run later may acquire it.
    MakeMap {
        /// The tensor map.
        map: u32,
        /// The axes of the tensor, as in its shape.
        axes: Vec<u8>,
    },
    /// Starts a bulk copy of a box of a tensor. Operands are the address of its tensor map (`b64`), the shared address of the box, a
    /// multiple of 128, the mbarrier at which its bytes are counted, and a `b32` coordinate for each axis, the fastest axis first. Elements
    /// outside of the tensor are zeros. The box is written through the async proxy.
    BulkLoad {
        /// The number of axes of the tensor: 1 to 5.
        rank: u8,
        /// The programs of the cluster that receive the box and its bytes, at the same addresses in their shared memory, as a bit mask; 0
        /// means this program alone.
        multicast: u16,
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// Starts a bulk copy to a box of a tensor, in the thread's open group of bulk stores. Operands are the address of its tensor map
    /// (`b64`), the shared address of the box, a multiple of 128, and a `b32` coordinate for each axis, the fastest axis first. Elements
    /// outside of the tensor are not written. The box is read through the async proxy.
    BulkStore {
        /// The number of axes of the tensor: 1 to 5.
        rank: u8,
    },
    /// Commits this thread's open group of bulk stores.
    BulkCommit,
    /// Waits until at most `n` of this thread's latest groups of bulk stores are in flight.
    BulkWait {
        /// The number of groups that may stay in flight.
        n: u32,
        /// Whether the wait is only for reads of shared memory, and not for writes to the tensor.
        read: bool,
    },
    /// Orders accesses to shared memory through the generic proxy that this thread has made, or observed, before later ones through the async
    /// proxy: those of its own program, or of all programs of the cluster.
    ProxyFence {
        /// Whether those of other programs of the cluster are ordered too.
        cluster: bool,
    },
    /// Whether this lane is the elected one of its warp; it is always the same lane. Convergent.
    Elect,
    /// Orders accesses to registers before later MMAs of the warpgroup that use them. Convergent for a warpgroup.
    GroupFence,
    /// Starts an MMA of a warpgroup. Operands are the descriptor of A (`b64`) or its registers, the descriptor of B (`b64`), and, unless it
    /// is fresh, the registers of C. The results are in flight: they may only be operands C of other MMAs, be carried by loops and
    /// branches, and be operands of a wait. Convergent for a warpgroup.
    GroupMma(GroupMma),
    /// Commits the warpgroup's open group of MMAs. Convergent for a warpgroup.
    GroupCommit,
    /// Waits until at most `n` of the warpgroup's latest groups are in flight. Operands are results of MMAs that are complete after the
    /// wait, and its results are the same registers as ordinary values. Convergent for a warpgroup.
    GroupWait(u32),
    /// Changes the number of registers of each thread of the warpgroup; an increase waits until they are available. Convergent for a
    /// warpgroup.
    SetMaxRegisters {
        /// The number of registers: a multiple of 8 from 24 to 256.
        registers: u32,
        /// Whether the number is increased.
        more: bool,
    },
    /// Loads `n` (1, 2 or 4) 8×8 matrices of 16-bit elements from shared memory as fragments of a warp: lane `8 i + r` provides the address
    /// of row `r` of matrix `i`, 16 bytes aligned to 16. Lane `l` receives the elements `2 (l mod 4)` and `2 (l mod 4) + 1` of row `l / 4`,
    /// of the matrix or of its transpose. Convergent.
    LoadMatrix {
        /// The number of matrices.
        n: u8,
        /// Whether each matrix is transposed.
        transposed: bool,
        /// The offset from the address in bytes.
        offset: i32,
    },
    /// Stores matrices in the format of [`NvOp::LoadMatrix`]; operands are the address, and the words of `n` matrices. Convergent.
    StoreMatrix {
        /// The number of matrices.
        n: u8,
        /// Whether each matrix is transposed.
        transposed: bool,
        /// The offset from the address in bytes.
        offset: i32,
    },
    /// The barrier `id`, at which `threads` threads arrive. Warps that do not wait only arrive, and their earlier accesses are visible to
    /// those that wait. Convergent for each warp. All warps that arrive for the same phase must state the same number of threads, and their
    /// threads must add up to it.
    NamedBarrier {
        /// The number of the barrier, from 1 to 15.
        id: u8,
        /// The number of participating threads: a multiple of the lanes of a warp, at most the threads of the program.
        threads: u32,
        /// Whether the warp waits.
        wait: bool,
    },
}

impl NvOp {
    /// The family of the operation.
    pub(super) fn family(&self) -> Family<'_> {
        match self {
            NvOp::TensorMap(_) | NvOp::MapEntry(_) | NvOp::MapCluster => Family::Pure,
            NvOp::Elect => Family::Warp,
            NvOp::LoadMatrix { .. } => Family::Matrix { write: false },
            NvOp::StoreMatrix { .. } => Family::Matrix { write: true },
            NvOp::CopyAsync { .. } | NvOp::BulkLoad { .. } => Family::Copy(Copying::Fill),
            NvOp::BulkStore { .. } => Family::Copy(Copying::Drain),
            NvOp::CopyCommit => Family::Copy(Copying::CommitFills),
            NvOp::BulkCommit => Family::Copy(Copying::CommitDrains),
            NvOp::CopyWait(n) => Family::Copy(Copying::AwaitFills(*n)),
            NvOp::BulkWait { n, .. } => Family::Copy(Copying::AwaitDrains(*n)),
            NvOp::CopyArrive { .. }
            | NvOp::MbarrierInit { .. }
            | NvOp::MbarrierInvalidate { .. }
            | NvOp::MbarrierArrive { .. }
            | NvOp::MbarrierArriveCluster { .. }
            | NvOp::MbarrierWait
            | NvOp::MbarrierExpect { .. } => Family::Protocol,
            NvOp::MbarrierFence
            | NvOp::ProxyFence { .. }
            | NvOp::ClusterArrive
            | NvOp::ClusterWait
            | NvOp::MakeMap { .. } => Family::Order,
            NvOp::GroupMma(mma) => Family::Group(Grouped::Mma(mma)),
            NvOp::GroupWait(n) => Family::Group(Grouped::Await(*n)),
            NvOp::GroupCommit => Family::Group(Grouped::Commit),
            NvOp::GroupFence | NvOp::SetMaxRegisters { .. } => Family::Group(Grouped::Plain),
            NvOp::NamedBarrier { id, threads, wait } => {
                Family::Barrier(Barrier::Named { id: *id, threads: *threads, wait: *wait })
            }
        }
    }

    /// The level of the results, if it does not follow from the operands.
    pub(super) const fn level(&self) -> Option<Level> {
        match self {
            NvOp::LoadMatrix { .. } | NvOp::Elect | NvOp::GroupMma(_) => Some(Level::Lane),
            NvOp::CopyAsync { .. }
            | NvOp::CopyCommit
            | NvOp::CopyWait(_)
            | NvOp::CopyArrive { .. }
            | NvOp::MbarrierInit { .. }
            | NvOp::MbarrierInvalidate { .. }
            | NvOp::MbarrierArrive { .. }
            | NvOp::MbarrierWait
            | NvOp::MbarrierExpect { .. }
            | NvOp::MbarrierFence
            | NvOp::MapCluster
            | NvOp::MbarrierArriveCluster { .. }
            | NvOp::ClusterArrive
            | NvOp::ClusterWait
            | NvOp::TensorMap(_)
            | NvOp::MapEntry(_)
            | NvOp::MakeMap { .. }
            | NvOp::BulkLoad { .. }
            | NvOp::BulkStore { .. }
            | NvOp::BulkCommit
            | NvOp::BulkWait { .. }
            | NvOp::StoreMatrix { .. }
            | NvOp::ProxyFence { .. }
            | NvOp::GroupFence
            | NvOp::GroupCommit
            | NvOp::GroupWait(_)
            | NvOp::SetMaxRegisters { .. }
            | NvOp::NamedBarrier { .. } => None,
        }
    }
}

impl From<NvOp> for OpKind {
    fn from(op: NvOp) -> OpKind {
        OpKind::Nv(op)
    }
}
