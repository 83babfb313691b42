//! The dialect of each operation, and the numbers in operations that hardware limits.
//!
//! Passes and rules that treat most operations alike match on [`Family`] without a wildcard arm: the compiler then reports each place where
//! a new operation of a dialect must be handled; a new operation on data is handled by its [`Effect`]. Deliberately absent: the accesses of
//! operations to memory ([`super::traffic`]).

use super::{AmdOp, Class, Completion, Effect, ForKind, LocalOp, NvOp, OpKind, RegionOp, TtgOp};

/// An operation, classified by its dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family<'k> {
    /// An operation on scalars, tiles and tensors, with its effect.
    Data(Effect),
    /// An operation of control flow.
    Flow(Flow),
    /// An operation on rings, roles and fences.
    Ttg(&'k TtgOp),
    /// An operation on tiles that are laid out.
    Local(&'k LocalOp),
    /// An operation on regions of shared memory.
    Region(&'k RegionOp),
    /// An operation of NVIDIA GPUs.
    Nv(NvOp),
    /// An operation of AMD GPUs.
    Amd(AmdOp),
}

/// An operation of control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// A counted loop.
    For(ForKind),
    /// A loop that runs until `break`.
    Loop,
    /// A branch.
    If,
    /// The end of a region, which yields values.
    Yield,
    /// Leaves the enclosing loop with this number.
    Break(u32),
    /// Continues with the next iteration of the enclosing loop with this number.
    Continue(u32),
    /// The end of the program or of a role.
    Return,
}

/// The number in an operation that hardware limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// No number, or none that these rules limit.
    Nothing,
    /// The arrival count of a barrier.
    Count(u32),
    /// Arrivals at a barrier.
    Arrivals(u32),
    /// Arrivals at a barrier on completion of the copies of threads (`cp.async.mbarrier.arrive`).
    CopyArrivals(u32),
    /// The bytes that a phase of a barrier expects.
    Expects(u32),
    /// A copy between device memory and shared memory.
    Copies {
        /// The size in bytes.
        bytes: u32,
        /// Whether it is a bulk copy: started by one thread, and without passing through registers.
        bulk: bool,
    },
    /// A named barrier and its number of threads.
    Named {
        /// The barrier's number.
        id: u8,
        /// The number of participating threads.
        threads: u32,
    },
    /// The number of registers of a thread.
    Registers(u32),
    /// The priority of a wave.
    Priority(u32),
}

