//! Abbreviations: the operations of the lane IR as functions of values.

use crate::ir::Pred;
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, IntBin, Num, OpKind, Ty, Value};

/// A constant of these bits.
pub(super) fn bits(b: &mut Builder, ty: Ty, bits: u64) -> Value {
    b.one(OpKind::Const(ty, bits), &[])
}

/// A float constant, rounded once.
#[expect(clippy::cast_possible_truncation, reason = "`as` rounds to nearest even")]
pub(super) fn num(b: &mut Builder, ty: FloatTy, value: f64) -> Value {
    match ty {
        FloatTy::F16 => bits(b, Ty::B16, crate::num::f16_from_f64(value).into()),
        FloatTy::Bf16 => bits(b, Ty::B16, crate::num::bf16_from_f64(value).into()),
        FloatTy::F32 => b.f32(value as f32),
        FloatTy::F64 => b.f64(value),
    }
}

pub(super) fn un(b: &mut Builder, op: FloatUn, ty: FloatTy, x: Value) -> Value {
    b.one(OpKind::FloatUn(op, ty), &[x])
}

pub(super) fn cvt(b: &mut Builder, from: Num, to: Num, x: Value) -> Value {
    b.one(OpKind::Convert { from, to }, &[x])
}

pub(super) fn fcmp(b: &mut Builder, pred: Pred, ty: FloatTy, x: Value, y: Value) -> Value {
    b.one(OpKind::FloatCmp(pred, ty), &[x, y])
}

/// `x · c` with a constant.
pub(super) fn scale(b: &mut Builder, ty: FloatTy, x: Value, c: f64) -> Value {
    let c = num(b, ty, c);
    b.float(FloatBin::Mul, ty, x, c)
}

/// `x + c` with a constant.
pub(super) fn shift(b: &mut Builder, ty: FloatTy, x: Value, c: f64) -> Value {
    let c = num(b, ty, c);
    b.float(FloatBin::Add, ty, x, c)
}

/// Whether it is NaN.
pub(super) fn is_nan(b: &mut Builder, ty: FloatTy, x: Value) -> Value {
    fcmp(b, Pred::Ne, ty, x, x)
}

/// An operation of integers with a constant of the first operand's width; amounts of shifts have 32 bits.
pub(super) fn int_const(b: &mut Builder, op: IntBin, x: Value, c: u64) -> Value {
    let ty = if matches!(op, IntBin::Shl | IntBin::ShrS | IntBin::ShrU) { Ty::B32 } else { b.ty(x) };
    let c = bits(b, ty, if ty == Ty::B32 { c & 0xffff_ffff } else { c });
    b.int(op, x, c)
}

/// The sign of `sign` on the magnitude of `x`, which has none.
pub(super) fn with_sign(b: &mut Builder, ty: FloatTy, x: Value, sign: Value) -> Value {
    let sign = int_const(b, IntBin::And, sign, sign_bit(ty));
    b.or(x, sign)
}

/// The bit of the sign.
pub(super) const fn sign_bit(ty: FloatTy) -> u64 {
    match ty {
        FloatTy::F16 | FloatTy::Bf16 => 1 << 15,
        FloatTy::F32 => 1 << 31,
        FloatTy::F64 => 1 << 63,
    }
}
