//! The dialect `ttg`: rings of stages in shared memory, the tokens that protect them, asynchronous MMAs, and roles.
//!
//! A *ring* (`pipe` in the text) has D slots and two monotonic clocks, one for each side: the `t`-th `acquire` and the `t`-th `ready` name
//! time `t`, which is in slot `t mod D` at epoch `t div D`. A token is the permission to do one thing with the stage of one time, once:
//!
//! ```text
//! Free ─acquire─▶ slot ─async_produce─▶ InFlight ─(the bytes are there)─▶ Ready
//! ready ─wait_ready─▶ stage ─read_perm─▶ rperm ─consumed─▶ consumed ─release─▶ Free of the next epoch
//! ```
//!
//! No values pass between roles: a consumer identifies the stage that it waits for by its own clock, not by a value of the producer. The
//! verifier checks that the two sides agree (`crate::verify`).
//!
//! Deliberately absent: mbarriers, commit groups and wait counts, which are choices of a target.

use super::op_table::ttg_facts;
use super::{Elem, Loc, TileShape, Unit};
use crate::named_enum::named_enum;

crate::entity!(
    /// A ring of a kernel.
    Pipe, "pipe"
);

named_enum! {
    /// The memory of the stages of a ring.
    PipeSpace {
        /// In shared memory.
        Shared = "shared",
        /// In registers of the threads that copy, as on gfx942.
        Registers = "registers",
    }
}

/// One tile of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The type of its elements.
    pub elem: Elem,
    /// The extents of the tile.
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
    /// The number of slots, D.
    pub slots: u32,
    /// The tiles of a stage.
    pub fields: Vec<Field>,
    /// The memory of the stages.
    pub space: PipeSpace,
    /// The location of its declaration.
    pub loc: Loc,
}

impl PipeDecl {
    /// The maximum number of slots.
    pub const MAX_SLOTS: u32 = 64;
    /// The maximum number of fields.
    pub const MAX_FIELDS: usize = 4;

    /// The size of one stage in bytes, without padding.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.fields.iter().map(Field::bytes).sum()
    }
}

/// A role: a warp set of each program, which executes its region of [`TtgOp::Roles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleDecl {
    /// The user's name.
    pub name: String,
    /// The number of warps of an instance.
    pub warps: u32,
    /// The number of instances, which take the tiles of a program in turn, each with its own warps. On a target where threads issue the
    /// copies, or where the roles of a program take turns, there is one instance that takes all tiles.
    pub instances: u32,
}

impl RoleDecl {
    /// The maximum number of instances.
    pub const MAX_INSTANCES: u32 = 4;

    /// A role with one instance.
    #[must_use]
    pub fn one(name: &str, warps: u32) -> RoleDecl {
        RoleDecl { name: name.to_owned(), warps, instances: 1 }
    }
}

named_enum! {
    /// The permission that a token gives.
    Token {
        /// Permission to fill a slot.
        Slot = "slot",
        /// Permission to wait for a stage.
        Ready = "ready",
        /// Permission to read a stage, or to skip it.
        Stage = "stage",
        /// Permission to read a stage.
        Rperm = "rperm",
        /// A part of the permission to read a stage, for one of several readers.
        Part = "part",
        /// Permission to release a stage.
        Consumed = "consumed",
        /// Permission to store the contents of a slot.
        Written = "written",
        /// Permission to wait for a store.
        Store = "store",
    }
}

named_enum! {
    /// The proxy of a memory operation (PTX ISA, "Proxies"). An access becomes visible to another proxy by a fence or by a completion.
    Proxy {
        /// The proxy of loads, stores and `cp.async`.
        Generic = "generic",
        /// The proxy of bulk copies and of matrix instructions that read shared memory.
        Async = "async",
        /// The proxy of reads of tensor maps.
        Tensormap = "tensormap",
    }
}

named_enum! {
    /// The scope of a fence.
    Scope {
        /// The program (thread block).
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
        /// Both.
        All = "all",
    }
}

