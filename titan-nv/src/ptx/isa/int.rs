//! tidy: table
//! Integer arithmetic, logic, comparisons, and changes of width.

use super::Slot::{In, Int, Out};
use super::{Form, Slot, form};
use titan_core::ir::Pred as Cmp;
use titan_core::lane::IntBin;
use titan_core::lane::IntBin::{
    Add, And, DivS, DivU, MaxS, MaxU, MinS, MinU, Mul, MulHi, Or, RemS, RemU, Shl, ShrS, ShrU, Sub, Xor,
};
use titan_core::lane::IntUn;
use titan_core::lane::Ty::{self, B16, B32, B64, Pred};

const ARITH: &str = "Integer Arithmetic Instructions";
const LOGIC: &str = "Logic and Shift Instructions";
const COMPARE: &str = "Comparison and Selection Instructions";
const MOVE: &str = "Data Movement and Conversion Instructions";

const W: &[Slot] = &[Out(B32), Int(B32), Int(B32)];
const D: &[Slot] = &[Out(B64), Int(B64), Int(B64)];
const H: &[Slot] = &[Out(B16), Int(B16), Int(B16)];
const P: &[Slot] = &[Out(Pred), In(Pred), In(Pred)];
const SHIFT: &[Slot] = &[Out(B64), Int(B64), Int(B32)];
const WIDE: &[Slot] = &[Out(B64), Int(B32), Int(B32)];
const CMP_W: &[Slot] = &[Out(Pred), Int(B32), Int(B32)];
const CMP_D: &[Slot] = &[Out(Pred), Int(B64), Int(B64)];

/// Arithmetic of two operands. Shifts clamp amounts above the width, which do not occur in the lane IR.
pub static INT: &[((IntBin, Ty), Form)] = &[
    ((Add, B32), form("add.s32", W, ARITH, 10, 10)),
    ((Add, B64), form("add.s64", D, ARITH, 10, 10)),
    ((Sub, B32), form("sub.s32", W, ARITH, 10, 10)),
    ((Sub, B64), form("sub.s64", D, ARITH, 10, 10)),
    ((Mul, B32), form("mul.lo.s32", W, ARITH, 10, 10)),
    ((Mul, B64), form("mul.lo.s64", D, ARITH, 10, 10)),
    ((MulHi, B32), form("mul.hi.u32", W, ARITH, 10, 10)),
    ((MulHi, B64), form("mul.hi.u64", D, ARITH, 10, 10)),
    ((DivS, B32), form("div.s32", W, ARITH, 10, 10)),
    ((DivS, B64), form("div.s64", D, ARITH, 10, 10)),
    ((DivU, B32), form("div.u32", W, ARITH, 10, 10)),
    ((DivU, B64), form("div.u64", D, ARITH, 10, 10)),
    ((RemS, B32), form("rem.s32", W, ARITH, 10, 10)),
    ((RemS, B64), form("rem.s64", D, ARITH, 10, 10)),
    ((RemU, B32), form("rem.u32", W, ARITH, 10, 10)),
    ((RemU, B64), form("rem.u64", D, ARITH, 10, 10)),
    ((MinS, B32), form("min.s32", W, ARITH, 10, 10)),
    ((MinS, B64), form("min.s64", D, ARITH, 10, 10)),
    ((MinU, B32), form("min.u32", W, ARITH, 10, 10)),
    ((MinU, B64), form("min.u64", D, ARITH, 10, 10)),
    ((MaxS, B32), form("max.s32", W, ARITH, 10, 10)),
    ((MaxS, B64), form("max.s64", D, ARITH, 10, 10)),
    ((MaxU, B32), form("max.u32", W, ARITH, 10, 10)),
    ((MaxU, B64), form("max.u64", D, ARITH, 10, 10)),
    ((And, Pred), form("and.pred", P, LOGIC, 10, 10)),
    ((And, B16), form("and.b16", H, LOGIC, 10, 10)),
    ((And, B32), form("and.b32", W, LOGIC, 10, 10)),
    ((And, B64), form("and.b64", D, LOGIC, 10, 10)),
    ((Or, Pred), form("or.pred", P, LOGIC, 10, 10)),
    ((Or, B16), form("or.b16", H, LOGIC, 10, 10)),
    ((Or, B32), form("or.b32", W, LOGIC, 10, 10)),
    ((Or, B64), form("or.b64", D, LOGIC, 10, 10)),
    ((Xor, Pred), form("xor.pred", P, LOGIC, 10, 10)),
    ((Xor, B16), form("xor.b16", H, LOGIC, 10, 10)),
    ((Xor, B32), form("xor.b32", W, LOGIC, 10, 10)),
    ((Xor, B64), form("xor.b64", D, LOGIC, 10, 10)),
    ((Shl, B32), form("shl.b32", W, LOGIC, 10, 10)),
    ((Shl, B64), form("shl.b64", SHIFT, LOGIC, 10, 10)),
    ((ShrS, B32), form("shr.s32", W, LOGIC, 10, 10)),
    ((ShrS, B64), form("shr.s64", SHIFT, LOGIC, 10, 10)),
    ((ShrU, B32), form("shr.u32", W, LOGIC, 10, 10)),
    ((ShrU, B64), form("shr.u64", SHIFT, LOGIC, 10, 10)),
];

