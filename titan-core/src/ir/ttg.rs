//! The dialect `ttg`: rings of stages in shared memory, the tokens that guard them, asynchronous compute and roles.
//!
//! A *ring* (`pipe` in the text) has D slots and two monotonic clocks, one for each side: the `t`-th `acquire` and
//! the `t`-th `ready` name time `t`, which is in slot `t mod D` at epoch `t div D`. A token is the permission to do one thing with
//! one time of one ring, once:
//!
//! ```text
//! Free ─acquire─▶ slot ─async_produce─▶ InFlight ─(the bytes are there)─▶ Ready
//! ready ─wait_ready─▶ stage ─read_perm─▶ rperm ─consumed─▶ consumed ─release─▶ Free of the next epoch
//! ```
//!
//! No values pass between roles: a consumer names the awaited stage by its own clock, not by a value of the
//! producer. The verifier checks that the two sides agree (`crate::verify`).
//!
//! Deliberately absent: mbarriers, commit groups and wait counts, which are choices of a target.

use super::{Elem, Loc, TileShape, Unit};
use crate::named_enum::named_enum;

crate::entity!(
    /// A ring of a kernel.
    Pipe, "pipe"
);

named_enum! {
    /// The memory of a ring's stages.
    PipeSpace {
        /// In shared memory.
        Shared = "shared",
        /// In registers of the copying threads, as on gfx942.
        Registers = "registers",
    }
}

/// One tile of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its elements.
    pub elem: Elem,
    /// Its extents.
    pub shape: TileShape,
}

impl Field {
    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.shape.len() as u64 * u64::from(self.elem.bits())).div_ceil(8)
    }
}

/// The declaration of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeDecl {
    /// The user's name.
    pub name: Option<String>,
    /// D, the number of slots.
    pub slots: u32,
    /// The tiles of a stage.
    pub fields: Vec<Field>,
    /// The memory of the stages.
    pub space: PipeSpace,
    /// The location of its declaration.
    pub loc: Loc,
}

impl PipeDecl {
    /// The greatest number of slots.
    pub const MAX_SLOTS: u32 = 64;
    /// The greatest number of fields.
    pub const MAX_FIELDS: usize = 4;

    /// Bytes of one stage, without padding.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.fields.iter().map(Field::bytes).sum()
    }
}

/// A role: a warp set of every program, which runs its region of [`TtgOp::Roles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleDecl {
    /// The user's name.
    pub name: String,
    /// How many warps an instance has.
    pub warps: u32,
    /// How many instances take the tiles of a program in turn, each with its own warps. A target whose threads copy, or a machine that runs
    /// roles in turn, has one instance that takes all tiles.
    pub instances: u32,
}

impl RoleDecl {
    /// The greatest number of instances.
    pub const MAX_INSTANCES: u32 = 4;

    /// A role with one instance.
    #[must_use]
    pub fn one(name: &str, warps: u32) -> RoleDecl {
        RoleDecl { name: name.to_owned(), warps, instances: 1 }
    }
}

named_enum! {
    /// The permission of a token.
    Token {
        /// To fill a slot.
        Slot = "slot",
        /// To wait for a stage.
        Ready = "ready",
        /// To read a stage, or to skip it.
        Stage = "stage",
        /// To read a stage.
        Rperm = "rperm",
        /// A part of the read permission, for one of several readers.
        Part = "part",
        /// To release a stage.
        Consumed = "consumed",
        /// To store the contents of a slot.
        Written = "written",
        /// To wait for a store.
        Store = "store",
    }
}

named_enum! {
    /// The proxy of a memory operation (PTX ISA, "Proxies"): visibility to another proxy needs a fence or a completion.
    Proxy {
        /// That of loads and stores, and of `cp.async`.
        Generic = "generic",
        /// That of bulk copies and of matrix instructions that read shared memory.
        Async = "async",
        /// That of tensor-map reads.
        Tensormap = "tensormap",
    }
}

named_enum! {
    /// The scope of a fence.
    Scope {
        /// The program.
        Cta = "cta",
        /// The programs of a cluster.
        Cluster = "cluster",
        /// The device.
        Gpu = "gpu",
    }
}

named_enum! {
    /// The memory that a fence orders.
    FenceSpace {
        /// Shared memory.
        Shared = "shared",
        /// Device memory.
        Global = "global",
        /// All of it.
        All = "all",
    }
}

named_enum! {
    /// The contents of a stage without a copy.
    Fill {
        /// Zeros, which the copying threads write.
        Zero = "zero",
        /// Undefined: the stage must not be read, and its reader tests for this first.
        Poison = "poison",
    }
}

