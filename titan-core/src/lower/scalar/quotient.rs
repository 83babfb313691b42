//! Quotients by a common divisor, such as the sum of a row: one reciprocal, and a few products for each numerator.
//!
//! The results are those of division, rounded once. The reciprocal is a sum of two floats with the divisor's sign: the first is slightly
//! too small, and the second is the difference. The product of a numerator and this sum is `fma(x, high, x · low)`. Infinite and zero
//! numerators need no special case, because both parts have the same sign.
//!
//! * `f16`: the sum differs from 1 / y by less than 2⁻³³ relatively, and the `f32` quotient by at most 2⁻²⁴ more. A quotient of
//!   11-bit significands that is not halfway between two adjacent `f16` is at least 2⁻²³ away from there; one that is halfway has 12
//!   bits, so the `f32` is exact. No `f16` overflows or is subnormal in `f32`.
//! * `bf16`: likewise (8 bits: 2⁻¹⁷) for divisors from 2⁻¹⁰⁰ to 2¹⁰⁰. Subnormal quotients are off by at most 2⁻¹⁴⁹, and not
//!   closer than 2⁻¹⁴² to halfway between adjacent numbers.
//! * `f32`: the product is within ½ + 2⁻²⁰ units in the last place, so that the remainder `y · q − x` is exact. The correction
//!   `q − remainder / y` uses a reciprocal that is off by `e = 1 − y · reciprocal`, and is then off by (½ + 2⁻²⁰) · |e| units. With
//!   the significand of `y` in [1, 2), a quotient of 24-bit significands is at least 2⁻²⁴ / y units away from halfway, and |e| is
//!   at most y · 2⁻²⁵ · (1 + 2⁻²¹). So the rounding is right where y² · (1 + 2⁻¹⁸) < 4: the 64 greatest significands are
//!   excluded. The remainder is exact, and nothing is subnormal or overflows, for divisors from 2⁻²⁰ to 2²⁰ and numerators
//!   from 2⁻⁸⁰ to 2¹⁰⁰ and zeros. (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000
//!   processor", 1990, has this correction.)
//!
//! All other divisors and numerators take a branch in which the same is done in `f64`. There a tie of subnormal `f32` has fewer
//! than 53 bits, and other quotients are at least 2⁻⁴⁹ away from one, so that the second rounding is right.

use super::emit::{bits, cvt, fcmp_const, int_const, is_nan, num, scale, un};
use super::float::{narrow, widen};
use crate::ir::Pred;
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, IntBin, Num, OpKind, Ty, Value};

const F32: FloatTy = FloatTy::F32;
const F64: FloatTy = FloatTy::F64;

/// The minimum number of quotients for which a reciprocal is computed.
pub(super) const WORTHWHILE: usize = 4;

/// A reciprocal as a sum of two floats of the same sign.
#[derive(Clone, Copy)]
struct Reciprocal {
    high: Value,
    low: Value,
}

/// `x / y` for each numerator.
pub(super) fn quotients(b: &mut Builder, ty: FloatTy, numerators: &[Value], y: Value) -> Vec<Value> {
    let y = widen(b, ty, y);
    let wide: Vec<Value> = numerators.iter().map(|x| widen(b, ty, *x)).collect();
    let quotients = match ty {
        FloatTy::F16 => products(b, &wide, y),
        FloatTy::Bf16 => {
            let usual = magnitude_within(b, y, 1e-30, 1e30);
            guarded(b, usual, &wide, y, products)
        }
        FloatTy::F32 => {
            let usual = usual_singles(b, &wide, y);
            guarded(b, usual, &wide, y, corrected)
        }
        FloatTy::F64 => wide.iter().map(|x| b.float(FloatBin::Div, F64, *x, y)).collect(),
    };
    quotients.into_iter().map(|q| narrow(b, ty, q)).collect()
}

/// The fast quotients if the operands are in the ranges where these are correct, otherwise those computed in `f64`.
fn guarded(
    b: &mut Builder,
    usual: Value,
    numerators: &[Value],
    y: Value,
    fast: impl FnOnce(&mut Builder, &[Value], Value) -> Vec<Value>,
) -> Vec<Value> {
    let mut open = b.begin_if(usual, &vec![Ty::B32; numerators.len()]);
    let quotients = fast(b, numerators, y);
    b.terminate(OpKind::Yield, &quotients);
    b.begin_else(&mut open);
    let quotients = by_double(b, numerators, y);
    b.terminate(OpKind::Yield, &quotients);
    b.end(open)
}

/// The reciprocal, from an approximation. If that is zero, infinite or NaN, both parts are.
fn reciprocal(b: &mut Builder, ty: FloatTy, y: Value, near: Value, part: f64) -> Reciprocal {
    let high = scale(b, ty, near, part);
    let low = lacking(b, ty, y, near, high);
    let special = is_nan(b, ty, low);
    Reciprocal { high, low: b.select(special, near, low) }
}

