//! tidy: table
//! The operations of the lane IR, each with its contract: operands, results, and domain.
//!
//! A back end implements every row for every target it supports, or rejects the function with an error that names the row.
//! "Convergent" operations exchange something between lanes: all lanes of the warp (of the program, for its barrier and for
//! roles; of the role, for a role's barrier) must reach them together.
//!
//! # Synchronisation of some of the threads
//!
//! | | waits | for | orders |
//! |---|---|---|---|
//! | [`OpKind::Barrier`] | all threads | each other | all their accesses before it, before all their accesses after it |
//! | [`OpKind::NamedBarrier`] | the participating warps | each other | the same, for those warps |
//! | [`OpKind::WarpBarrier`] | a warp | its lanes | the same, for those lanes |
//! | [`OpKind::MbarrierWait`] | the thread | the arrivals of a phase | the accesses before each arrival, before those after the wait |
//! | [`OpKind::SequenceWait`] | the thread | a number in a word | the accesses before the store of that number, before those after the wait |
//!
//! An mbarrier is an opaque object of 8 bytes in shared memory, aligned to 8. It counts arrivals; with the last expected
//! one a *phase* completes and the next begins. The parities of the phases are 0, 1, 0, … from
//! [`OpKind::MbarrierInit`] on; the phase before the first counts as complete with parity 1. A waiting thread must not be
//! more than one phase behind. All of these are at the scope of one program.

use crate::ir::Pred;
use crate::named_enum::named_enum;

named_enum! {
    /// The width of a value.
    Ty {
        /// One bit: a condition.
        Pred = "p",
        /// 16 bits.
        B16 = "b16",
        /// 32 bits.
        B32 = "b32",
        /// 64 bits.
        B64 = "b64",
    }
}

named_enum! {
    /// How arithmetic on floats reads its operands.
    FloatTy {
        /// IEEE 754 binary16, in a `b16`.
        F16 = "f16",
        /// The upper half of a binary32, in a `b16`.
        Bf16 = "bf16",
        /// IEEE 754 binary32, in a `b32`.
        F32 = "f32",
        /// IEEE 754 binary64, in a `b64`.
        F64 = "f64",
    }
}

impl FloatTy {
    /// The width.
    #[must_use]
    pub const fn ty(self) -> Ty {
        match self {
            FloatTy::F16 | FloatTy::Bf16 => Ty::B16,
            FloatTy::F32 => Ty::B32,
            FloatTy::F64 => Ty::B64,
        }
    }
}

named_enum! {
    /// What conversions read and write.
    Num {
        /// binary16, in a `b16`.
        F16 = "f16",
        /// bfloat16, in a `b16`.
        Bf16 = "bf16",
        /// binary32.
        F32 = "f32",
        /// binary64.
        F64 = "f64",
        /// A binary32 with 10 fraction bits, in a `b32`; as a source it is `f32`. Ties go away from zero, unlike all others'.
        Tf32 = "tf32",
        /// OCP 8-bit float, in the low byte of a `b32`.
        E4m3 = "e4m3",
        /// OCP 8-bit float, in the low byte of a `b32`.
        E5m2 = "e5m2",
        /// Two's complement, 32 bits.
        S32 = "s32",
        /// Unsigned, 32 bits.
        U32 = "u32",
        /// Two's complement, 64 bits.
        S64 = "s64",
        /// Unsigned, 64 bits.
        U64 = "u64",
    }
}

impl Num {
    /// The width.
    #[must_use]
    pub const fn ty(self) -> Ty {
        match self {
            Num::F16 | Num::Bf16 => Ty::B16,
            Num::F32 | Num::Tf32 | Num::E4m3 | Num::E5m2 | Num::S32 | Num::U32 => Ty::B32,
            Num::F64 | Num::S64 | Num::U64 => Ty::B64,
        }
    }

    /// Whether it is an integer.
    #[must_use]
    pub const fn is_int(self) -> bool {
        matches!(self, Num::S32 | Num::U32 | Num::S64 | Num::U64)
    }
}

