//! tidy: table
//! The operations of the lane IR, each with its contract: operands, results, and for which operands it is defined.
//!
//! A back end implements every row for every target that it supports, or rejects the function with an error that names the row.
//! *Convergent* operations exchange data between lanes: all lanes of the warp (of the program, for its barrier and for roles; of the role,
//! for a role's barrier) must execute them together.
//!
//! # Synchronization of a part of the threads
//!
//! | | waits | for | orders |
//! |---|---|---|---|
//! | [`OpKind::Barrier`] | all threads | each other | all their accesses before it, before all their accesses after it |
//! | [`NvOp::NamedBarrier`] | the participating warps | each other | the same, for those warps |
//! | [`OpKind::WarpBarrier`] | a warp | its lanes | the same, for those lanes |
//! | [`NvOp::MbarrierWait`] | the thread | the completion of a phase | the accesses before each arrival, before those after the wait |
//! | [`OpKind::SequenceWait`] | the thread | a counter's value | the accesses before the store of that value, before those after the wait |
//!
//! All of these have the scope of one program. What the mbarriers of [`NvOp`] are is said there.

use super::amd::AmdOp;
use super::nv::NvOp;
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
    /// The interpretation of bits as a float by arithmetic operations.
    FloatTy {
        /// IEEE 754 binary16, in a `b16`.
        F16 = "f16",
        /// bfloat16, the upper half of a binary32, in a `b16`.
        Bf16 = "bf16",
        /// IEEE 754 binary32, in a `b32`.
        F32 = "f32",
        /// IEEE 754 binary64, in a `b64`.
        F64 = "f64",
    }
}

