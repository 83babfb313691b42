//! The dialect `ttg`: rings of stages in shared memory, the tokens that guard them, asynchronous compute and roles.
//!
//! A *ring* (`pipe` in the text) has D slots and two clocks, one for each side, that never go back: the `t`-th `acquire` and
//! the `t`-th `ready` name time `t`, which lies in slot `t mod D` at epoch `t div D`. What is typed here as a token is a right
//! to do one thing to one time of one ring, once:
//!
//! ```text
//! Free ─acquire─▶ slot ─async_produce─▶ InFlight ─(the bytes are there)─▶ Ready
//! ready ─wait_ready─▶ stage ─read_perm─▶ rperm ─consumed─▶ consumed ─release─▶ Free of the next epoch
//! ```
//!
//! Signatures survive the separation of roles: what a consumer waits for it names by its own clock, not by a value of the
//! producer. That the sides fit together is the verifier's to show (`crate::verify`).
//!
//! Deliberately absent: mbarriers, commit groups and wait counts, which are choices of a target.

use super::{Elem, Loc, TileShape, Unit};
use crate::named_enum::named_enum;

crate::entity!(
    /// A ring of a kernel.
    Pipe, "pipe"
);

named_enum! {
    /// Where the stages of a ring lie.
    PipeSpace {
        /// In shared memory.
        Shared = "shared",
        /// In registers of the threads that copy: gfx942 stages like this.
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
    /// How many bytes its elements are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.shape.len() as u64 * u64::from(self.elem.bits())).div_ceil(8)
    }
}

/// A ring: its slots and what one holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeDecl {
    /// The user's name.
    pub name: Option<String>,
    /// D, how many stages there is room for.
    pub slots: u32,
    /// What a stage holds.
    pub fields: Vec<Field>,
    /// Where.
    pub space: PipeSpace,
    /// Where the user made it.
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

/// A role: some warps of every program, which run its region of [`TtgOp::Roles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleDecl {
    /// The user's name.
    pub name: String,
    /// How many warps.
    pub warps: u32,
}

named_enum! {
    /// What a token allows.
    Token {
        /// To fill a slot.
        Slot = "slot",
        /// To wait for a stage.
        Ready = "ready",
        /// To read a stage, or to pass it over.
        Stage = "stage",
        /// To read a stage.
        Rperm = "rperm",
        /// A part of that, for one of several readers.
        Part = "part",
        /// To give a stage back.
        Consumed = "consumed",
        /// To store what was written to a slot.
        Written = "written",
        /// To wait for a store.
        Store = "store",
    }
}

named_enum! {
    /// Through which window a memory operation looks: what another window sees of it needs a fence or a completion.
    Proxy {
        /// That of ordinary loads and stores, and of `cp.async`.
        Generic = "generic",
        /// That of bulk copies and of matrix instructions that read shared memory.
        Async = "async",
        /// That of reads of tensor maps.
        Tensormap = "tensormap",
    }
}

named_enum! {
    /// How far a fence reaches.
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
    /// Which memory a fence orders.
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
    /// What a stage holds that was not copied to.
    Fill {
        /// Zeros: the copier makes them.
        Zero = "zero",
        /// Nothing that may be read: whoever takes the stage asks first.
        Poison = "poison",
    }
}

/// An operation of the dialect. What each takes, gives and means is a row of [`super::op_table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TtgOp {
    /// A tile of a tensor, named but not loaded.
    Source(Unit, TileShape),
    /// Rows of a tensor, named by indices but not loaded.
    SourceRows {
        /// How many rows.
        rows: i32,
        /// Elements of each.
        width: i32,
    },
    /// Waits for the next slot.
    Acquire(Pipe),
    /// Starts the copies into a slot. If a condition is given and does not hold, the stage is filled like this.
    AsyncProduce {
        /// The bytes of the stage.
        bytes: u32,
        /// The proxy of the copies.
        proxy: Proxy,
        /// What there is instead of a copy.
        skipped: Option<Fill>,
    },
    /// Makes a stage ready without a copy.
    Fill(Fill),
    /// Claims the next stage.
    Ready(Pipe),
    /// Waits until the bytes are there.
    WaitReady,
    /// Whether the stage is poison.
    Poisoned,
    /// The right to read.
    ReadPerm,
    /// Parts of the right to read, for so many readers.
    Split(u8),
    /// The whole right again.
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
    /// Starts a matrix product that reads shared memory.
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
    /// Every role runs its region, all at once.
    Roles,
    /// The end of a role: none of its asynchronous work is in flight any more.
    Finalize,
    /// The same value, cheap to compute again.
    Rematerialize,
    /// What the operations before have done to a ring. Nothing is executed: the verifier of barrier programs checks it.
    Claim(Claim, Pipe),
    /// What `from` did comes before what `to` does.
    Fence {
        /// The proxy whose accesses come before.
        from: Proxy,
        /// The proxy whose accesses come after.
        to: Proxy,
        /// For whom.
        scope: Scope,
        /// Of which memory.
        space: FenceSpace,
    },
}

/// What a barrier program claims to have done to a ring that it was made from: at a time of the ring, which a slot and the number
/// of rounds before it stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// The slot is free: nobody reads what it held.
    Acquired,
    /// The slot is filled, or will be when what was waited for here is done.
    Filled,
    /// This role will read the slot next.
    Next,
    /// What fills the slot is done.
    Ready,
    /// This role reads the slot no more.
    Released,
}

impl Claim {
    /// All of them.
    pub const ALL: [Claim; 5] = [Claim::Acquired, Claim::Filled, Claim::Next, Claim::Ready, Claim::Released];

    /// How the operation is written.
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

/// What an operation does to a token that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is gone after.
    Move,
    /// It is still there.
    Borrow,
}

impl TtgOp {
    /// Whether a barrier program has none of it: what fills, reads, stores and frees stages.
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

    /// What the operation does to the tokens among its operands.
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