named_enum! {
    /// Integer operations of two operands of one width, 32 or 64 bits (`and`, `or`, `xor` also on conditions).
    IntBin {
        /// Sum, wrapping.
        Add = "add",
        /// Difference, wrapping.
        Sub = "sub",
        /// Product, the low half.
        Mul = "mul",
        /// Product of unsigned numbers, the high half.
        MulHi = "mul_hi",
        /// Quotient toward zero. The divisor is not 0; the least number by −1 is itself.
        DivS = "div_s",
        /// Quotient. The divisor is not 0.
        DivU = "div_u",
        /// Remainder with the sign of the dividend. The divisor is not 0; by −1 it is 0.
        RemS = "rem_s",
        /// Remainder. The divisor is not 0.
        RemU = "rem_u",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
        /// To the left. The amount, always 32 bits wide, is less than the width.
        Shl = "shl",
        /// To the right with the sign. The amount is less than the width.
        ShrS = "shr_s",
        /// To the right with zeros. The amount is less than the width.
        ShrU = "shr_u",
        /// The lesser.
        MinS = "min_s",
        /// The lesser, unsigned.
        MinU = "min_u",
        /// The greater.
        MaxS = "max_s",
        /// The greater, unsigned.
        MaxU = "max_u",
    }
}

named_enum! {
    /// Float operations of two operands. Rounded once, to nearest even; subnormals are numbers.
    FloatBin {
        /// Sum.
        Add = "add",
        /// Difference.
        Sub = "sub",
        /// Product.
        Mul = "mul",
        /// Quotient, correctly rounded.
        Div = "div",
        /// The lesser; NaN loses, −0 < +0.
        Min = "min",
        /// The greater; NaN loses, −0 < +0.
        Max = "max",
    }
}

named_enum! {
    /// Float operations of one operand.
    FloatUn {
        /// The sign inverted, also of NaN.
        Neg = "neg",
        /// The sign cleared, also of NaN.
        Abs = "abs",
        /// Square root, correctly rounded; `f32` and `f64`.
        Sqrt = "sqrt",
        /// Toward −∞; `f32` and `f64`.
        Floor = "floor",
        /// Toward +∞; `f32` and `f64`.
        Ceil = "ceil",
        /// Toward zero; `f32` and `f64`.
        Trunc = "trunc",
        /// To nearest, ties to even; `f32` and `f64`.
        RoundEven = "round_even",
        /// 2ˣ within 2 ulp, within 1.6 ulp for |x| ≤ ½ (`exp` needs it), `f32` only; subnormal operands and results may be
        /// flushed to zero.
        Ex2Approx = "ex2_approx",
        /// log₂ x, `f32` only: absolute error ≤ 2⁻²¹ in [0.5, 2], 2 ulp elsewhere; subnormal operands may be flushed.
        Lg2Approx = "lg2_approx",
        /// 1 / x within 1 ulp, `f32` only; subnormals may be flushed.
        RcpApprox = "rcp_approx",
        /// 1 / √x within 2 ulp, `f32` only; subnormals may be flushed.
        RsqrtApprox = "rsqrt_approx",
    }
}

named_enum! {
    /// Which memory.
    Space {
        /// Device memory: 64-bit addresses.
        Global = "global",
        /// The program's own: 32-bit addresses from [`OpKind::SharedBase`] on.
        Shared = "shared",
    }
}

named_enum! {
    /// What an atomic update does, and how it reads the bits.
    AtomicFn {
        /// Integer sum, 4 or 8 bytes.
        Add = "add",
        /// Signed lesser.
        MinS = "min_s",
        /// Unsigned lesser.
        MinU = "min_u",
        /// Signed greater.
        MaxS = "max_s",
        /// Unsigned greater.
        MaxU = "max_u",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Sum of `f32`.
        AddF32 = "add_f32",
        /// Sum of `f64`.
        AddF64 = "add_f64",
        /// Sum of two `f16` at once, in 4 bytes.
        AddF16x2 = "add_f16x2",
        /// Exchange.
        Exchange = "exchange",
    }
}

named_enum! {
    /// What lanes agree on.
    Vote {
        /// Whether the condition holds in some lane.
        Any = "any",
        /// Whether it holds in every lane.
        All = "all",
    }
}

