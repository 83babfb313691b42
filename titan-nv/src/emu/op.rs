//! Decoded instructions: what the interpreter runs.
//!
//! Names are gone: registers are numbers, arithmetic is a function of one thread's operands, labels are positions.

use super::async_op::{BulkOp, GroupMma, Reach};
use super::lane::{LaneFn, Mode};
use super::mma::MmaShape;
use super::ty::{Space, Ty};

/// A source of bits for each thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Src {
    Reg(u32),
    Imm(u64),
    Special(Special),
    /// The address of a variable of the module, which the launch decides; and an addend.
    Symbol(u32, i64),
}

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    /// The cluster's place among clusters, and how many there are.
    ClusterId(u8),
    NClusterId(u8),
    /// The block's place in its cluster, and the cluster's extents.
    ClusterCtaId(u8),
    ClusterNCtaId(u8),
    ClusterCtaRank,
    ClusterNCtaRank,
    IsExplicitCluster,
    LaneId,
    WarpId,
    NWarpId,
    SmId,
    NSmId,
    GridId,
    /// Threads of the warp, relative to this one: equal, less, less or equal, greater, greater or equal.
    LaneMask(u8),
    Clock,
    ClockHi,
    Clock64,
    DynamicShared,
    TotalShared,
}

/// A predicate operand, and whether it is negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PredSrc {
    Reg(u32, bool),
    Const(bool),
}

/// How a comparison is combined with a predicate, and predicates with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoolOp {
    And,
    Or,
    Xor,
}

impl BoolOp {
    pub(crate) const fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            BoolOp::And => a & b,
            BoolOp::Or => a | b,
            BoolOp::Xor => a ^ b,
        }
    }
}

/// A place for a result; `None` is `_`.
pub(crate) type Dst = Option<u32>;

/// An address operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Addr {
    pub(crate) base: Src,
    pub(crate) offset: i64,
    pub(crate) space: Space,
    /// The register has 32 bits, so that the sum wraps there.
    pub(crate) narrow: bool,
}

/// An element that is moved between memory and a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) bytes: u32,
    /// Loads extend the sign to this many bits of the register.
    pub(crate) sign_to: Option<u32>,
}

/// What ordering an access has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) strong: bool,
    pub(crate) acquire: bool,
    pub(crate) release: bool,
}