impl FloatTy {
    /// The width of a value of this type.
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
    /// The type of the operand or result of a conversion.
    Num {
        /// binary16, in a `b16`.
        F16 = "f16",
        /// bfloat16, in a `b16`.
        Bf16 = "bf16",
        /// binary32.
        F32 = "f32",
        /// binary64.
        F64 = "f64",
        /// A binary32 with 10 fraction bits, in a `b32`; as an operand it is read as `f32`. Conversions to it round ties away from zero,
        /// unlike all others.
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
    /// The width of a value of this type.
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
    /// Integer operations with two operands of the same width, 32 or 64 bits (`and`, `or`, `xor` also on conditions).
    IntBin {
        /// Sum, wrapping.
        Add = "add",
        /// Difference, wrapping.
        Sub = "sub",
        /// The low half of the product.
        Mul = "mul",
        /// The high half of the unsigned product.
        MulHi = "mul_hi",
        /// Signed quotient, rounded toward zero. The divisor must not be 0; the minimum divided by −1 is the minimum.
        DivS = "div_s",
        /// Unsigned quotient. The divisor must not be 0.
        DivU = "div_u",
        /// Signed remainder, with the sign of the dividend. The divisor must not be 0; for −1 the result is 0.
        RemS = "rem_s",
        /// Unsigned remainder. The divisor must not be 0.
        RemU = "rem_u",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
        /// Shift to the left. The amount, always 32 bits wide, must be less than the width.
        Shl = "shl",
        /// Arithmetic shift to the right. The amount must be less than the width.
        ShrS = "shr_s",
        /// Logical shift to the right. The amount must be less than the width.
        ShrU = "shr_u",
        /// Signed minimum.
        MinS = "min_s",
        /// Unsigned minimum.
        MinU = "min_u",
        /// Signed maximum.
        MaxS = "max_s",
        /// Unsigned maximum.
        MaxU = "max_u",
    }
}

named_enum! {
    /// Integer operations with one operand of 32 bits, whose result has 32 bits.
    IntUn {
        /// The number of bits that are 1.
        CountOnes = "count_ones",
        /// The number of zeros before the highest bit that is 1; 32 if there is none.
        LeadingZeros = "leading_zeros",
    }
}

named_enum! {
    /// Float operations with two operands. Results are rounded once, to nearest even; subnormals are not flushed.
    FloatBin {
        /// Sum.
        Add = "add",
        /// Difference.
        Sub = "sub",
        /// Product.
        Mul = "mul",
        /// Quotient, correctly rounded.
        Div = "div",
        /// Minimum; of NaN and a number, the number; −0 < +0.
        Min = "min",
        /// Maximum; of NaN and a number, the number; −0 < +0.
        Max = "max",
    }
}

named_enum! {
    /// Float operations with one operand.
    FloatUn {
        /// Inverts the sign, also of NaN.
        Neg = "neg",
        /// Clears the sign, also of NaN.
        Abs = "abs",
        /// Square root, correctly rounded; `f32` and `f64`.
        Sqrt = "sqrt",
        /// Rounds toward −∞; `f32` and `f64`.
        Floor = "floor",
        /// Rounds toward +∞; `f32` and `f64`.
        Ceil = "ceil",
        /// Rounds toward zero; `f32` and `f64`.
        Trunc = "trunc",
        /// Rounds to nearest, ties to even; `f32` and `f64`.
        RoundEven = "round_even",
        /// 2ˣ within 2 ulp, and within 1.6 ulp for |x| ≤ ½ (which the lowering of `exp` needs); `f32` only. Subnormal operands and results
        /// may be flushed to zero.
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
    /// The state space of a memory access.
    Space {
        /// Device memory, with 64-bit addresses.
        Global = "global",
        /// The shared memory of the program, with 32-bit addresses that start at [`OpKind::SharedBase`].
        Shared = "shared",
    }
}

named_enum! {
    /// The function of an atomic update, which also defines how the bits are interpreted.
    AtomicFn {
        /// Integer sum, 4 or 8 bytes.
        Add = "add",
        /// Signed minimum.
        MinS = "min_s",
        /// Unsigned minimum.
        MinU = "min_u",
        /// Signed maximum.
        MaxS = "max_s",
        /// Unsigned maximum.
        MaxU = "max_u",
        /// Bitwise and.
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Sum of `f32`.
        AddF32 = "add_f32",
        /// Sum of `f64`.
        AddF64 = "add_f64",
        /// Two separate sums of `f16`, in 4 bytes.
        AddF16x2 = "add_f16x2",
        /// Exchange.
        Exchange = "exchange",
    }
}

named_enum! {
    /// The function of a vote of the lanes of a warp.
    Vote {
        /// Whether the condition holds in at least one lane.
        Any = "any",
        /// Whether it holds in every lane.
        All = "all",
    }
}

/// The source lane of a shuffle. Lanes are numbered within the warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shuffle {
    /// The lane whose number differs by these bits.
    Xor(u32),
    /// The lane with the number lower by this; lanes without such a lane keep their own value.
    Up(u32),
    /// The lane of this number.
    Lane(u32),
    /// The lane whose number is the second operand.
    Index,
}

/// A matrix instruction of a warp: `D = A · Bᵀ + C` on fragments. Which lane holds which element in which register is defined by the layout
/// of the same name in `crate::layout::atoms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MmaAtom {
    /// The number of rows of D.
    pub m: u32,
    /// The number of columns of D.
    pub n: u32,
    /// The extent of the summation.
    pub k: u32,
    /// The element type of A.
    pub a: crate::ir::Elem,
    /// The element type of B.
    pub b: crate::ir::Elem,
    /// The element type of C and D.
    pub acc: crate::ir::Elem,
}

impl MmaAtom {
    /// The numbers of registers of A, B and C in each lane, and the widths of those of C and of those of A and B.
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

/// The numbers of registers of a matrix instruction in each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmaRegisters {
    /// The number of registers of A.
    pub a: usize,
    /// The number of registers of B.
    pub b: usize,
    /// The number of registers of C, and of the result.
    pub c: usize,
    /// The width of one register of A or B: a packed word, or one `f64`.
    pub operand: Ty,
    /// The width of one register of C: one element.
    pub acc: Ty,
}