/// From which lane a shuffle takes its value. Lanes count within the warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shuffle {
    /// The lane whose number differs by these bits.
    Xor(u32),
    /// The lane this many below; lanes without one keep their own value.
    Up(u32),
    /// The lane of this number.
    Lane(u32),
    /// The lane whose number is the second operand.
    Index,
}

/// A matrix instruction of a warp: `D = A · Bᵀ + C` on fragments. Which element lies in which register of which lane is the
/// layout of the same name in `crate::layout::atoms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MmaAtom {
    /// Rows of D.
    pub m: u32,
    /// Columns of D.
    pub n: u32,
    /// The extent summed over.
    pub k: u32,
    /// Elements of A.
    pub a: crate::ir::Elem,
    /// Elements of B.
    pub b: crate::ir::Elem,
    /// Elements of C and D.
    pub acc: crate::ir::Elem,
}

impl MmaAtom {
    /// Registers of A, of B and of C for each lane, and the width of those of C and of the operands.
    #[must_use]
    pub fn registers(&self, lanes: u32) -> MmaRegisters {
        let words = |rows: u32, bits: u32| (rows * self.k * bits).div_ceil(lanes * 32);
        let double = self.a.bits() == 64;
        let operand = |rows: u32, bits: u32| if double { (rows * self.k).div_ceil(lanes) } else { words(rows, bits) };
        MmaRegisters {
            a: operand(self.m, self.a.bits()) as usize,
            b: operand(self.n, self.b.bits()) as usize,
            c: ((self.m * self.n) / lanes) as usize,
            operand: if double { Ty::B64 } else { Ty::B32 },
            acc: if self.acc.bits() == 64 { Ty::B64 } else { Ty::B32 },
        }
    }
}

/// The side of a warpgroup's MMA that an operand is on, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupOperand {
    /// In registers: those of A of the warp's own 16 rows, as for [`OpKind::Mma`]. Only A.
    Registers,
    /// In shared memory, given by a matrix descriptor; rows (columns of B) are neighbours in memory if it is transposed, elements
    /// along K otherwise.
    Shared {
        /// Whether it is transposed; only for elements of 16 bits.
        transposed: bool,
    },
}

/// A matrix instruction of a warpgroup: four neighbouring warps, from a multiple of four on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupMma {
    /// M is 64, N a multiple of 8 up to 256; K and the elements.
    pub atom: MmaAtom,
    /// Where A is.
    pub a: GroupOperand,
    /// Whether B is transposed; it is in shared memory.
    pub b_transposed: bool,
    /// Whether it starts from zero instead of from C.
    pub fresh: bool,
}

impl GroupMma {
    /// The warps of a warpgroup.
    pub const WARPS: u32 = 4;
    /// Rows of D.
    pub const M: u32 = 64;

    /// The registers of A and of D for each lane of 32: those of A are words, those of D elements.
    #[must_use]
    pub const fn registers(&self) -> (usize, usize) {
        let a = match self.a {
            GroupOperand::Registers => 4,
            GroupOperand::Shared { .. } => 0,
        };
        (a, self.atom.n as usize / 2)
    }
}

/// How many registers a matrix instruction takes of each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmaRegisters {
    /// Of A.
    pub a: usize,
    /// Of B.
    pub b: usize,
    /// Of C, and of the result.
    pub c: usize,
    /// The width of one of A or B: packed words, or one `f64`.
    pub operand: Ty,
    /// The width of one of C: one element.
    pub acc: Ty,
}

/// Memory that several threads of a program may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Region {
    /// A buffer of the function, in shared memory.
    Buffer(u32),
    /// The tensor of a parameter.
    Tensor(u32),
    /// A buffer whose accesses are ordered by a protocol: slots of a ring, mbarriers, sequence counters. Between two such accesses no
    /// barrier is needed; between these and other accesses to the same bytes one is. The protocol also guarantees that asynchronous
    /// copies to it are complete at its end.
    Ring(u32),
}

/// A warp set of a program with separate code: see [`OpKind::Roles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Role {
    /// The number of warps. The warps of the first role have the lowest numbers, and so on.
    pub warps: u32,
    /// The named barrier, 1 to 15, of exactly these warps.
    pub barrier: u8,
}