/// Numbers of bits of a word. Of 0, `clz` gives 32.
pub static INT_UN: &[(IntUn, Form)] = &[
    (IntUn::CountOnes, form("popc.b32", &[Out(B32), In(B32)], ARITH, 20, 20)),
    (IntUn::LeadingZeros, form("clz.b32", &[Out(B32), In(B32)], ARITH, 20, 20)),
];

/// The negation of a condition.
pub static NOT: Form = form("not.pred", &[Out(Pred), In(Pred)], LOGIC, 10, 10);

/// The double-width product of two words, by signedness.
pub static MUL_WIDE: &[(bool, Form)] =
    &[(true, form("mul.wide.s32", WIDE, ARITH, 10, 10)), (false, form("mul.wide.u32", WIDE, ARITH, 10, 10))];

/// Comparisons, by signedness.
pub static COMPARE_INT: &[((Cmp, bool, Ty), Form)] = &[
    ((Cmp::Eq, true, B32), form("setp.eq.s32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Eq, true, B64), form("setp.eq.s64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Eq, false, B32), form("setp.eq.u32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Eq, false, B64), form("setp.eq.u64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Ne, true, B32), form("setp.ne.s32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Ne, true, B64), form("setp.ne.s64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Ne, false, B32), form("setp.ne.u32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Ne, false, B64), form("setp.ne.u64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Lt, true, B32), form("setp.lt.s32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Lt, true, B64), form("setp.lt.s64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Lt, false, B32), form("setp.lt.u32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Lt, false, B64), form("setp.lt.u64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Le, true, B32), form("setp.le.s32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Le, true, B64), form("setp.le.s64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Le, false, B32), form("setp.le.u32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Le, false, B64), form("setp.le.u64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Gt, true, B32), form("setp.gt.s32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Gt, true, B64), form("setp.gt.s64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Gt, false, B32), form("setp.gt.u32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Gt, false, B64), form("setp.gt.u64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Ge, true, B32), form("setp.ge.s32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Ge, true, B64), form("setp.ge.s64", CMP_D, COMPARE, 10, 10)),
    ((Cmp::Ge, false, B32), form("setp.ge.u32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Ge, false, B64), form("setp.ge.u64", CMP_D, COMPARE, 10, 10)),
];

/// An extension: the number of low bits, the type of the source register, whether the sign is extended, the type of the result.
pub type Extension = (u8, Ty, bool, Ty);

/// Extends the low bits. A register wider than the source type provides its low bits ("Operand Size Exceeding
/// Instruction-Type Size").
pub static EXTEND: &[(Extension, Form)] = &[
    ((8, B16, true, B32), form("cvt.s32.s8", &[Out(B32), In(B16)], MOVE, 10, 10)),
    ((8, B16, true, B64), form("cvt.s64.s8", &[Out(B64), In(B16)], MOVE, 10, 10)),
    ((8, B16, false, B32), form("cvt.u32.u8", &[Out(B32), In(B16)], MOVE, 10, 10)),
    ((8, B16, false, B64), form("cvt.u64.u8", &[Out(B64), In(B16)], MOVE, 10, 10)),
    ((8, B32, true, B32), form("cvt.s32.s8", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((8, B32, true, B64), form("cvt.s64.s8", &[Out(B64), In(B32)], MOVE, 10, 10)),
    ((8, B32, false, B32), form("cvt.u32.u8", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((8, B32, false, B64), form("cvt.u64.u8", &[Out(B64), In(B32)], MOVE, 10, 10)),
    ((16, B16, true, B32), form("cvt.s32.s16", &[Out(B32), In(B16)], MOVE, 10, 10)),
    ((16, B16, true, B64), form("cvt.s64.s16", &[Out(B64), In(B16)], MOVE, 10, 10)),
    ((16, B16, false, B32), form("cvt.u32.u16", &[Out(B32), In(B16)], MOVE, 10, 10)),
    ((16, B16, false, B64), form("cvt.u64.u16", &[Out(B64), In(B16)], MOVE, 10, 10)),
    ((16, B32, true, B32), form("cvt.s32.s16", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((16, B32, true, B64), form("cvt.s64.s16", &[Out(B64), In(B32)], MOVE, 10, 10)),
    ((16, B32, false, B32), form("cvt.u32.u16", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((16, B32, false, B64), form("cvt.u64.u16", &[Out(B64), In(B32)], MOVE, 10, 10)),
    ((32, B32, true, B64), form("cvt.s64.s32", &[Out(B64), In(B32)], MOVE, 10, 10)),
    ((32, B32, false, B64), form("cvt.u64.u32", &[Out(B64), In(B32)], MOVE, 10, 10)),
];

/// Truncation to the low half, by the type of the result.
pub static TRUNCATE: &[(Ty, Form)] = &[
    (B16, form("cvt.u16.u32", &[Out(B16), In(B32)], MOVE, 10, 10)),
    (B32, form("cvt.u32.u64", &[Out(B32), In(B64)], MOVE, 10, 10)),
];

/// All rows.
#[must_use]
pub fn all() -> Vec<&'static Form> {
    let mut rows = vec![&NOT];
    rows.extend(INT.iter().map(|(_, form)| form));
    rows.extend(INT_UN.iter().map(|(_, form)| form));
    rows.extend(MUL_WIDE.iter().map(|(_, form)| form));
    rows.extend(COMPARE_INT.iter().map(|(_, form)| form));
    rows.extend(EXTEND.iter().map(|(_, form)| form));
    rows.extend(TRUNCATE.iter().map(|(_, form)| form));
    rows
}