/// The difference of a part of the reciprocal to the reciprocal: `(1 − y · high) / y`.
fn lacking(b: &mut Builder, ty: FloatTy, y: Value, near: Value, high: Value) -> Value {
    let (minus, one) = (un(b, FloatUn::Neg, ty, y), num(b, ty, 1.0));
    let rest = b.fma(ty, minus, high, one);
    b.float(FloatBin::Mul, ty, rest, near)
}

fn product(b: &mut Builder, ty: FloatTy, x: Value, reciprocal: Reciprocal) -> Value {
    let low = b.float(FloatBin::Mul, ty, x, reciprocal.low);
    b.fma(ty, x, reciprocal.high, low)
}

/// Quotients of 16-bit floats, as `f32`.
fn products(b: &mut Builder, numerators: &[Value], y: Value) -> Vec<Value> {
    let near = un(b, FloatUn::RcpApprox, F32, y);
    let reciprocal = reciprocal(b, F32, y, near, 1.0 - 2f64.powi(-12));
    numerators.iter().map(|x| product(b, F32, *x, reciprocal)).collect()
}

/// Quotients of `f32` in the ranges where the correction is exact.
fn corrected(b: &mut Builder, numerators: &[Value], y: Value) -> Vec<Value> {
    let (minus, one) = (un(b, FloatUn::Neg, F32, y), num(b, F32, 1.0));
    let near = un(b, FloatUn::RcpApprox, F32, y);
    let rest = b.fma(F32, minus, near, one);
    let nearest = b.fma(F32, near, rest, near);
    // The next smaller number, so that `low` is positive like the divisor.
    let high = b.add_const(nearest, -1);
    let reciprocal = Reciprocal { high, low: lacking(b, F32, y, nearest, high) };
    let mut quotient = |x: &Value| {
        let q = product(b, F32, *x, reciprocal);
        let minus = un(b, FloatUn::Neg, F32, *x);
        let remainder = b.fma(F32, y, q, minus);
        // Because of the sign of this remainder, a quotient of −0 stays −0.
        let correction = un(b, FloatUn::Neg, F32, remainder);
        b.fma(F32, correction, nearest, q)
    };
    numerators.iter().map(&mut quotient).collect()
}

/// Quotients of any `f32`, computed in `f64`.
fn by_double(b: &mut Builder, numerators: &[Value], y: Value) -> Vec<Value> {
    let (y, one) = (cvt(b, Num::F32, Num::F64, y), num(b, F64, 1.0));
    let near = b.float(FloatBin::Div, F64, one, y);
    let reciprocal = reciprocal(b, F64, y, near, 1.0 - 2f64.powi(-30));
    let mut quotient = |x: &Value| {
        let x = cvt(b, Num::F32, Num::F64, *x);
        let q = product(b, F64, x, reciprocal);
        cvt(b, Num::F64, Num::F32, q)
    };
    numerators.iter().map(&mut quotient).collect()
}

/// The bits of a number, shifted left by one, without the sign.
fn twice(x: f32) -> u32 {
    x.to_bits() << 1
}

/// Whether the magnitude of an `f32` is in a range.
fn magnitude_within(b: &mut Builder, x: Value, least: f32, limit: f32) -> Value {
    let magnitude = int_const(b, IntBin::Shl, x, 1);
    let above = int_const(b, IntBin::Sub, magnitude, twice(least).into());
    let width = bits(b, Ty::B32, (twice(limit) - twice(least)).into());
    b.cmp_u(Pred::Lt, above, width)
}

/// Whether the divisor and all numerators are in the ranges where [`corrected`] is right.
fn usual_singles(b: &mut Builder, numerators: &[Value], y: Value) -> Value {
    let (least, limit) = (2f32.powi(-20).to_bits(), 2f32.powi(20).to_bits());
    let above = int_const(b, IntBin::Sub, y, least.into());
    let width = bits(b, Ty::B32, (limit - least).into());
    let in_range = b.cmp_u(Pred::Lt, above, width);
    let significand = int_const(b, IntBin::And, y, 0x7f_ffff);
    let greatest = bits(b, Ty::B32, 0x7f_ffc0);
    let proved = b.cmp_u(Pred::Lt, significand, greatest);
    let mut usual = b.and(in_range, proved);
    let least = bits(b, Ty::B32, u64::from(twice(2f32.powi(-80)) - 1));
    for x in numerators {
        // Zeros wrap to the maximum.
        let magnitude = int_const(b, IntBin::Shl, *x, 1);
        let magnitude = b.add_const(magnitude, -1);
        let large = b.cmp_u(Pred::Ge, magnitude, least);
        usual = b.and(usual, large);
        let magnitude = un(b, FloatUn::Abs, F32, *x);
        let small = fcmp_const(b, Pred::Lt, F32, magnitude, 2f64.powi(100));
        usual = b.and(usual, small);
    }
    usual
}
