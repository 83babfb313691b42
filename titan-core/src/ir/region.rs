//! The target-independent part of the barrier dialects: ranges of shared memory, and the completion of asynchronous work.
//!
//! A *region* is a range of bytes of shared memory. Regions may overlap: an epilogue can reuse the memory of a ring. A region has
//! equal *parts*, one of which an index selects. Accesses are ordered by barriers and groups ([`super::nv`], [`super::amd`]), which
//! the verifier checks.
//!
//! Asynchronous work completes in one of two ways. *By phase*: a barrier in shared memory counts arrivals and bytes, and
//! a wait for its phase waits for exactly these. *By prefix*: work of one class completes in order; a wait states how
//! many of the youngest groups may still be in flight, and so waits for all older ones. A [`Ty::Barrier`](super::Ty::Barrier) of
//! [`BarrierTy::Vtok`] names one such group.
//!
//! *Opaque calls* stand for code that TITAN does not see. Their author declares the accesses to regions and the proxy; the worst case is
//! assumed for everything that is not declared.
//!
//! Deliberately absent: the contents of regions. Elements and layouts are those of tiles.

use super::{Elem, TileShape};
use crate::named_enum::named_enum;
use std::fmt;

named_enum! {
    /// A class of asynchronous work that completes in order.
    Class {
        /// `cp.async` groups.
        CpAsync = "cp_async",
        /// `wgmma` groups.
        Wgmma = "wgmma",
        /// Groups of bulk copies from shared memory.
        BulkStore = "bulk_store",
        /// Operations of one thread on tensor memory.
        Tcgen05 = "tcgen05",
        /// Vector memory operations of a wave of gfx942.
        Vmcnt = "vmcnt",
        /// Operations of a wave on its local memory, gfx942.
        Lgkmcnt = "lgkmcnt",
    }
}

/// How the asynchronous work of an operation completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The operation is synchronous: its effects are complete when it is.
    Immediate,
    /// The completion is signaled by a phase of an mbarrier.
    Phase,
    /// The work is complete after a wait for this class that leaves only younger groups in flight.
    Prefix(Class),
}

/// The types of the barrier dialects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BarrierTy {
    /// Bytes of shared memory.
    Region,
    /// An array of mbarriers in shared memory, or one element of it.
    Mbarrier,
    /// The state that an arrival returns. It identifies the phase in which the arrival is counted.
    State,
    /// Columns of tensor memory.
    TensorMemory,
    /// The token of a group of a class: the one that the `n`-th such operation in program order commits or starts.
    Vtok(Class, u32),
}

impl fmt::Display for BarrierTy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BarrierTy::Region => f.write_str("region"),
            BarrierTy::Mbarrier => f.write_str("mbarrier"),
            BarrierTy::State => f.write_str("mbarrier.state"),
            BarrierTy::TensorMemory => f.write_str("tmem"),
            BarrierTy::Vtok(class, n) => write!(f, "vtok<{class}, {n}>"),
        }
    }
}

named_enum! {
    /// The access of an opaque call to a region.
    Touch {
        /// The call reads the region.
        Read = "r",
        /// The call writes the region.
        Write = "w",
        /// The call reads and writes the region.
        Both = "rw",
    }
}

impl Touch {
    /// Whether it may write.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Touch::Write | Touch::Both)
    }

    /// Whether it may read.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Touch::Read | Touch::Both)
    }
}

named_enum! {
    /// The proxy of an opaque call's accesses.
    CallProxy {
        /// Ordinary loads and stores.
        Generic = "generic",
        /// That of bulk copies and matrix instructions; its asynchronous work is complete when it returns.
        Async = "async",
        /// None: it makes no accesses.
        None = "none",
    }
}

/// An opaque call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name of the callee, for messages and options.
    pub name: String,
    /// Its access to each region; `None`: it may read and write all of them.
    pub access: Option<Vec<Touch>>,
    /// Its proxy; `None`: not declared.
    pub proxy: Option<CallProxy>,
}

impl Call {
    /// Its access to the `i`-th region.
    #[must_use]
    pub fn touch(&self, i: usize) -> Touch {
        self.access.as_ref().and_then(|a| a.get(i).copied()).unwrap_or(Touch::Both)
    }

    /// The declared proxy; generic if not declared.
    #[must_use]
    pub const fn declared(&self) -> CallProxy {
        match self.proxy {
            Some(proxy) => proxy,
            None => CallProxy::Generic,
        }
    }
}

/// An operation on regions. Its operands, results and meaning are a row of [`super::op_table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionOp {
    /// Declares a range of shared memory.
    Place {
        /// The offset of its first byte in the shared memory of the program.
        offset: u32,
        /// Its size in bytes.
        bytes: u32,
        /// Its number of equal parts.
        parts: u32,
    },
    /// Selects one part of a region by its index.
    At,
    /// Declares a tile in a region.
    Tile {
        /// The offset of its first byte in the region.
        offset: u32,
        /// The type of its elements.
        elem: Elem,
        /// The extents of the tile.
        shape: TileShape,
    },
    /// Reads the whole region through the generic proxy.
    Read,
    /// Writes the whole region through the generic proxy.
    Write,
    /// Opaque code that accesses regions.
    Call(Call),
    /// Waits for the group of a token, and so for all older ones of its class.
    Wait,
}
