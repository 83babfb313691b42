//! Decoded instructions of the asynchronous proxy: bulk copies, MMAs of warpgroups, and the fences they need.

use super::mma::MmaShape;
use super::op::{Addr, PredSrc, Src};
use super::ty::Ty;

/// The memory that a fence between proxies orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everything.
    All,
    /// Global memory.
    Global,
    /// Shared memory of the thread's own block.
    Block,
    /// Shared memory of all blocks of the cluster.
    Cluster,
}

/// A part of memory that a bulk copy reads or writes.
#[derive(Clone, Debug)]
pub(crate) enum BulkPlace {
    /// A range of bytes.
    Range(Addr),
    /// A box of a tensor: the address of the tensor map, and the coordinates, innermost first.
    Box { map: Addr, coords: Vec<Src> },
}

/// The mechanism by which a bulk copy reports its completion.
#[derive(Clone, Debug)]
pub(crate) enum BulkEnd {
    /// By `complete_tx` on this barrier.
    Barrier(Addr),
    /// By commit groups of bulk copies.
    Group,
}

/// `cp.async.bulk`, `cp.reduce.async.bulk`.
#[derive(Clone, Debug)]
pub(crate) struct BulkOp {
    pub(crate) to: BulkPlace,
    pub(crate) from: BulkPlace,
    /// The length in bytes, for ranges; boxes have their own.
    pub(crate) bytes: Option<Src>,
    pub(crate) end: BulkEnd,
    /// The blocks of the cluster that receive the data, as a bit mask.
    pub(crate) mask: Option<Src>,
    /// The arithmetic of a reduction, and the element type; for boxes the tensor map gives the type.
    pub(crate) reduce: Option<BulkReduce>,
}

/// The arithmetic of a bulk reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BulkReduce {
    pub(crate) name: &'static str,
    /// The element type of a range.
    pub(crate) ty: Option<Ty>,
}

/// `wgmma.mma_async`.
#[derive(Clone, Debug)]
pub(crate) struct GroupMma {
    /// The extents; M is 64.
    pub(crate) shape: MmaShape,
    pub(crate) a: Ty,
    pub(crate) b: Ty,
    pub(crate) acc: Ty,
    pub(crate) d_regs: Vec<u32>,
    pub(crate) a_from: GroupA,
    pub(crate) b_from: Src,
    /// Whether the product is added to the accumulator; otherwise the accumulator is only written.
    pub(crate) adds: PredSrc,
    pub(crate) negate: [bool; 2],
    /// For A and B, whether M or N is the dimension whose elements are adjacent in shared memory.
    pub(crate) mn_major: [bool; 2],
    pub(crate) saturate: bool,
}

/// The A operand of `wgmma.mma_async`.
#[derive(Clone, Debug)]
pub(crate) enum GroupA {
    Descriptor(Src),
    Registers(Vec<u32>),
}
