//! The families of operations of the lane IR.
//!
//! Passes and checks that treat most operations alike match on [`Family`] without a wildcard arm. A new operation does not compile until
//! [`OpKind::family`] names its family, and a new family does not compile until each of them has answered.
//!
//! Deliberately absent: the types of operands and results (`types`), and the divergence of results (`uniform`).

use super::nv::GroupMma;
use super::op::{OpKind, Region, Role, Space};

/// An operation, classified by what it does to memory, to other lanes and to control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family<'k> {
    /// Computes its results from its operands and the position of the thread, and does nothing else.
    Pure,
    /// Computes its results from the registers of all lanes of the warp. Convergent.
    Warp,
    /// Marks the memory that the following accesses are to.
    Mark {
        /// The memory.
        region: Region,
        /// Whether it is written.
        write: bool,
    },
    /// Accesses memory at an address, and is complete when it ends.
    Access {
        /// The state space of the address.
        space: Space,
        /// Whether the memory may be written.
        write: bool,
    },
    /// Accesses matrices in shared memory, together with the other lanes of the warp. Convergent.
    Matrix {
        /// Whether the matrices are written.
        write: bool,
    },
    /// Starts, commits or awaits copies that are complete later.
    Copy(Copying),
    /// Initialises, uses or awaits an mbarrier or a sequence counter in shared memory.
    Protocol,
    /// Orders accesses of the thread, or of the programs of a cluster, or makes a tensor map; accesses no other memory of the program.
    Order,
    /// An operation of a warpgroup. Convergent for a warpgroup.
    Group(Grouped<'k>),
    /// A barrier between threads of the program. Convergent.
    Barrier(Barrier),
    /// Control flow.
    Flow(Flow<'k>),
}

/// A step of copies that are complete later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// Starts a copy to shared memory.
    Fill,
    /// Starts a copy from shared memory.
    Drain,
    /// Makes a group of the copies to shared memory since the last one.
    CommitFills,
    /// Makes a group of the copies from shared memory since the last one.
    CommitDrains,
    /// Waits until at most this many groups of copies to shared memory are in flight.
    AwaitFills(u32),
    /// Waits until at most this many groups of copies from shared memory are in flight.
    AwaitDrains(u32),
}

/// An operation of a warpgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouped<'k> {
    /// Starts an MMA, which reads shared memory until its group is awaited.
    Mma(&'k GroupMma),
    /// Waits until at most this many groups of MMAs are in flight.
    Await(u32),
    /// Makes a group of the MMAs since the last one.
    Commit,
    /// Orders accesses to registers, or changes the number of registers.
    Plain,
}

/// The threads of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// All threads of the program.
    Program,
    /// The threads that a numbered barrier counts.
    Named {
        /// The number of the barrier.
        id: u8,
        /// The number of participating threads.
        threads: u32,
        /// Whether the warp waits.
        wait: bool,
    },
    /// The lanes of the warp.
    Warp,
}

/// An operation of control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow<'k> {
    /// A counted loop.
    For,
    /// A loop that runs until `break`.
    Loop,
    /// A branch.
    If,
    /// The code of roles.
    Roles(&'k [Role]),
    /// The end of an arm or of the code of a role.
    Yield,
    /// Leaves the enclosing loop with this number.
    Break(u32),
    /// Continues with the next iteration of the enclosing loop with this number.
    Continue(u32),
    /// The end of the thread.
    Return,
}

impl OpKind {
    /// The family of the operation.
    #[must_use]
    pub fn family(&self) -> Family<'_> {
        match self {
            OpKind::Const(..)
            | OpKind::Slot(_)
            | OpKind::ThreadId
            | OpKind::LaneId
            | OpKind::WarpId
            | OpKind::ProgramId(_)
            | OpKind::NumPrograms(_)
            | OpKind::SharedBase
            | OpKind::Buffer(_)
            | OpKind::Int(_)
            | OpKind::IntUn(_)
            | OpKind::MulWide { .. }
            | OpKind::IntCmp { .. }
            | OpKind::Extend { .. }
            | OpKind::Truncate(_)
            | OpKind::FromPred
            | OpKind::Float(..)
            | OpKind::FloatUn(..)
            | OpKind::Fma(_)
            | OpKind::FloatCmp(..)
            | OpKind::Convert { .. }
            | OpKind::Select
            | OpKind::Pack
            | OpKind::Unpack
            | OpKind::UnpackBytes { .. } => Family::Pure,
            OpKind::Shuffle(_) | OpKind::Vote(_) | OpKind::Mma(_) => Family::Warp,
            OpKind::Access { region, write } => Family::Mark { region: *region, write: *write },
            OpKind::Load { space, .. } => Family::Access { space: *space, write: false },
            OpKind::Store { space, .. } | OpKind::Atomic { space, .. } | OpKind::CompareSwap(space) => {
                Family::Access { space: *space, write: true }
            }
            OpKind::StoreRelease { .. } | OpKind::LoadAcquire | OpKind::SequenceWait => Family::Protocol,
            OpKind::Barrier => Family::Barrier(Barrier::Program),
            OpKind::WarpBarrier => Family::Barrier(Barrier::Warp),
            OpKind::For => Family::Flow(Flow::For),
            OpKind::Loop => Family::Flow(Flow::Loop),
            OpKind::If => Family::Flow(Flow::If),
            OpKind::Roles(roles) => Family::Flow(Flow::Roles(roles)),
            OpKind::Yield => Family::Flow(Flow::Yield),
            OpKind::Break(n) => Family::Flow(Flow::Break(*n)),
            OpKind::Continue(n) => Family::Flow(Flow::Continue(*n)),
            OpKind::Return => Family::Flow(Flow::Return),
            OpKind::Nv(op) => op.family(),
            OpKind::Amd(op) => op.family(),
        }
    }

    /// Whether the operation is convergent: it exchanges data between lanes, so that all of them must execute it together.
    #[must_use]
    pub fn is_convergent(&self) -> bool {
        match self.family() {
            Family::Warp | Family::Matrix { .. } | Family::Group(_) | Family::Barrier(_) => true,
            Family::Flow(flow) => match flow {
                Flow::Roles(_) => true,
                Flow::For | Flow::Loop | Flow::If | Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return => {
                    false
                }
            },
            Family::Pure
            | Family::Mark { .. }
            | Family::Access { .. }
            | Family::Copy(_)
            | Family::Protocol
            | Family::Order => false,
        }
    }

    /// Whether the operation may be removed if its results are not used.
    #[must_use]
    pub fn is_removable(&self) -> bool {
        match self.family() {
            Family::Pure | Family::Warp => true,
            Family::Access { write, .. } | Family::Matrix { write } => !write,
            Family::Mark { .. }
            | Family::Copy(_)
            | Family::Protocol
            | Family::Order
            | Family::Group(_)
            | Family::Barrier(_)
            | Family::Flow(_) => false,
        }
    }

    /// Whether the results depend only on the operands, wherever the operation is, so that equal operations may be merged.
    #[must_use]
    pub fn is_pure(&self) -> bool {
        self.family() == Family::Pure
    }

    /// Whether the operation is a terminator.
    #[must_use]
    pub const fn is_terminator(&self) -> bool {
        matches!(self, OpKind::Yield | OpKind::Break(_) | OpKind::Continue(_) | OpKind::Return)
    }
}