/// The kind of an operation, with its attributes.
///
/// In the contracts, `a` and `b` are operands in order, `p` an optional condition: if the attribute `masked` is set it is
/// the last operand, and without it nothing happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// A constant of these bits.
    Const(Ty, u64),
    /// The word of the parameter block: `b32` or `b64` as the slot says.
    Slot(u32),
    /// The thread's number in the program, `b32`.
    ThreadId,
    /// The lane's number in its warp, `b32`.
    LaneId,
    /// The warp's number in the program, `b32`: the same in all lanes of a warp, and known to be.
    WarpId,
    /// The program's index along an axis, `b32`.
    ProgramId(u8),
    /// The grid's extent along an axis, `b32`.
    NumPrograms(u8),
    /// The address of the program's shared memory, `b32`, a multiple of 1024.
    SharedBase,
    /// The address of a buffer, `b32`. Replaced when shared memory is allocated: back ends never see it.
    Buffer(u32),
    /// Marks the following accesses as accesses to this region, up to the next mark behind an access (consecutive marks form a row)
    /// or to the start or end of roles, and states that no two threads access the same element among them unless all
    /// read, or a protocol orders them ([`Region::Ring`]). Barriers are checked by these marks, which are then removed.
    Access {
        /// Which.
        region: Region,
        /// Whether it is written.
        write: bool,
    },

    /// Integer arithmetic.
    Int(IntBin),
    /// `b32 × b32 → b64`; signed or not.
    MulWide {
        /// Whether the operands have a sign.
        signed: bool,
    },
    /// Comparison of integers, or of conditions for equality.
    IntCmp {
        /// Which.
        pred: Pred,
        /// Whether the operands have a sign.
        signed: bool,
    },
    /// The low `from` bits (8, 16, 32) of a `b16` or `b32`, extended to the result's width, `b32` or `b64`.
    Extend {
        /// How many bits are read.
        from: u8,
        /// Whether with the sign.
        signed: bool,
        /// The width of the result.
        to: Ty,
    },
    /// The low bits: `b64 → b32`, `b32 → b16`.
    Truncate(Ty),
    /// 1 or 0 as `b32`.
    FromPred,

    /// Float arithmetic.
    Float(FloatBin, FloatTy),
    /// Float functions.
    FloatUn(FloatUn, FloatTy),
    /// `a · b + c`, rounded once.
    Fma(FloatTy),
    /// Comparison of floats: false with NaN, but `ne` is true.
    FloatCmp(Pred, FloatTy),
    /// Conversion of values. To floats: to nearest even; to fp8 saturating to the greatest finite number, NaN stays NaN. To
    /// integers: toward zero, saturating, NaN gives 0. One operand, or two of fp8 at once.
    Convert {
        /// What is read.
        from: Num,
        /// What is written.
        to: Num,
    },
    /// `b` where the condition `a` holds, `c` elsewhere; of any width.
    Select,
    /// Two `b16`, or the low bytes of four `b32`, to a `b32`; two `b32` to a `b64`. The first is the lowest.
    Pack,
    /// The parts of a word, the lowest first: `b32` to two `b16`, `b64` to two `b32`.
    Unpack,
    /// The bytes of a `b32`, each extended to a `b32`.
    UnpackBytes {
        /// Whether with the sign.
        signed: bool,
    },

    /// `n` neighbours of `bytes` bytes each from the address `a + offset`, a multiple of all the bytes. Results are `b32`
    /// (1 byte, zero-extended, or 4), `b16` (2) or `b64` (8). If masked: operands `a, e₁ … eₙ, p`, and `eᵢ` where `p` does
    /// not hold.
    Load {
        /// From where.
        space: Space,
        /// Bytes of one result: 1, 2, 4, 8.
        bytes: u8,
        /// How many: 1, 2, 4; at most 16 bytes in all.
        n: u8,
        /// Bytes beyond the address.
        offset: i32,
        /// Whether it depends on a condition.
        masked: bool,
    },
    /// The reverse: operands `a, v₁ … vₙ [, p]`.
    Store {
        /// Where to.
        space: Space,
        /// Bytes of one value.
        bytes: u8,
        /// How many.
        n: u8,
        /// Bytes beyond the address.
        offset: i32,
        /// Whether it depends on a condition.
        masked: bool,
    },
    /// Atomic update at `a` by `b`; relaxed, visible to the whole device. The result is what was there before (`b32`, `b64`).
    Atomic {
        /// What.
        op: AtomicFn,
        /// Where.
        space: Space,
        /// Whether it depends on a condition; then the result is 0 where it does not hold.
        masked: bool,
    },
    /// Compare and swap at `a`: if it holds `b`, it becomes `c`. The result is what was there before. `b16` (on a 2-byte
    /// boundary), `b32` or `b64` by the operands.
    CompareSwap(Space),
    /// Starts a copy of 4, 8 or 16 bytes from the global address `b` to the shared address `a + offset`, both multiples. If
    /// masked and `p` does not hold: zeros, and nothing is read.
    CopyAsync {
        /// How many bytes.
        bytes: u8,
        /// Bytes beyond the shared address.
        offset: i32,
        /// Whether it depends on a condition.
        masked: bool,
    },
    /// Closes this thread's group of copies.
    CopyCommit,
    /// Waits until at most `n` of this thread's latest groups are in flight. Other threads see the bytes after a barrier.
    CopyWait(u32),
    /// Arrives at the mbarrier at `a` once all copies that this thread has started before are complete, closed groups or not. The
    /// thread goes on. The arrival is one of those that the phase expects. If masked and `p` does not hold: nothing.
    CopyArrive {
        /// Whether it depends on a condition.
        masked: bool,
    },

    /// Makes an mbarrier of the 8 bytes at `a`, which is not one: each phase expects `count` arrivals. One thread does it, and a
    /// barrier stands between it and every use.
    MbarrierInit {
        /// From 1 to 2²⁰ − 1.
        count: u32,
        /// Whether it depends on a condition.
        masked: bool,
    },
    /// Makes 8 ordinary bytes of the mbarrier at `a`. One thread does it, and a barrier stands between every use and it.
    MbarrierInvalidate {
        /// Whether it depends on a condition.
        masked: bool,
    },
    /// Arrives `count` times at the mbarrier at `a`, with release: who waits for the phase sees what this thread has done and
    /// seen before. The phase expects at least so many more.
    MbarrierArrive {
        /// From 1 to 2²⁰ − 1; not every target has more than 1.
        count: u32,
        /// Whether it depends on a condition.
        masked: bool,
    },
    /// Waits until the phase of parity `b` (`b32`, 0 or 1) of the mbarrier at `a` is complete, with acquire. Lanes wait each
    /// for itself and come out together.
    MbarrierWait,
    /// Arrives once at the mbarrier at `a`, after adding to the bytes that its phase expects. Release as of
    /// [`OpKind::MbarrierArrive`].
    MbarrierExpect {
        /// How many bytes.
        bytes: u32,
        /// Whether it depends on a condition.
        masked: bool,
    },
    /// Makes the mbarriers that this thread has initialised visible to bulk copies, and to the cluster.
    MbarrierFence,
    /// The address in the cluster, `b32`, of what lies at the shared address `a` in the program of rank `b`.
    MapCluster,
    /// Arrives once at the mbarrier at `a`, an address in the cluster, with release for the cluster.
    MbarrierArriveCluster {
        /// Whether it depends on a condition.
        masked: bool,
    },
    /// Arrives at the barrier of the cluster, which counts the threads of all its programs. With release.
    ClusterArrive,
    /// Waits there, after an arrival. With acquire.
    ClusterWait,
    /// The address of a tensor map of the function, `b64`.
    TensorMap(u32),
    /// Starts a bulk copy of a box of a tensor: operands are the address of its tensor map (`b64`), the shared address of the box, a
    /// multiple of 128, the mbarrier that its bytes complete at, and a `b32` coordinate per axis, the fastest axis first. Elements
    /// outside of the tensor are zeros. The box is written through the async proxy.
    BulkLoad {
        /// Axes of the tensor: 1 to 5.
        rank: u8,
        /// The programs of the cluster that receive the box and its bytes, at these addresses of their own, a bit for each; 0: this one
        /// alone.
        multicast: u16,
        /// Whether it depends on a condition.
        masked: bool,
    },
    /// Starts a bulk copy to a box of a tensor, in the thread's open group of bulk stores: operands are the address of its tensor map
    /// (`b64`), the shared address of the box, a multiple of 128, and a `b32` coordinate per axis, the fastest axis first. Elements
    /// outside of the tensor are left out. The box is read through the async proxy.
    BulkStore {
        /// Axes of the tensor: 1 to 5.
        rank: u8,
    },
    /// Closes this thread's group of bulk stores.
    BulkCommit,
    /// Waits until at most `n` of this thread's latest groups of bulk stores are in flight.
    BulkWait {
        /// How many.
        n: u32,
        /// Whether only until the others have read shared memory, not until they have written.
        read: bool,
    },
    /// Orders this thread's accesses to shared memory through the generic proxy before those through the async proxy that follow.
    ProxyFence,
    /// Whether this is the one lane of its warp that was elected, always the same. Convergent.
    Elect,
    /// Orders accesses to registers before the MMAs of the warpgroup that use them. Convergent for a warpgroup.
    GroupFence,
    /// Starts an MMA of a warpgroup: operands are the descriptor of A (`b64`) or its registers, the descriptor of B (`b64`), and,
    /// unless it is fresh, the registers of C. The results are in flight: they may only be operands C of other MMAs, be carried by
    /// loops and branches, and be waited for. Convergent for a warpgroup.
    GroupMma(GroupMma),
    /// Closes the warpgroup's group of MMAs. Convergent for a warpgroup.
    GroupCommit,
    /// Waits until at most `n` of the warpgroup's latest groups are in flight. Takes registers of MMAs that are complete then, and gives
    /// them as ordinary values. Convergent for a warpgroup.
    GroupWait(u32),
    /// Changes the registers of each thread of the warpgroup, and waits until there are so many. Convergent for a warpgroup.
    SetMaxRegisters {
        /// How many: a multiple of 8 from 24 to 256.
        registers: u32,
        /// Whether they become more.
        more: bool,
    },
    /// Stores the `b32` `b` at the shared address `a`, with release: who loads it so sees what this thread has done and seen
    /// before.
    StoreRelease {
        /// Whether it depends on a condition.
        masked: bool,
    },
    /// Loads a `b32` from the shared address `a`, with acquire. Lanes may get different values from one address.
    LoadAcquire,
    /// Waits until the `b32` at the shared address `a` has come to `b`: until `word − b`, wrapping, is not negative. With
    /// acquire, as of [`OpKind::LoadAcquire`]; the word is stored by [`OpKind::StoreRelease`] and only ever grows.
    SequenceWait,

    /// A `b32` of another lane. Convergent.
    Shuffle(Shuffle),
    /// A condition of the whole warp. Convergent.
    Vote(Vote),
    /// All threads of the program wait for each other; what they wrote before is seen after. Convergent.
    Barrier,
    /// Warps meet at the barrier `id`, which counts `threads` threads; those that do not wait are only counted, and what they
    /// did before is seen by those that wait. Convergent: each warp comes as a whole; of those that come for one meeting all
    /// name one number of threads, and it is theirs.
    NamedBarrier {
        /// From 1 to 15.
        id: u8,
        /// A multiple of the lanes of a warp, at most the program's threads.
        threads: u32,
        /// Whether the warp waits.
        wait: bool,
    },
    /// The lanes of the warp wait for each other; what they wrote before is seen after. Convergent.
    WarpBarrier,
    /// `n` (1, 2, 4) 8×8 matrices of 16-bit elements from shared memory, as the fragments of a warp: lane `8 i + r` gives the
    /// address of row `r` of matrix `i`, 16 bytes on a multiple of 16. Lane `l` gets elements `2 (l mod 4)` and the next of row
    /// `l / 4`, or of the transposed matrix. Convergent.
    LoadMatrix {
        /// How many.
        n: u8,
        /// Whether each is transposed.
        transposed: bool,
        /// Bytes beyond the address.
        offset: i32,
    },
    /// The reverse of [`OpKind::LoadMatrix`]: operands are the address, and the words of `n` matrices. Convergent.
    StoreMatrix {
        /// How many.
        n: u8,
        /// Whether each is transposed.
        transposed: bool,
        /// Bytes beyond the address.
        offset: i32,
    },
    /// A matrix instruction on fragments: registers of A, of B, of C. Convergent.
    Mma(MmaAtom),

    /// `for i in (lo..hi).step_by(step)`, signed `b32`, step positive: operands `lo, hi, step, initial values`.
    For,
    /// A loop until `break`.
    Loop,
    /// A branch.
    If,
    /// The warps of the program part: those of each role run its code, all at the same time, and come together again behind.
    /// Together they are all warps of the program, and each has a barrier of its own. The results are what a thread's role
    /// yields. The code of a role ends in `yield`: it neither ends threads nor leaves a loop around it, and in it only named
    /// barriers can be waited at. What roles do to the same memory a protocol orders: see [`super::hazard`]. Convergent.
    Roles(Vec<Role>),
    /// The end of an arm, with its values.
    Yield,
    /// Leaves the enclosing loop number `n` (0 is the innermost) with its results.
    Break(u32),
    /// Ends this iteration of loop number `n` with the next carried values.
    Continue(u32),
    /// Ends the thread.
    Return,
}

