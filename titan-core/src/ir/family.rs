//! The dialect of each operation, and the numbers in operations that hardware limits.
//!
//! Passes and rules that treat most operations alike match on [`Family`] without a wildcard arm: the compiler then reports each place where
//! a new operation of a dialect must be handled; a new operation on data is handled by its [`Effect`]. Everything here is read from the row
//! of the operation ([`super::op_table`]).

use super::traffic::On;
use super::{AmdOp, Completion, Effect, ForKind, LocalOp, NvOp, OpKind, Proxy, RegionOp, TtgOp, op_table};

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
        match (op_table::dialect(self), self.facts().flow) {
            (Some(dialect), _) => dialect,
            (None, Some(flow)) => Family::Flow(flow),
            (None, None) => Family::Data(self.effect()),
        }
    }

    /// The side effect of the operation.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        self.facts().effect
    }

    /// How the completion of the asynchronous work that the operation starts is detected.
    #[must_use]
    pub const fn completion(&self) -> Completion {
        self.facts().completion
    }

    /// The number in the operation that hardware limits.
    #[must_use]
    pub const fn stated(&self) -> Stated {
        self.facts().stated
    }

    /// The proxy through which the operation itself accesses shared memory; `None` if it does not. The tiles of operations on data are in
    /// shared memory only in laid-out kernels.
    #[must_use]
    pub fn proxy(&self) -> Option<Proxy> {
        match self.family() {
            Family::Data(_) | Family::Flow(_) => None,
            Family::Ttg(_) | Family::Local(_) | Family::Region(_) | Family::Nv(_) | Family::Amd(_) => {
                self.facts().traffic.accesses.iter().flatten().find(|access| access.on != On::Tensor).map(|a| a.proxy)
            }
        }
    }
}