impl OpKind {
    /// The dialect of the operation.
    #[must_use]
    pub const fn family(&self) -> Family<'_> {
        match self {
            OpKind::For(kind) => Family::Flow(Flow::For(*kind)),
            OpKind::Loop => Family::Flow(Flow::Loop),
            OpKind::If => Family::Flow(Flow::If),
            OpKind::Yield => Family::Flow(Flow::Yield),
            OpKind::Break(n) => Family::Flow(Flow::Break(*n)),
            OpKind::Continue(n) => Family::Flow(Flow::Continue(*n)),
            OpKind::Return => Family::Flow(Flow::Return),
            OpKind::Ttg(op) => Family::Ttg(op),
            OpKind::Local(op) => Family::Local(op),
            OpKind::Region(op) => Family::Region(op),
            OpKind::Nv(op) => Family::Nv(*op),
            OpKind::Amd(op) => Family::Amd(*op),
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
            | OpKind::Segment
            | OpKind::Shared
            | OpKind::Load(..)
            | OpKind::Store(_)
            | OpKind::Get
            | OpKind::Set
            | OpKind::GatherRows { .. }
            | OpKind::ScatterRows
            | OpKind::Gather
            | OpKind::Scatter
            | OpKind::Atomic(_)
            | OpKind::AtomicTile(_)
            | OpKind::Unflatten
            | OpKind::UnflattenGrouped(_)
            | OpKind::RaggedCount { .. }
            | OpKind::RaggedTile { .. }
            | OpKind::Print(_)
            | OpKind::Assert(_) => Family::Data(self.effect()),
        }
    }

    /// How the completion of the asynchronous work that the operation starts is detected.
    #[must_use]
    pub const fn completion(&self) -> Completion {
        match self.family() {
            // For the other operations on rings, the class of their work is chosen when a target lowers them; their tokens wait for it.
            Family::Ttg(TtgOp::AsyncProduce { .. }) => Completion::Phase,
            Family::Ttg(_) => Completion::Immediate,
            Family::Local(op) => match op {
                LocalOp::Copy { asynchronous: true } => Completion::Prefix(Class::CpAsync),
                LocalOp::Copy { asynchronous: false }
                | LocalOp::Alloc { .. }
                | LocalOp::Store
                | LocalOp::Load
                | LocalOp::Guard
                | LocalOp::Slice { .. }
                | LocalOp::Reshape(_)
                | LocalOp::Stack
                | LocalOp::Mma
                | LocalOp::Convert
                | LocalOp::Fold { .. } => Completion::Immediate,
            },
            Family::Nv(op) => op.completion(),
            Family::Amd(op) => op.completion(),
            Family::Data(_) | Family::Flow(_) | Family::Region(_) => Completion::Immediate,
        }
    }

    /// The number in the operation that hardware limits.
    #[must_use]
    pub const fn stated(&self) -> Stated {
        match self.family() {
            Family::Nv(op) => of_nvidia(op),
            Family::Amd(op) => match op {
                AmdOp::BufferLoadLds { bytes, .. } => Stated::Copies { bytes, bulk: false },
                AmdOp::SetPrio { level } => Stated::Priority(level),
                AmdOp::Waitcnt { .. } | AmdOp::DsRead { .. } | AmdOp::DsWrite { .. } | AmdOp::Barrier | AmdOp::Mfma => {
                    Stated::Nothing
                }
            },
            Family::Data(_) | Family::Flow(_) | Family::Ttg(_) | Family::Local(_) | Family::Region(_) => {
                Stated::Nothing
            }
        }
    }
}

const fn of_nvidia(op: NvOp) -> Stated {
    match op {
        NvOp::MbarrierInit { count } => Stated::Count(count),
        NvOp::Arrive { arrivals } | NvOp::ArriveCluster { arrivals } => Stated::Arrivals(arrivals),
        NvOp::CpAsyncArrive { arrivals, .. } => Stated::CopyArrivals(arrivals),
        NvOp::ArriveExpectTx { bytes } | NvOp::ExpectTx { bytes } => Stated::Expects(bytes),
        NvOp::BulkLoad { bytes, .. } | NvOp::BulkStore { bytes, .. } => Stated::Copies { bytes, bulk: true },
        NvOp::CpAsync { bytes } => Stated::Copies { bytes, bulk: false },
        NvOp::BarrierSync { id, threads } | NvOp::BarrierArrive { id, threads } => Stated::Named { id, threads },
        NvOp::SetMaxNReg { registers } => Stated::Registers(registers),
        // Offsets of barriers, numbers of groups and tensor memory are checked by rules of their own.
        NvOp::MbarrierAlloc { .. }
        | NvOp::MbarrierAt
        | NvOp::MbarrierInval
        | NvOp::MbarrierWait
        | NvOp::WaitParity
        | NvOp::TryWait
        | NvOp::TestWait
        | NvOp::FenceMbarrierInit
        | NvOp::WgmmaFence
        | NvOp::Wgmma
        | NvOp::Commit { .. }
        | NvOp::WaitGroup { .. }
        | NvOp::ClusterRank
        | NvOp::ClusterArrive
        | NvOp::ClusterWait
        | NvOp::WarpSync
        | NvOp::SequenceInit
        | NvOp::SequenceStore
        | NvOp::SequenceWait
        | NvOp::Tcgen05(_) => Stated::Nothing,
    }
}