/// The arithmetic of an atomic operation: new value from old, operand, and a second operand.
pub(crate) type AtomFn = fn(u64, u64, u64) -> u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Bfly,
    Idx,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uni,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduce {
    Popc,
    And,
    Or,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Lane {
        f: LaneFn,
        mode: Mode,
        dst: Dst,
        src: [Src; 3],
    },
    /// Comparison to predicates: the result and its complement, or of a packed pair both halves.
    Setp {
        f: LaneFn,
        mode: Mode,
        src: [Src; 2],
        dst: Dst,
        second: Dst,
        combine: Option<(BoolOp, PredSrc)>,
        packed: bool,
    },
    /// Comparison to a register: all ones or 1.0 in the destination if it holds.
    Set {
        f: LaneFn,
        mode: Mode,
        src: [Src; 2],
        dst: Dst,
        combine: Option<(BoolOp, PredSrc)>,
        truth: u64,
    },
    Select {
        dst: Dst,
        src: [Src; 2],
        by: PredSrc,
    },
    /// `testp`.
    Test {
        f: LaneFn,
        src: Src,
        dst: Dst,
    },
    Logic {
        op: BoolOp,
        dst: Dst,
        a: PredSrc,
        b: PredSrc,
    },
    /// Addition with the carry flag: `a + (b ^ invert) + carry`.
    Carry {
        dst: Dst,
        src: [Src; 3],
        product: Option<(LaneFn, Mode)>,
        bits: u32,
        subtract: bool,
        uses: bool,
        sets: bool,
    },
    /// `bfi`.
    Insert {
        f: LaneFn,
        dst: Dst,
        src: [Src; 2],
        at: Src,
        len: Src,
    },
    Pack {
        dst: Dst,
        parts: Vec<Src>,
        bits: u32,
    },
    Unpack {
        parts: Vec<Dst>,
        src: Src,
        bits: u32,
    },
    /// Generic address of an address in a space, or back.
    Convert {
        dst: Dst,
        src: Src,
        space: Space,
        to_space: bool,
    },
    IsSpace {
        dst: Dst,
        src: Src,
        space: Space,
    },
    Load {
        dsts: Vec<Dst>,
        addr: Addr,
        element: Element,
        order: Order,
    },
    Store {
        srcs: Vec<Src>,
        addr: Addr,
        element: Element,
        order: Order,
    },
    /// Atomic operation on each element; without destinations a reduction.
    Atomic {
        f: AtomFn,
        dsts: Vec<Dst>,
        addr: Addr,
        srcs: Vec<Src>,
        second: Option<Src>,
        bytes: u32,
        order: Order,
    },
    Branch {
        target: u32,
    },
    BranchIndexed {
        index: Src,
        targets: Vec<u32>,
    },
    Exit,
    Trap,
    /// Nothing that the emulator models: prefetches, hints.
    Nop,
    Barrier {
        id: Src,
        count: Option<Src>,
        waits: bool,
        aligned: bool,
        reduce: Option<(Reduce, Dst, PredSrc)>,
    },
    WarpBarrier {
        mask: Src,
    },
    Fence {
        acquire: bool,
        release: bool,
    },
    /// `fence.proxy.async`: what the threads wrote becomes visible to asynchronous operations.
    ProxyFence {
        to: Reach,
    },
    /// `fence.mbarrier_init`.
    InitFence,
    ClusterArrive {
        relaxed: bool,
        aligned: bool,
    },
    ClusterWait {
        aligned: bool,
    },
    /// `mapa`: the address of another block's variable, given that of the own one.
    MapAddress {
        dst: Dst,
        src: Src,
        rank: Src,
        generic: bool,
    },
    /// `getctarank`: whose variable an address is of.
    RankOf {
        dst: Dst,
        src: Src,
        generic: bool,
    },
    SetMaxRegisters {
        count: u32,
        increase: bool,
    },
    Shuffle {
        mode: Shuffle,
        dst: Dst,
        ok: Dst,
        src: Src,
        by: Src,
        clamp: Src,
        mask: Src,
    },
    Vote {
        kind: Vote,
        dst: Dst,
        src: PredSrc,
        mask: Src,
    },
    /// Threads with an equal value: which, or whether all.
    Match {
        all: bool,
        dst: Dst,
        ok: Dst,
        src: Src,
        mask: Src,
    },
    Redux {
        f: LaneFn,
        dst: Dst,
        src: Src,
        mask: Src,
    },
    Active {
        dst: Dst,
    },
    Elect {
        dst: Dst,
        ok: Dst,
        mask: Src,
    },
    CopyAsync {
        dst: Addr,
        src: Addr,
        bytes: u32,
        src_bytes: Option<Src>,
        ignore: Option<PredSrc>,
    },
    CopyCommit,
    CopyWait {
        at_most: u32,
        uncommitted: bool,
    },
    CopyArrive {
        addr: Addr,
        counted: bool,
    },
    BarrierInit {
        addr: Addr,
        count: Src,
    },
    BarrierInval {
        addr: Addr,
    },
    BarrierArrive {
        addr: Addr,
        dst: Dst,
        count: Src,
        bytes: Option<Src>,
        arrives: bool,
        drops: bool,
        relaxed: bool,
    },
    BarrierTest {
        addr: Addr,
        dst: Dst,
        state: Src,
        parity: bool,
        blocks: bool,
        relaxed: bool,
    },
    /// The pending count of a state: of the emulator's own encoding.
    BarrierPending {
        dst: Dst,
        state: Src,
    },
    Ldmatrix {
        dsts: Vec<Dst>,
        addr: Addr,
        transposed: bool,
    },
    Stmatrix {
        srcs: Vec<Src>,
        addr: Addr,
        transposed: bool,
    },
    Movmatrix {
        dst: Dst,
        src: Src,
    },
    Mma(Box<MmaOp>),
    /// `wgmma.fence`
    MultiplyFence,
    Multiply(Box<GroupMma>),
    MultiplyCommit,
    MultiplyWait {
        at_most: u32,
    },
    Bulk(Box<BulkOp>),
    BulkCommit,
    BulkWait {
        at_most: u32,
        /// Only until the sources are read.
        reads: bool,
    },
    /// `st.async`: a store to a block of the cluster that takes bytes from a barrier there.
    StoreAsync {
        srcs: Vec<Src>,
        addr: Addr,
        barrier: Addr,
        bytes: u32,
    },
}

/// `mma.sync`.
#[derive(Clone, Debug)]
pub(crate) struct MmaOp {
    pub(crate) shape: MmaShape,
    pub(crate) a: Ty,
    pub(crate) b: Ty,
    pub(crate) acc: Ty,
    pub(crate) out: Ty,
    pub(crate) saturate: bool,
    pub(crate) d_regs: Vec<Dst>,
    pub(crate) a_regs: Vec<Src>,
    pub(crate) b_regs: Vec<Src>,
    pub(crate) c_regs: Vec<Src>,
}

/// An instruction with its guard.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    pub(crate) guard: Option<(u32, bool)>,
    pub(crate) op: Op,
    /// Where divergent threads meet again, if this branches; `u32::MAX` is nowhere before the end.
    pub(crate) meet: u32,
}

/// A kernel, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) code: Vec<Inst>,
    pub(crate) n_regs: usize,
    pub(crate) n_preds: usize,
    /// The name of each register and of each predicate.
    pub(crate) reg_names: Vec<String>,
    pub(crate) pred_names: Vec<String>,
    /// Variables in shared memory: name, address, size; the last may be sized by the launch.
    pub(crate) shared: Vec<(String, u32, Option<u32>)>,
    /// The first free byte of shared memory.
    pub(crate) shared_end: u32,
    /// Variables in each thread's local memory.
    pub(crate) local: Vec<(String, u32, u32)>,
    /// Variables of the module that it addresses: indices, see `Src::Symbol`.
    pub(crate) symbols: Vec<String>,
    /// Whether it has operations of the asynchronous proxy: only then is it kept what that one sees.
    pub(crate) has_async_proxy: bool,
    /// Whether it has a barrier of clusters.
    pub(crate) has_cluster_barrier: bool,
    /// Whether it multiplies by warpgroups.
    pub(crate) has_wgmma: bool,
}
