//! What barrier-level programs are made of on every target: ranges of shared memory, and how asynchronous work completes.
//!
//! A *region* is a range of bytes of shared memory. Regions may overlap: that is how an epilogue takes over the memory of a
//! ring. A region has equal *parts*, one of which an index picks. Who may touch which bytes when is decided by barriers and
//! groups ([`super::nv`], [`super::amd`]), and shown by the verifier.
//!
//! Asynchronous work completes in one of two ways. *By phase*: a barrier in shared memory counts arrivals and bytes, and
//! a wait for its phase waits for exactly these. *By prefix*: work of one class completes in order; a wait states how
//! many of the youngest groups may still be in flight, and so waits for all older ones. A [`Ty::Barrier`](super::Ty::Barrier) of
//! [`BarrierTy::Vtok`] names one such group.
//!
//! *Opaque calls* stand for code that TITAN does not see. Who writes one says what it does to its regions and through which
//! proxy; what is not said is the worst that can be.
//!
//! Deliberately absent: what regions hold. Elements and layouts are those of tiles.

use super::{Elem, TileShape};
use crate::named_enum::named_enum;
use std::fmt;

named_enum! {
    /// Work that completes in order.
    Class {
        /// `cp.async` groups.
        CpAsync = "cp_async",
        /// `wgmma` groups.
        Wgmma = "wgmma",
        /// Groups of bulk copies from shared memory.
        BulkStore = "bulk_store",
        /// Vector memory operations of a wave of gfx942.
        Vmcnt = "vmcnt",
        /// Operations of a wave on its local memory, gfx942.
        Lgkmcnt = "lgkmcnt",
    }
}

/// How the work of an operation is known to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It is done when the operation is.
    Immediate,
    /// The phase of a barrier completes.
    Phase,
    /// A wait for this class after which at most the younger groups are in flight.
    Prefix(Class),
}

/// What only barrier-level programs name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BarrierTy {
    /// Bytes of shared memory.
    Region,
    /// Barriers in shared memory, or one of them.
    Mbarrier,
    /// The phase in which an arrival counted.
    State,
    /// A group of a class: the one that is closed, or started, by the `n`-th place in the text that does so.
    Vtok(Class, u32),
}

impl fmt::Display for BarrierTy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BarrierTy::Region => f.write_str("region"),
            BarrierTy::Mbarrier => f.write_str("mbarrier"),
            BarrierTy::State => f.write_str("mbarrier.state"),
            BarrierTy::Vtok(class, n) => write!(f, "vtok<{class}, {n}>"),
        }
    }
}

named_enum! {
    /// What an opaque call does to a region.
    Touch {
        /// Reads it.
        Read = "r",
        /// Writes it.
        Write = "w",
        /// Reads and writes it.
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
    /// Through which proxy an opaque call touches its regions.
    CallProxy {
        /// Ordinary loads and stores.
        Generic = "generic",
        /// That of bulk copies and matrix instructions; what it starts is done when it returns.
        Async = "async",
        /// None: it only names them.
        None = "none",
    }
}

/// An opaque call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is called, for people and for options.
    pub name: String,
    /// What it does to each region; `None`: it may read and write all of them.
    pub access: Option<Vec<Touch>>,
    /// Through which proxy; `None`: not declared.
    pub proxy: Option<CallProxy>,
}

impl Call {
    /// What it may do to its `i`-th region.
    #[must_use]
    pub fn touch(&self, i: usize) -> Touch {
        self.access.as_ref().and_then(|a| a.get(i).copied()).unwrap_or(Touch::Both)
    }

    /// The declared proxy; calls of which nothing is declared make ordinary accesses.
    #[must_use]
    pub const fn declared(&self) -> CallProxy {
        match self.proxy {
            Some(proxy) => proxy,
            None => CallProxy::Generic,
        }
    }
}

/// An operation on regions. What each takes, gives and means is a row of [`super::op_table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionOp {
    /// A range of shared memory.
    Place {
        /// Its first byte.
        offset: u32,
        /// How many.
        bytes: u32,
        /// How many equal parts it has.
        parts: u32,
    },
    /// One part.
    At,
    /// A tile that lies in it.
    Tile {
        /// Its first byte.
        offset: u32,
        /// Its elements.
        elem: Elem,
        /// Its extents.
        shape: TileShape,
    },
    /// Reads all of it with ordinary loads.
    Read,
    /// Writes all of it with ordinary stores.
    Write,
    /// Code that is not seen, which touches regions.
    Call(Call),
    /// Waits for the group of a token, and so for all older ones of its class.
    Wait,
}