/// Memory that several threads of a program may access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Region {
    /// A buffer of the function, in shared memory.
    Buffer(u32),
    /// The tensor of a parameter.
    Tensor(u32),
    /// A buffer whose accesses are ordered by a protocol: slots of a ring, mbarriers, sequence counters. Two such accesses need no barrier
    /// between them; such an access and another access to the same bytes do. The protocol also guarantees that asynchronous copies to the
    /// buffer are complete at its end.
    Ring(u32),
}

/// A warp set of a program that executes its own code: see [`OpKind::Roles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Role {
    /// The number of warps. The first role has the warps with the lowest numbers, and so on.
    pub warps: u32,
    /// The number of the named barrier, 1 to 15, for exactly these warps.
    pub barrier: u8,
}

/// The kind of an operation, with its attributes.
///
/// In the contracts, `a` and `b` are the operands in order, and `p` is an optional condition: if the attribute `masked` is set, it is the
/// last operand, and if it is false the operation has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// A constant with these bits.
    Const(Ty, u64),
    /// A word of the parameter block: `b32` or `b64`, as declared by the slot.
    Slot(u32),
    /// The number of the thread in the program, `b32`.
    ThreadId,
    /// The number of the lane in its warp, `b32`.
    LaneId,
    /// The number of the warp in the program, `b32`. It is uniform in each warp, and the divergence analysis treats it so.
    WarpId,
    /// The program's index along an axis, `b32`.
    ProgramId(u8),
    /// The grid's extent along an axis, `b32`.
    NumPrograms(u8),
    /// The address of the program's shared memory, `b32`, a multiple of 1024.
    SharedBase,
    /// The address of a buffer, `b32`. It is replaced when shared memory is allocated, so that back ends never see it.
    Buffer(u32),
    /// Marks the following accesses as accesses to this region. The mark is valid up to the next mark that follows an access (consecutive
    /// marks form a row), or up to the start or end of roles. It states that no two threads access the same element among these accesses,
    /// unless all read it or a protocol orders them ([`Region::Ring`]). Barriers are checked by these marks, which are then removed.
    Access {
        /// The region that is accessed.
        region: Region,
        /// Whether the accesses write.
        write: bool,
    },

    /// Integer arithmetic.
    Int(IntBin),
    /// Numbers of bits.
    IntUn(IntUn),
    /// `b32 × b32 → b64`, signed or unsigned.
    MulWide {
        /// Whether the operands are signed.
        signed: bool,
    },
    /// Comparison of integers, or of conditions for (in)equality.
    IntCmp {
        /// The predicate.
        pred: Pred,
        /// Whether the operands are signed.
        signed: bool,
    },
    /// The low `from` bits (8, 16 or 32) of a `b16` or `b32`, extended to the width of the result, `b32` or `b64`.
    Extend {
        /// The number of bits that are extended.
        from: u8,
        /// Whether the extension is signed.
        signed: bool,
        /// The width of the result.
        to: Ty,
    },
    /// The low bits: `b64 → b32`, `b32 → b16`.
    Truncate(Ty),
    /// Converts a condition to 1 or 0 as `b32`.
    FromPred,

    /// Float arithmetic.
    Float(FloatBin, FloatTy),
    /// Float functions.
    FloatUn(FloatUn, FloatTy),
    /// `a · b + c`, rounded once.
    Fma(FloatTy),
    /// Comparison of floats: with NaN, all predicates are false except `ne`.
    FloatCmp(Pred, FloatTy),
    /// Conversion of values. To floats: rounded to nearest even; to fp8, saturating to the maximum finite number, and NaN stays NaN. To
    /// integers: rounded toward zero, saturating, and NaN gives 0. One operand, or two for two fp8 at once.
    Convert {
        /// The type of the operand.
        from: Num,
        /// The type of the result.
        to: Num,
    },
    /// `b` if the condition `a` is true, otherwise `c`; of any width.
    Select,
    /// Packs two `b16`, or the low bytes of four `b32`, to a `b32`; or two `b32` to a `b64`. The first operand is the lowest part.
    Pack,
    /// The parts of a word, the lowest first: two `b16` of a `b32`, or two `b32` of a `b64`.
    Unpack,
    /// The bytes of a `b32`, each extended to a `b32`.
    UnpackBytes {
        /// Whether the extension is signed.
        signed: bool,
    },

    /// Loads `n` contiguous elements of `bytes` bytes each from the address `a + offset`, which is a multiple of their total size. Results
    /// are `b32` (for 1 byte, zero-extended, or 4), `b16` (2) or `b64` (8). If masked, the operands are `a, e₁ … eₙ, p`, and the results
    /// are the `eᵢ` if `p` is false.
    Load {
        /// The state space.
        space: Space,
        /// Bytes of one element: 1, 2, 4 or 8.
        bytes: u8,
        /// The number of elements: 1, 2 or 4; at most 16 bytes in total.
        n: u8,
        /// The offset from the address in bytes.
        offset: i32,
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// Stores `n` contiguous elements, as for [`OpKind::Load`]; operands are `a, v₁ … vₙ [, p]`.
    Store {
        /// The state space.
        space: Space,
        /// Bytes of one element.
        bytes: u8,
        /// The number of elements.
        n: u8,
        /// The offset from the address in bytes.
        offset: i32,
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// Atomic update of the memory at `a` by `b`; relaxed, at the scope of the device. The result is the previous value (`b32`, `b64`).
    Atomic {
        /// The function of the update.
        op: AtomicFn,
        /// The state space.
        space: Space,
        /// Whether the operation has a condition; if that is false, the result is 0.
        masked: bool,
    },
    /// Atomic compare-and-swap at `a`: if the value is `b`, it becomes `c`. The result is the previous value. The width is that of the
    /// operands: `b16` (aligned to 2 bytes), `b32` or `b64`.
    CompareSwap(Space),
    /// Stores the `b32` `b` at the shared address `a`, with release semantics: a thread that acquires the value observes all accesses of
    /// this thread before the store, and those that it has observed.
    StoreRelease {
        /// Whether the operation has a condition.
        masked: bool,
    },
    /// Loads a `b32` from the shared address `a`, with acquire semantics. Lanes may get different values from the same address.
    LoadAcquire,
    /// Waits until the `b32` at the shared address `a` has reached `b`: until `word − b`, wrapping, is not negative. Acquire semantics as
    /// for [`OpKind::LoadAcquire`]. The word is stored by [`OpKind::StoreRelease`] and only increases.
    SequenceWait,
    /// An operation of the dialect of NVIDIA.
    Nv(NvOp),
    /// An operation of the dialect of AMD.
    Amd(AmdOp),

    /// A `b32` of another lane. Convergent.
    Shuffle(Shuffle),
    /// A condition over the whole warp. Convergent.
    Vote(Vote),
    /// A barrier of all threads of the program, which orders their accesses before and after it. Convergent.
    Barrier,
    /// A barrier of the lanes of the warp, which orders their accesses before and after it. Convergent.
    WarpBarrier,
    /// A matrix instruction on fragments; operands are the registers of A, B and C. Convergent.
    Mma(MmaAtom),

    /// `for i in (lo..hi).step_by(step)`, on signed `b32`, with positive step; operands are `lo, hi, step, initial values`.
    For,
    /// A loop that runs until `break`.
    Loop,
    /// A branch on a condition, with two arms.
    If,
    /// Specializes the warps: the warps of each role execute the role's code, all roles concurrently, and join after it. Together, the
    /// roles have all warps of the program, and each has its own named barrier. The results are the values that the thread's role yields.
    /// The code of a role ends in `yield`: it neither returns nor leaves a loop around the roles, and only named barriers may be waited at
    /// in it. Accesses of several roles to the same memory are ordered by a protocol: see [`super::hazard`]. Convergent.
    Roles(Vec<Role>),
    /// The end of an arm or of the code of a role, with its values.
    Yield,
    /// Leaves the enclosing loop number `n` (0 is the innermost); the operands are the results of the loop.
    Break(u32),
    /// Ends this iteration of the enclosing loop number `n`; the operands are the next carried values.
    Continue(u32),
    /// Ends the thread.
    Return,
}
