//! tidy: table
//! `cvt` between formats. Conversions to integers saturate; NaN gives 0 only from `f16` and `f32` to 32 bits ("Data Movement
//! and Conversion Instructions: cvt", notes on NaN); the lowering corrects the other cases.

use super::Slot::{Float, In, Out};
use super::{Form, form};
use titan_core::lane::Num::{self, Bf16, E4m3, E5m2, F16, F32, F64, S32, S64, Tf32, U32, U64};
use titan_core::lane::Ty::{B16, B32, B64};

const MOVE: &str = "Data Movement and Conversion Instructions";

/// Conversions by one instruction, exact or rounded once to nearest even (toward zero to integers).
pub static CONVERT: &[((Num, Num), Form)] = &[
    ((F16, F32), form("cvt.f32.f16", &[Out(B32), In(B16)], MOVE, 10, 10)),
    ((F16, F64), form("cvt.f64.f16", &[Out(B64), In(B16)], MOVE, 10, 13)),
    ((F32, F64), form("cvt.f64.f32", &[Out(B64), In(B32)], MOVE, 10, 13)),
    ((F32, F16), form("cvt.rn.f16.f32", &[Out(B16), In(B32)], MOVE, 10, 10)),
    ((F64, F16), form("cvt.rn.f16.f64", &[Out(B16), In(B64)], MOVE, 10, 13)),
    ((F64, F32), form("cvt.rn.f32.f64", &[Out(B32), In(B64)], MOVE, 10, 13)),
    ((F32, Bf16), form("cvt.rn.bf16.f32", &[Out(B16), In(B32)], MOVE, 70, 80)),
    ((F32, Tf32), form("cvt.rna.tf32.f32", &[Out(B32), In(B32)], MOVE, 70, 80)),
    ((F16, S32), form("cvt.rzi.s32.f16", &[Out(B32), In(B16)], MOVE, 10, 10)),
    ((F16, U32), form("cvt.rzi.u32.f16", &[Out(B32), In(B16)], MOVE, 10, 10)),
    ((F16, S64), form("cvt.rzi.s64.f16", &[Out(B64), In(B16)], MOVE, 10, 10)),
    ((F16, U64), form("cvt.rzi.u64.f16", &[Out(B64), In(B16)], MOVE, 10, 10)),
    ((F32, S32), form("cvt.rzi.s32.f32", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((F32, U32), form("cvt.rzi.u32.f32", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((F32, S64), form("cvt.rzi.s64.f32", &[Out(B64), In(B32)], MOVE, 10, 10)),
    ((F32, U64), form("cvt.rzi.u64.f32", &[Out(B64), In(B32)], MOVE, 10, 10)),
    ((F64, S32), form("cvt.rzi.s32.f64", &[Out(B32), In(B64)], MOVE, 10, 13)),
    ((F64, U32), form("cvt.rzi.u32.f64", &[Out(B32), In(B64)], MOVE, 10, 13)),
    ((F64, S64), form("cvt.rzi.s64.f64", &[Out(B64), In(B64)], MOVE, 10, 13)),
    ((F64, U64), form("cvt.rzi.u64.f64", &[Out(B64), In(B64)], MOVE, 10, 13)),
    ((S32, F16), form("cvt.rn.f16.s32", &[Out(B16), In(B32)], MOVE, 10, 10)),
    ((S32, F32), form("cvt.rn.f32.s32", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((S32, F64), form("cvt.rn.f64.s32", &[Out(B64), In(B32)], MOVE, 10, 13)),
    ((U32, F16), form("cvt.rn.f16.u32", &[Out(B16), In(B32)], MOVE, 10, 10)),
    ((U32, F32), form("cvt.rn.f32.u32", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((U32, F64), form("cvt.rn.f64.u32", &[Out(B64), In(B32)], MOVE, 10, 13)),
    ((S64, F16), form("cvt.rn.f16.s64", &[Out(B16), In(B64)], MOVE, 10, 10)),
    ((S64, F32), form("cvt.rn.f32.s64", &[Out(B32), In(B64)], MOVE, 10, 10)),
    ((S64, F64), form("cvt.rn.f64.s64", &[Out(B64), In(B64)], MOVE, 10, 13)),
    ((U64, F16), form("cvt.rn.f16.u64", &[Out(B16), In(B64)], MOVE, 10, 10)),
    ((U64, F32), form("cvt.rn.f32.u64", &[Out(B32), In(B64)], MOVE, 10, 10)),
    ((U64, F64), form("cvt.rn.f64.u64", &[Out(B64), In(B64)], MOVE, 10, 13)),
];

/// Conversions to `f32` toward zero: the first half of rounding to odd.
pub static CONVERT_RZ: &[(Num, Form)] = &[
    (F64, form("cvt.rz.f32.f64", &[Out(B32), In(B64)], MOVE, 10, 13)),
    (S32, form("cvt.rz.f32.s32", &[Out(B32), In(B32)], MOVE, 10, 10)),
    (U32, form("cvt.rz.f32.u32", &[Out(B32), In(B32)], MOVE, 10, 10)),
    (S64, form("cvt.rz.f32.s64", &[Out(B32), In(B64)], MOVE, 10, 10)),
    (U64, form("cvt.rz.f32.u64", &[Out(B32), In(B64)], MOVE, 10, 10)),
];

/// Converts two 8-bit floats in a 16-bit register to two `f16`, which is exact.
pub static FROM_FP8: &[(Num, Form)] = &[
    (E4m3, form("cvt.rn.f16x2.e4m3x2", &[Out(B32), In(B16)], MOVE, 81, 89)),
    (E5m2, form("cvt.rn.f16x2.e5m2x2", &[Out(B32), In(B16)], MOVE, 81, 89)),
];

/// Converts two floats to two 8-bit floats, saturating: `f32` as the upper, then the lower operand; `f16` as one word.
pub static TO_FP8: &[((Num, Num), Form)] = &[
    ((F32, E4m3), form("cvt.rn.satfinite.e4m3x2.f32", &[Out(B16), Float(B32), Float(B32)], MOVE, 81, 89)),
    ((F32, E5m2), form("cvt.rn.satfinite.e5m2x2.f32", &[Out(B16), Float(B32), Float(B32)], MOVE, 81, 89)),
    ((F16, E4m3), form("cvt.rn.satfinite.e4m3x2.f16x2", &[Out(B16), In(B32)], MOVE, 81, 89)),
    ((F16, E5m2), form("cvt.rn.satfinite.e5m2x2.f16x2", &[Out(B16), In(B32)], MOVE, 81, 89)),
];

/// All rows.
#[must_use]
pub fn all() -> Vec<&'static Form> {
    let mut rows: Vec<&Form> = CONVERT.iter().map(|(_, form)| form).collect();
    rows.extend(CONVERT_RZ.iter().map(|(_, form)| form));
    rows.extend(FROM_FP8.iter().map(|(_, form)| form));
    rows.extend(TO_FP8.iter().map(|(_, form)| form));
    rows
}