impl OpKind {
    /// Whether lanes exchange something: all of them must get here together.
    #[must_use]
    pub const fn is_convergent(&self) -> bool {
        matches!(
            self,
            OpKind::Shuffle(_)
                | OpKind::Vote(_)
                | OpKind::Barrier
                | OpKind::NamedBarrier { .. }
                | OpKind::WarpBarrier
                | OpKind::LoadMatrix { .. }
                | OpKind::StoreMatrix { .. }
                | OpKind::Mma(_)
                | OpKind::Elect
                | OpKind::GroupFence
                | OpKind::GroupMma(_)
                | OpKind::GroupCommit
                | OpKind::GroupWait(_)
                | OpKind::SetMaxRegisters { .. }
                | OpKind::Roles(_)
        )
    }

    /// Whether the operation may be dropped when nothing uses its results.
    #[must_use]
    pub const fn is_removable(&self) -> bool {
        !matches!(
            self,
            OpKind::Access { .. }
                | OpKind::Store { .. }
                | OpKind::Atomic { .. }
                | OpKind::CompareSwap(_)
                | OpKind::CopyAsync { .. }
                | OpKind::CopyCommit
                | OpKind::CopyWait(_)
                | OpKind::CopyArrive { .. }
                | OpKind::MbarrierInit { .. }
                | OpKind::MbarrierInvalidate { .. }
                | OpKind::MbarrierArrive { .. }
                | OpKind::MbarrierWait
                | OpKind::MbarrierExpect { .. }
                | OpKind::MbarrierFence
                | OpKind::MbarrierArriveCluster { .. }
                | OpKind::ClusterArrive
                | OpKind::ClusterWait
                | OpKind::BulkLoad { .. }
                | OpKind::BulkStore { .. }
                | OpKind::BulkCommit
                | OpKind::BulkWait { .. }
                | OpKind::StoreMatrix { .. }
                | OpKind::ProxyFence
                | OpKind::GroupFence
                | OpKind::GroupMma(_)
                | OpKind::GroupCommit
                | OpKind::GroupWait(_)
                | OpKind::SetMaxRegisters { .. }
                | OpKind::StoreRelease { .. }
                | OpKind::LoadAcquire
                | OpKind::SequenceWait
                | OpKind::Barrier
                | OpKind::NamedBarrier { .. }
                | OpKind::WarpBarrier
                | OpKind::For
                | OpKind::Loop
                | OpKind::If
                | OpKind::Roles(_)
                | OpKind::Yield
                | OpKind::Break(_)
                | OpKind::Continue(_)
                | OpKind::Return
        )
    }

    /// Whether the operation gives the same results for the same operands wherever it stands: it may be merged with another.
    #[must_use]
    pub const fn is_pure(&self) -> bool {
        self.is_removable() && !self.is_convergent() && !matches!(self, OpKind::Load { .. })
    }

    /// Whether the operation ends its block.
    #[must_use]
    pub const fn is_terminator(&self) -> bool {
        matches!(self, OpKind::Yield | OpKind::Break(_) | OpKind::Continue(_) | OpKind::Return)
    }
}