/// An operation of the dialect. Its operands, results and meaning are a row of [`super::op_table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TtgOp {
    /// A tile of a tensor as the source of a copy.
    Source(Unit, TileShape),
    /// Rows of a tensor, selected by indices, as the source of a copy.
    SourceRows {
        /// How many rows.
        rows: i32,
        /// Elements of each.
        width: i32,
    },
    /// Waits for the next slot.
    Acquire(Pipe),
    /// Starts the copies into a slot. `skipped`: the fill of the stage if a given condition does not hold.
    AsyncProduce {
        /// The bytes of the stage.
        bytes: u32,
        /// The proxy of the copies.
        proxy: Proxy,
        /// The fill instead of a copy.
        skipped: Option<Fill>,
    },
    /// Makes a stage ready without a copy.
    Fill(Fill),
    /// Creates a pending wait for the next stage.
    Ready(Pipe),
    /// Waits until the stage is filled.
    WaitReady,
    /// Whether the stage is poison.
    Poisoned,
    /// The read permission of a stage.
    ReadPerm,
    /// Splits the read permission into parts, for several readers.
    Split(u8),
    /// Joins the parts of a read permission.
    Join,
    /// A tile of the stage, in shared memory.
    View {
        /// Which.
        field: u8,
        /// Its elements.
        elem: Elem,
        /// Its extents.
        shape: TileShape,
    },
    /// A tile from shared memory to registers.
    Read,
    /// The end of reading.
    Consumed,
    /// Frees the slot.
    Release,
    /// Starts an MMA that reads shared memory.
    ComputeIssue,
    /// Waits for it.
    ComputeWait,
    /// Creates an accumulator with at most so many MMAs in flight.
    AccStart(u8),
    /// Starts an MMA that accumulates into it, and takes the stage, which is released once the MMA has read it.
    AccMma,
    /// Waits for all of them.
    AccFinish,
    /// Fills a slot from registers.
    Write,
    /// Starts the store of a slot to a tensor.
    StoreIssue(Unit),
    /// Waits until the slot has been read.
    StoreWait,
    /// Every role runs its region, concurrently.
    Roles,
    /// The end of a role: none of its asynchronous work is in flight any more.
    Finalize,
    /// The same value, cheap to compute again.
    Rematerialize,
    /// A claim about the effect of the preceding operations on a ring. Not executed: the verifier of barrier programs checks it.
    Claim(Claim, Pipe),
    /// Accesses through `from` before it are ordered before accesses through `to` after it.
    Fence {
        /// The proxy whose accesses come before.
        from: Proxy,
        /// The proxy whose accesses come after.
        to: Proxy,
        /// The scope.
        scope: Scope,
        /// The memory.
        space: FenceSpace,
    },
}

/// A claim of a barrier program about a ring that it was expanded from, at a time of the ring, given by a slot and the number of
/// earlier rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// The slot is free: its readers have released it.
    Acquired,
    /// The slot is filled, or will be when the preceding copies complete.
    Filled,
    /// This role will read the slot next.
    Next,
    /// The slot was waited for: it is filled.
    Ready,
    /// This role has released the slot.
    Released,
}

impl Claim {
    /// All of them.
    pub const ALL: [Claim; 5] = [Claim::Acquired, Claim::Filled, Claim::Next, Claim::Ready, Claim::Released];

    /// The mnemonic.
    #[must_use]
    pub const fn mnemonic(self) -> &'static str {
        match self {
            Claim::Acquired => "ttg.claim.acquired",
            Claim::Filled => "ttg.claim.filled",
            Claim::Next => "ttg.claim.next",
            Claim::Ready => "ttg.claim.ready",
            Claim::Released => "ttg.claim.released",
        }
    }
}

/// The use of a token operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is consumed.
    Move,
    /// It stays valid.
    Borrow,
}

impl TtgOp {
    /// Whether barrier programs do not contain the operation: those that fill, read, store and release stages.
    #[must_use]
    pub const fn is_of_rings(&self) -> bool {
        match self {
            TtgOp::Acquire(_)
            | TtgOp::AsyncProduce { .. }
            | TtgOp::Fill(_)
            | TtgOp::Ready(_)
            | TtgOp::WaitReady
            | TtgOp::ReadPerm
            | TtgOp::Split(_)
            | TtgOp::Join
            | TtgOp::View { .. }
            | TtgOp::Poisoned
            | TtgOp::Read
            | TtgOp::Consumed
            | TtgOp::Release
            | TtgOp::ComputeIssue
            | TtgOp::ComputeWait
            | TtgOp::AccStart(_)
            | TtgOp::AccMma
            | TtgOp::AccFinish
            | TtgOp::Write
            | TtgOp::StoreIssue(_)
            | TtgOp::StoreWait
            | TtgOp::Rematerialize => true,
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Roles
            | TtgOp::Finalize
            | TtgOp::Claim(..)
            | TtgOp::Fence { .. } => false,
        }
    }

    /// The use of the tokens among its operands.
    #[must_use]
    pub const fn uses(&self) -> Use {
        match self {
            TtgOp::Poisoned | TtgOp::View { .. } | TtgOp::Claim(..) => Use::Borrow,
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Acquire(_)
            | TtgOp::AsyncProduce { .. }
            | TtgOp::Fill(_)
            | TtgOp::Ready(_)
            | TtgOp::WaitReady
            | TtgOp::ReadPerm
            | TtgOp::Split(_)
            | TtgOp::Join
            | TtgOp::Read
            | TtgOp::Consumed
            | TtgOp::Release
            | TtgOp::ComputeIssue
            | TtgOp::ComputeWait
            | TtgOp::AccStart(_)
            | TtgOp::AccMma
            | TtgOp::AccFinish
            | TtgOp::Write
            | TtgOp::StoreIssue(_)
            | TtgOp::StoreWait
            | TtgOp::Roles
            | TtgOp::Finalize
            | TtgOp::Rematerialize
            | TtgOp::Fence { .. } => Use::Move,
        }
    }
}
