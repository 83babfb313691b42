//! Decoded instructions, as the interpreter executes them.
//!
//! Names are resolved: registers are numbers, arithmetic is a function of one thread's operands, labels are positions.

use super::async_op::{BulkOp, GroupMma, Reach};
use super::lane::{LaneFn, Mode, warp::WarpFn};
use super::maps::MapScope;
use super::mma::MmaShape;
use super::ty::{Space, Ty};
use crate::tma::Field;

/// A source of bits for each thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Src {
    Reg(u32),
    Imm(u64),
    Special(Special),
    /// The address of a variable of the module, which the launch determines, and an addend.
    Symbol(u32, i64),
}

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    /// An index of the cluster among clusters, or their number.
    ClusterId(u8),
    NClusterId(u8),
    /// An index of the block in its cluster, or an extent of the cluster.
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
    /// A mask of the warp's threads relative to this one: equal, less, less or equal, greater, greater or equal.
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

/// The logical operation that combines a comparison with a predicate, or two predicates.
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

/// The destination of a result; `None` is the discarded result `_`.
pub(crate) type Dst = Option<u32>;

/// An address operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Addr {
    pub(crate) base: Src,
    pub(crate) offset: i64,
    pub(crate) space: Space,
    /// Whether the register has 32 bits, so that the sum wraps at 32 bits.
    pub(crate) narrow: bool,
}

/// An element that is moved between memory and a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) bytes: u32,
    /// The number of bits to which loads sign-extend the element.
    pub(crate) sign_to: Option<u32>,
}

/// The memory order of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) strong: bool,
    pub(crate) acquire: bool,
    pub(crate) release: bool,
}

/// The arithmetic of an atomic operation: the new value from the old one, the operand, and a second operand.
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
        /// The same for all threads of a warp at once, if there is a faster way.
        all: Option<WarpFn>,
        dst: Dst,
        src: [Src; 3],
    },
    /// A comparison with predicate results: the result and its complement, or both halves of a packed pair.
    Setp {
        f: LaneFn,
        mode: Mode,
        src: [Src; 2],
        dst: Dst,
        second: Dst,
        combine: Option<(BoolOp, PredSrc)>,
        packed: bool,
    },
    /// A comparison with a register result: all ones or 1.0 if it holds.
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
    /// Converts an address in a space to a generic address, or back.
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
    /// An atomic operation on each element; without destinations a reduction.
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
    /// A call of a function that the module does not define, with its arguments in local memory.
    External {
        name: String,
        args: Vec<Addr>,
    },
    /// An instruction without an effect that the emulator models: prefetches, hints.
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
    /// `fence.proxy.async`: makes the threads' writes visible to asynchronous operations.
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
    /// `mapa`: the address of another block's variable, given the address of the own one.
    MapAddress {
        dst: Dst,
        src: Src,
        rank: Src,
        generic: bool,
    },
    /// `getctarank`: the rank of the block to which an address belongs.
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
    /// Finds the threads with an equal value, or whether all have the same value.
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
    /// The pending count in an arrival state, which is encoded as the emulator chooses.
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
    /// `tensormap.replace`: changes a field of the tensor map at an address.
    MapReplace {
        addr: Addr,
        field: Field,
        value: Src,
    },
    /// `tensormap.cp_fenceproxy`: copies a tensor map to global memory and releases it.
    MapCopy {
        to: Addr,
        from: Addr,
        scope: MapScope,
    },
    /// `fence.proxy.tensormap::generic.release`
    MapRelease {
        scope: MapScope,
    },
    /// `fence.proxy.tensormap::generic.acquire`
    MapAcquire {
        addr: Addr,
        scope: MapScope,
    },
    Bulk(Box<BulkOp>),
    BulkCommit,
    BulkWait {
        at_most: u32,
        /// Whether the wait ends when the sources are read.
        reads: bool,
    },
    /// `st.async`: a store to a block of the cluster that completes bytes at a barrier there.
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
    /// For a branch, where divergent threads reconverge, if they do before the end.
    pub(crate) meet: Option<Meet>,
}

/// Where threads reconverge that a branch separates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meet {
    /// The position.
    pub pc: u32,
    /// Whether threads may end before they come there: others do not wait for them there while these wait for the others to end.
    pub loose: bool,
}

/// A decoded kernel, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) code: Vec<Inst>,
    pub(crate) n_regs: usize,
    pub(crate) n_preds: usize,
    /// The name of each register and of each predicate.
    pub(crate) reg_names: Vec<String>,
    pub(crate) pred_names: Vec<String>,
    /// The variables in shared memory: name, address, size; the launch may determine the size of the last one.
    pub(crate) shared: Vec<(String, u32, Option<u32>)>,
    /// The first free byte of shared memory.
    pub(crate) shared_end: u32,
    /// The variables in each thread's local memory.
    pub(crate) local: Vec<(String, u32, u32)>,
    /// The variables of the module that it addresses; `Src::Symbol` has their indices.
    pub(crate) symbols: Vec<String>,
    /// Whether it has operations of the asynchronous proxy, so that what they see must be tracked.
    pub(crate) has_async_proxy: bool,
    /// Whether it acquires tensor maps, so that stores to them must be tracked.
    pub(crate) has_map_fences: bool,
    /// Whether it uses the barrier of clusters.
    pub(crate) has_cluster_barrier: bool,
    /// Whether it has MMAs of warpgroups.
    pub(crate) has_wgmma: bool,
}