named_enum! {
    /// The contents of a stage that is made ready without a copy.
    Fill {
        /// Zeros, which the threads of the filling role write.
        Zero = "zero",
        /// Undefined contents: the stage must not be read, and its reader tests for this first.
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
        /// The number of rows.
        rows: i32,
        /// The number of elements of each row.
        width: i32,
    },
    /// Waits until the next slot is free.
    Acquire(Pipe),
    /// Starts the copies into a slot.
    AsyncProduce {
        /// The size of the stage in bytes.
        bytes: u32,
        /// The proxy of the copies.
        proxy: Proxy,
        /// How the stage is filled if the operation's condition is false; `None` if it has no condition.
        skipped: Option<Fill>,
    },
    /// Makes a stage ready without a copy.
    Fill(Fill),
    /// Creates a pending wait for the next stage.
    Ready(Pipe),
    /// Waits until the stage is filled.
    WaitReady,
    /// Tests whether the contents of the stage are undefined.
    Poisoned,
    /// Converts the token of a stage to the permission to read it.
    ReadPerm,
    /// Splits the read permission into this many parts, for several readers.
    Split(u8),
    /// Joins the parts of a read permission.
    Join,
    /// A tile of the stage, as a value in shared memory.
    View {
        /// The index of the tile in the stage.
        field: u8,
        /// The type of its elements.
        elem: Elem,
        /// The extents of the tile.
        shape: TileShape,
    },
    /// Reads a tile from shared memory to registers.
    Read,
    /// Ends the reading of a stage.
    Consumed,
    /// Releases the slot.
    Release,
    /// Starts an MMA that reads shared memory.
    ComputeIssue,
    /// Waits for the MMA.
    ComputeWait,
    /// Creates an accumulator with at most this many MMAs in flight.
    AccStart(u8),
    /// Starts an MMA that adds to the accumulator, and takes the permission to read a stage, which is released once the MMA has read it.
    AccMma,
    /// Waits for all MMAs of the accumulator.
    AccFinish,
    /// Fills a slot from registers.
    Write,
    /// Starts the asynchronous store of a slot to a tensor.
    StoreIssue(Unit),
    /// Waits until the store has read the slot.
    StoreWait,
    /// Executes the regions of all roles, concurrently.
    Roles,
    /// The end of a role: none of its asynchronous work is in flight any more.
    Finalize,
    /// The same value, marked as cheap to compute again.
    Rematerialize,
    /// States the effect of the preceding operations on a ring. It is not executed; the verifier of barrier programs checks it.
    Claim(Claim, Pipe),
    /// Orders earlier accesses through `from` before later accesses through `to`.
    Fence {
        /// The proxy of the earlier accesses.
        from: Proxy,
        /// The proxy of the later accesses.
        to: Proxy,
        /// The scope of the fence.
        scope: Scope,
        /// The memory that the fence orders.
        space: FenceSpace,
    },
}

/// A claim of a barrier program about the ring that it was lowered from. It is for one time of the ring, given by a slot and the number of
/// earlier rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// The slot is free: its readers have released it.
    Acquired,
    /// The slot is filled, or will be once the preceding copies are complete.
    Filled,
    /// The slot holds the stage that this role reads next.
    Next,
    /// This role has waited for the slot, which is filled.
    Ready,
    /// This role has released the slot.
    Released,
}

/// What an operation does with a token operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It consumes the token.
    Move,
    /// The token stays valid.
    Borrow,
}

impl TtgOp {
    /// Whether it is an operation on stages (fills, reads, stores, releases), which barrier programs do not contain.
    #[must_use]
    pub const fn is_of_rings(&self) -> bool {
        ttg_facts(self).of_rings
    }

    /// The use of the tokens among the operands.
    #[must_use]
    pub const fn uses(&self) -> Use {
        ttg_facts(self).uses
    }
}
