//! tidy: table
//! Floating point. The rounding is always written where PTX allows it: without it, assemblers may fuse a product and a sum.

use super::Slot::{Float, In, Out};
use super::{Form, Slot, form};
use titan_core::ir::Pred as Cmp;
use titan_core::lane::FloatBin::{self, Add, Div, Max, Min, Mul, Sub};
use titan_core::lane::FloatTy::{self, Bf16, F16, F32, F64};
use titan_core::lane::FloatUn::{
    self, Abs, Ceil, Ex2Approx, Floor, Lg2Approx, Neg, RcpApprox, RoundEven, RsqrtApprox, Sqrt, Trunc,
};
use titan_core::lane::Ty::{B16, B32, B64, Pred};

const FLOAT_: &str = "Floating Point Instructions";
const HALF: &str = "Half Precision Floating Point Instructions";
const COMPARE: &str = "Comparison and Selection Instructions";
const COMPARE_HALF: &str = "Half Precision Comparison Instructions";
const MOVE: &str = "Data Movement and Conversion Instructions";

const H2: &[Slot] = &[Out(B16), In(B16), In(B16)];
const H3: &[Slot] = &[Out(B16), In(B16), In(B16), In(B16)];
const W1: &[Slot] = &[Out(B32), Float(B32)];
const W2: &[Slot] = &[Out(B32), Float(B32), Float(B32)];
const W3: &[Slot] = &[Out(B32), Float(B32), Float(B32), Float(B32)];
const D1: &[Slot] = &[Out(B64), Float(B64)];
const D2: &[Slot] = &[Out(B64), Float(B64), Float(B64)];
const D3: &[Slot] = &[Out(B64), Float(B64), Float(B64), Float(B64)];
const CMP_H: &[Slot] = &[Out(Pred), In(B16), In(B16)];
const CMP_W: &[Slot] = &[Out(Pred), Float(B32), Float(B32)];
const CMP_D: &[Slot] = &[Out(Pred), Float(B64), Float(B64)];

/// Arithmetic of two operands. `min` and `max`: "if values of both inputs are 0.0, then +0.0 > -0.0", and a number wins over NaN.
pub static FLOAT: &[((FloatBin, FloatTy), Form)] = &[
    ((Add, F16), form("add.rn.f16", H2, HALF, 42, 53)),
    ((Add, Bf16), form("add.rn.bf16", H2, HALF, 78, 90)),
    ((Add, F32), form("add.rn.f32", W2, FLOAT_, 10, 10)),
    ((Add, F64), form("add.rn.f64", D2, FLOAT_, 10, 13)),
    ((Sub, F16), form("sub.rn.f16", H2, HALF, 42, 53)),
    ((Sub, Bf16), form("sub.rn.bf16", H2, HALF, 78, 90)),
    ((Sub, F32), form("sub.rn.f32", W2, FLOAT_, 10, 10)),
    ((Sub, F64), form("sub.rn.f64", D2, FLOAT_, 10, 13)),
    ((Mul, F16), form("mul.rn.f16", H2, HALF, 42, 53)),
    ((Mul, Bf16), form("mul.rn.bf16", H2, HALF, 78, 90)),
    ((Mul, F32), form("mul.rn.f32", W2, FLOAT_, 10, 10)),
    ((Mul, F64), form("mul.rn.f64", D2, FLOAT_, 10, 13)),
    ((Div, F32), form("div.rn.f32", W2, FLOAT_, 14, 20)),
    ((Div, F64), form("div.rn.f64", D2, FLOAT_, 14, 13)),
    ((Min, F16), form("min.f16", H2, HALF, 70, 80)),
    ((Min, Bf16), form("min.bf16", H2, HALF, 70, 80)),
    ((Min, F32), form("min.f32", W2, FLOAT_, 10, 10)),
    ((Min, F64), form("min.f64", D2, FLOAT_, 10, 13)),
    ((Max, F16), form("max.f16", H2, HALF, 70, 80)),
    ((Max, Bf16), form("max.bf16", H2, HALF, 70, 80)),
    ((Max, F32), form("max.f32", W2, FLOAT_, 10, 10)),
    ((Max, F64), form("max.f64", D2, FLOAT_, 10, 13)),
];

