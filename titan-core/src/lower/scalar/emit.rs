//! Shorthand functions for operations of the lane IR.

use crate::ir::Pred;
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, IntBin, Num, OpKind, Ty, Value};

/// A constant with these bits.
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

/// `x · c` with a constant `c`.
pub(super) fn scale(b: &mut Builder, ty: FloatTy, x: Value, c: f64) -> Value {
    let c = num(b, ty, c);
    b.float(FloatBin::Mul, ty, x, c)
}

/// `x + c` with a constant `c`.
pub(super) fn shift(b: &mut Builder, ty: FloatTy, x: Value, c: f64) -> Value {
    let c = num(b, ty, c);
    b.float(FloatBin::Add, ty, x, c)
}

/// `x · c + z` with a constant `c`.
pub(super) fn fma_const(b: &mut Builder, ty: FloatTy, x: Value, c: f64, z: Value) -> Value {
    let c = num(b, ty, c);
    b.fma(ty, x, c, z)
}

/// `x pred c` with a constant `c`.
pub(super) fn fcmp_const(b: &mut Builder, pred: Pred, ty: FloatTy, x: Value, c: f64) -> Value {
    let c = num(b, ty, c);
    fcmp(b, pred, ty, x, c)
}

/// Whether `x` is NaN.
pub(super) fn is_nan(b: &mut Builder, ty: FloatTy, x: Value) -> Value {
    fcmp(b, Pred::Ne, ty, x, x)
}

/// `c` if the condition is true, otherwise `x`.
pub(super) fn patch(b: &mut Builder, ty: FloatTy, x: Value, cond: Value, c: f64) -> Value {
    let c = num(b, ty, c);
    b.select(cond, c, x)
}

/// An integer operation with a constant of the first operand's width; amounts of shifts have 32 bits.
pub(super) fn int_const(b: &mut Builder, op: IntBin, x: Value, c: u64) -> Value {
    let ty = if matches!(op, IntBin::Shl | IntBin::ShrS | IntBin::ShrU) { Ty::B32 } else { b.ty(x) };
    let c = bits(b, ty, if ty == Ty::B32 { c & 0xffff_ffff } else { c });
    b.int(op, x, c)
}

/// The magnitude `x`, which must not be negative, with the sign of `sign`.
pub(super) fn with_sign(b: &mut Builder, ty: FloatTy, x: Value, sign: Value) -> Value {
    let sign = int_const(b, IntBin::And, sign, sign_bit(ty));
    b.or(x, sign)
}

/// The mask of the sign bit.
pub(super) const fn sign_bit(ty: FloatTy) -> u64 {
    match ty {
        FloatTy::F16 | FloatTy::Bf16 => 1 << 15,
        FloatTy::F32 => 1 << 31,
        FloatTy::F64 => 1 << 63,
    }
}

/// Evaluates a polynomial by Horner's rule; the first coefficient is that of the highest power.
pub(super) fn poly(b: &mut Builder, ty: FloatTy, x: Value, coefficients: &[f64]) -> Value {
    let mut sum = None;
    for c in coefficients {
        let c = num(b, ty, *c);
        sum = Some(match sum {
            None => c,
            Some(sum) => b.fma(ty, sum, x, c),
        });
    }
    sum.unwrap_or(x)
}

/// A rounded number, as a float and as an integer in the low bits of a word.
#[derive(Clone, Copy)]
pub(super) struct Nearest {
    pub(super) float: Value,
    pub(super) word: Value,
}

/// Adding this constant to an `f32` below 2²¹ rounds it to an integer.
pub(super) const NEAREST: f64 = 12_582_912.0;

/// The integer nearest to `x · c`, for products below 2²¹ (`f32`) or 2⁵⁰ (`f64`). The product is added to a number whose last digit has the
/// weight 1, so that the addition rounds it.
pub(super) fn nearest(b: &mut Builder, ty: FloatTy, x: Value, c: f64) -> Nearest {
    let magic = if ty == FloatTy::F64 { 6_755_399_441_055_744.0 } else { NEAREST };
    let constant = num(b, ty, magic);
    let word = fma_const(b, ty, x, c, constant);
    Nearest { float: shift(b, ty, word, -magic), word }
}

/// `y · 2ⁿ` in `f64`, rounded once, for `y` around 1 and results from 0 to infinity. It is multiplied by two powers of two, of which the
/// first is a normal number; `negative`, the sign of `n`, selects the two.
pub(super) fn scale_by_power(b: &mut Builder, y: Value, n: Value, negative: Value) -> Value {
    let ty = FloatTy::F64;
    let (up, down) = (b.const_like(n, (1023 + 128) << 52), b.const_like(n, (1023 - 1) << 52));
    let start = b.select(negative, up, down);
    let power = int_const(b, IntBin::Shl, n, 52);
    let power = b.add(power, start);
    let (small, large) = (num(b, ty, exp2i(-128)), num(b, ty, 2.0));
    let rest = b.select(negative, small, large);
    let y = b.float(FloatBin::Mul, ty, y, power);
    b.float(FloatBin::Mul, ty, y, rest)
}

/// 2ⁿ, if that is a normal `f64`.
pub(super) const fn exp2i(n: i64) -> f64 {
    f64::from_bits(((n + 1023) << 52).cast_unsigned())
}
