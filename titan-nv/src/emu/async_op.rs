//! Decoded instructions of the asynchronous proxy: bulk copies, products of warpgroups, and the fences they need.

use super::mma::MmaShape;
use super::op::{Addr, PredSrc, Src};
use super::ty::Ty;

/// Which memory a fence between proxies is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    All,
    Global,
    /// Shared memory of the own block.
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

/// How a bulk copy is known to be complete.
#[derive(Clone, Debug)]
pub(crate) enum BulkEnd {
    /// It takes its bytes from this barrier.
    Barrier(Addr),
    /// By bulk groups.
    Group,
}

/// `cp.async.bulk`, `cp.reduce.async.bulk`.
#[derive(Clone, Debug)]
pub(crate) struct BulkOp {
    pub(crate) to: BulkPlace,
    pub(crate) from: BulkPlace,
    /// The bytes of a range; boxes have their own.
    pub(crate) bytes: Option<Src>,
    pub(crate) end: BulkEnd,
    /// The blocks of the cluster that get the data, a bit each.
    pub(crate) mask: Option<Src>,
    /// The arithmetic of a reduction, and the bytes of its elements; of boxes the tensor map's type decides.
    pub(crate) reduce: Option<BulkReduce>,
}

/// The arithmetic of a bulk reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BulkReduce {
    pub(crate) name: &'static str,
    /// The type of the elements of a range.
    pub(crate) ty: Option<Ty>,
}

/// `wgmma.mma_async`.
#[derive(Clone, Debug)]
pub(crate) struct GroupMma {
    /// M is 64.
    pub(crate) shape: MmaShape,
    pub(crate) a: Ty,
    pub(crate) b: Ty,
    pub(crate) acc: Ty,
    pub(crate) d_regs: Vec<u32>,
    pub(crate) a_from: GroupA,
    pub(crate) b_from: Src,
    /// Whether the accumulator is added to; otherwise it is only written.
    pub(crate) adds: PredSrc,
    pub(crate) negate: [bool; 2],
    /// Whether M, or N, is the dimension whose elements are adjacent in shared memory.
    pub(crate) mn_major: [bool; 2],
    pub(crate) saturate: bool,
}

/// The A operand of `wgmma.mma_async`.
#[derive(Clone, Debug)]
pub(crate) enum GroupA {
    Descriptor(Src),
    Registers(Vec<u32>),
}