/// Functions of one operand. `neg` and `abs` leave the sign of NaN unspecified, so they are used only where it is not observable.
pub static FUNCTION: &[((FloatUn, FloatTy), Form)] = &[
    ((Neg, F32), form("neg.f32", W1, FLOAT_, 10, 10)),
    ((Neg, F64), form("neg.f64", D1, FLOAT_, 10, 13)),
    ((Abs, F32), form("abs.f32", W1, FLOAT_, 10, 10)),
    ((Abs, F64), form("abs.f64", D1, FLOAT_, 10, 13)),
    ((Sqrt, F32), form("sqrt.rn.f32", W1, FLOAT_, 14, 20)),
    ((Sqrt, F64), form("sqrt.rn.f64", D1, FLOAT_, 14, 13)),
    ((Floor, F32), form("cvt.rmi.f32.f32", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((Floor, F64), form("cvt.rmi.f64.f64", &[Out(B64), In(B64)], MOVE, 10, 13)),
    ((Ceil, F32), form("cvt.rpi.f32.f32", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((Ceil, F64), form("cvt.rpi.f64.f64", &[Out(B64), In(B64)], MOVE, 10, 13)),
    ((Trunc, F32), form("cvt.rzi.f32.f32", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((Trunc, F64), form("cvt.rzi.f64.f64", &[Out(B64), In(B64)], MOVE, 10, 13)),
    ((RoundEven, F32), form("cvt.rni.f32.f32", &[Out(B32), In(B32)], MOVE, 10, 10)),
    ((RoundEven, F64), form("cvt.rni.f64.f64", &[Out(B64), In(B64)], MOVE, 10, 13)),
    ((Ex2Approx, F32), form("ex2.approx.ftz.f32", W1, FLOAT_, 14, 10)),
    ((Lg2Approx, F32), form("lg2.approx.ftz.f32", W1, FLOAT_, 14, 10)),
    ((RcpApprox, F32), form("rcp.approx.ftz.f32", W1, FLOAT_, 14, 10)),
    ((RsqrtApprox, F32), form("rsqrt.approx.ftz.f32", W1, FLOAT_, 14, 10)),
];

/// `a · b + c`, rounded once.
pub static FMA: &[(FloatTy, Form)] = &[
    (F16, form("fma.rn.f16", H3, HALF, 42, 53)),
    (Bf16, form("fma.rn.bf16", H3, HALF, 70, 80)),
    (F32, form("fma.rn.f32", W3, FLOAT_, 20, 20)),
    (F64, form("fma.rn.f64", D3, FLOAT_, 14, 13)),
];

/// Comparisons: false if an operand is NaN, except `neu`, which is true.
pub static COMPARE_FLOAT: &[((Cmp, FloatTy), Form)] = &[
    ((Cmp::Eq, F16), form("setp.eq.f16", CMP_H, COMPARE_HALF, 42, 53)),
    ((Cmp::Eq, Bf16), form("setp.eq.bf16", CMP_H, COMPARE_HALF, 78, 90)),
    ((Cmp::Eq, F32), form("setp.eq.f32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Eq, F64), form("setp.eq.f64", CMP_D, COMPARE, 10, 13)),
    ((Cmp::Ne, F16), form("setp.neu.f16", CMP_H, COMPARE_HALF, 42, 53)),
    ((Cmp::Ne, Bf16), form("setp.neu.bf16", CMP_H, COMPARE_HALF, 78, 90)),
    ((Cmp::Ne, F32), form("setp.neu.f32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Ne, F64), form("setp.neu.f64", CMP_D, COMPARE, 10, 13)),
    ((Cmp::Lt, F16), form("setp.lt.f16", CMP_H, COMPARE_HALF, 42, 53)),
    ((Cmp::Lt, Bf16), form("setp.lt.bf16", CMP_H, COMPARE_HALF, 78, 90)),
    ((Cmp::Lt, F32), form("setp.lt.f32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Lt, F64), form("setp.lt.f64", CMP_D, COMPARE, 10, 13)),
    ((Cmp::Le, F16), form("setp.le.f16", CMP_H, COMPARE_HALF, 42, 53)),
    ((Cmp::Le, Bf16), form("setp.le.bf16", CMP_H, COMPARE_HALF, 78, 90)),
    ((Cmp::Le, F32), form("setp.le.f32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Le, F64), form("setp.le.f64", CMP_D, COMPARE, 10, 13)),
    ((Cmp::Gt, F16), form("setp.gt.f16", CMP_H, COMPARE_HALF, 42, 53)),
    ((Cmp::Gt, Bf16), form("setp.gt.bf16", CMP_H, COMPARE_HALF, 78, 90)),
    ((Cmp::Gt, F32), form("setp.gt.f32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Gt, F64), form("setp.gt.f64", CMP_D, COMPARE, 10, 13)),
    ((Cmp::Ge, F16), form("setp.ge.f16", CMP_H, COMPARE_HALF, 42, 53)),
    ((Cmp::Ge, Bf16), form("setp.ge.bf16", CMP_H, COMPARE_HALF, 78, 90)),
    ((Cmp::Ge, F32), form("setp.ge.f32", CMP_W, COMPARE, 10, 10)),
    ((Cmp::Ge, F64), form("setp.ge.f64", CMP_D, COMPARE, 10, 13)),
];

/// Whether one of two operands is NaN.
pub static IS_NAN: &[(FloatTy, Form)] = &[
    (F16, form("setp.nan.f16", CMP_H, COMPARE_HALF, 42, 53)),
    (F32, form("setp.nan.f32", CMP_W, COMPARE, 10, 10)),
    (F64, form("setp.nan.f64", CMP_D, COMPARE, 10, 13)),
];

/// All rows.
#[must_use]
pub fn all() -> Vec<&'static Form> {
    let mut rows: Vec<&Form> = FLOAT.iter().map(|(_, form)| form).collect();
    rows.extend(FUNCTION.iter().map(|(_, form)| form));
    rows.extend(FMA.iter().map(|(_, form)| form));
    rows.extend(COMPARE_FLOAT.iter().map(|(_, form)| form));
    rows.extend(IS_NAN.iter().map(|(_, form)| form));
    rows
}
