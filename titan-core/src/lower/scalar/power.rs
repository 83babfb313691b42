//! Powers of floats: xʸ = 2^(y · log₂ |x|), with the sign of x for odd y, and the special cases of C's `pow` and Rust's `powf`.
//!
//! An error of log₂ counts as often as the exponent of the result is large: the logarithm needs more digits than the result.
//!
//! | type | computed in | largest error, in units in the last place |
//! |---|---|---|
//! | `f16` | `f32` | 30 of `f32`: exponents are at most 25 |
//! | `bf16` | `f32` | 150 of `f32`: exponents are at most 134 |
//! | `f32` | `f64` | 0.501 |
//! | `f64` | sums of two `f64` | 1.6 |
//!
//! `titan-core/tests/scalar/powers.rs` measures them.

use super::double::{edges_of_log, exp2, log_split, log2, power};
use super::emit::{cvt, fcmp, fcmp_const, nearest, num, patch, poly, scale, un, with_sign};
use super::float::Range;
use super::{exp, log};
use crate::ir::Pred;
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, Num, Value};
use std::f64::consts::{LN_2, LOG2_E};

const F32: FloatTy = FloatTy::F32;
const F64: FloatTy = FloatTy::F64;

/// ⅔ and log₂ e minus their `f64` approximations.
const TWO_THIRDS_LOW: f64 = 3.700_743_415_417_188e-17;
const LOG2_E_LOW: f64 = 2.035_527_374_093_103_3e-17;

/// The series of `(ln((1 + √z) / (1 − √z)) / √z − 2 − ⅔ z) / z²`: 2 / (2k + 1). For z ≤ 0.0295 what is left out is below 2⁻⁶⁷.
const LN: &[f64] = &[
    2.0 / 25.0,
    2.0 / 23.0,
    2.0 / 21.0,
    2.0 / 19.0,
    2.0 / 17.0,
    2.0 / 15.0,
    2.0 / 13.0,
    2.0 / 11.0,
    2.0 / 9.0,
    2.0 / 7.0,
    2.0 / 5.0,
];

/// xʸ of `f64`, or of `f32` numbers that were converted from the type of this range, or of `f32`.
pub(super) fn powf(b: &mut Builder, ty: FloatTy, halves: Option<Range>, x: Value, y: Value) -> Value {
    let magnitude = un(b, FloatUn::Abs, ty, x);
    let value = match (ty, halves) {
        (FloatTy::F64, _) => double(b, magnitude, y),
        (_, Some(range)) => {
            let exponent = log::log2(b, range, magnitude);
            let exponent = b.float(FloatBin::Mul, F32, y, exponent);
            exp::exp2(b, exponent)
        }
        (_, None) => {
            let (wide, y) = (cvt(b, Num::F32, Num::F64, magnitude), cvt(b, Num::F32, Num::F64, y));
            let exponent = log2(b, wide);
            let exponent = b.float(FloatBin::Mul, F64, y, exponent);
            let value = exp2(b, exponent);
            cvt(b, Num::F64, Num::F32, value)
        }
    };
    edges(b, ty, (x, magnitude), y, value)
}

/// The special cases, and the sign of powers of negative numbers.
fn edges(b: &mut Builder, ty: FloatTy, (x, magnitude): (Value, Value), y: Value, value: Value) -> Value {
    // (±1)^±∞, for which the logarithm 0 was multiplied by infinity.
    let unit = fcmp_const(b, Pred::Eq, ty, magnitude, 1.0);
    let value = patch(b, ty, value, unit, 1.0);
    // Infinite numbers count as even, and NaN is no integer.
    let whole = un(b, FloatUn::Trunc, ty, y);
    let integral = fcmp(b, Pred::Eq, ty, whole, y);
    let half = scale(b, ty, y, 0.5);
    let whole = un(b, FloatUn::Trunc, ty, half);
    let uneven = fcmp(b, Pred::Ne, ty, whole, half);
    let odd = b.and(integral, uneven);
    let signed = with_sign(b, ty, value, x);
    let value = b.select(odd, signed, value);
    // Negative numbers, other than −0 and −∞, have real powers for integers only.
    let (negative, finite) =
        (fcmp_const(b, Pred::Lt, ty, x, 0.0), fcmp_const(b, Pred::Lt, ty, magnitude, f64::INFINITY));
    let (negative, broken) = (b.and(negative, finite), b.not(integral));
    let undefined = b.and(negative, broken);
    let value = patch(b, ty, value, undefined, f64::NAN);
    // 1 to any power, and anything to the power of 0, is 1, also with NaN.
    let (one, none) = (fcmp_const(b, Pred::Eq, ty, x, 1.0), fcmp_const(b, Pred::Eq, ty, y, 0.0));
    let always = b.or(one, none);
    patch(b, ty, value, always, 1.0)
}

/// A sum of two `f64`, the second of which is far below the first.
#[derive(Clone, Copy)]
struct Pair(Value, Value);

/// `a + b` exactly, for |a| ≥ |b| or a = 0: T. Dekker's fast sum, 1971. The low part also takes what was known below `b`.
fn sum(b: &mut Builder, x: Value, Pair(y, low): Pair) -> Pair {
    let high = b.float(FloatBin::Add, F64, x, y);
    let rest = b.float(FloatBin::Sub, F64, x, high);
    let rest = b.float(FloatBin::Add, F64, rest, y);
    Pair(high, b.float(FloatBin::Add, F64, rest, low))
}

/// The product of two pairs, without the product of their low parts.
fn product(b: &mut Builder, x: Pair, y: Pair) -> Pair {
    let high = b.float(FloatBin::Mul, F64, x.0, y.0);
    let minus = un(b, FloatUn::Neg, F64, high);
    let low = b.fma(F64, x.0, y.0, minus);
    let low = b.fma(F64, x.0, y.1, low);
    Pair(high, b.fma(F64, x.1, y.0, low))
}

/// xʸ of `f64` for x ≥ 0. The logarithm is within 2⁻⁶⁴ of itself, so that the exponent, of at most 1075, is within 2⁻⁵³ of 1.
fn double(b: &mut Builder, x: Value, y: Value) -> Value {
    let logarithm = log2_pair(b, x);
    let logarithm = Pair(edges_of_log(b, x, logarithm.0), logarithm.1);
    let high = b.float(FloatBin::Mul, F64, y, logarithm.0);
    let minus = un(b, FloatUn::Neg, F64, high);
    let low = b.fma(F64, y, logarithm.0, minus);
    let low = b.fma(F64, y, logarithm.1, low);
    // Beyond, the result is 0, infinity or NaN without the low part, which may be the difference of two infinities.
    let far = un(b, FloatUn::Abs, F64, high);
    let inside = fcmp_const(b, Pred::Lt, F64, far, 1100.0);
    let zero = num(b, F64, 0.0);
    let low = b.select(inside, low, zero);
    let (least, greatest) = (num(b, F64, -1076.0), num(b, F64, 1025.0));
    let near = b.float(FloatBin::Max, F64, high, least);
    let near = b.float(FloatBin::Min, F64, near, greatest);
    let n = nearest(b, F64, near, 1.0);
    let f = b.float(FloatBin::Sub, F64, near, n.float);
    let f = b.float(FloatBin::Add, F64, f, low);
    let r = scale(b, F64, f, LN_2);
    power(b, high, n, r)
}

/// log₂ x = e + log₂ e · s · (2 + ⅔ z + …) with s = f / (2 + f) and z = s², where x is 2ᵉ · (1 + f).
fn log2_pair(b: &mut Builder, x: Value) -> Pair {
    let (e, f) = log_split(b, x);
    let zero = num(b, F64, 0.0);
    let two = num(b, F64, 2.0);
    let Pair(below, below_low) = sum(b, two, Pair(f, zero));
    let one = num(b, F64, 1.0);
    let inverse = b.float(FloatBin::Div, F64, one, below);
    let s = b.float(FloatBin::Mul, F64, f, inverse);
    let minus = un(b, FloatUn::Neg, F64, s);
    let rest = b.fma(F64, minus, below, f);
    let rest = b.fma(F64, minus, below_low, rest);
    let s = Pair(s, b.float(FloatBin::Mul, F64, rest, inverse));
    let z = product(b, s, s);
    let tail = poly(b, F64, z.0, LN);
    let tail = b.float(FloatBin::Mul, F64, z.0, tail);
    let (third, third_low) = (num(b, F64, 2.0 / 3.0), num(b, F64, TWO_THIRDS_LOW));
    let weight = sum(b, third, Pair(tail, third_low));
    let weighted = product(b, z, weight);
    let weight = sum(b, two, weighted);
    let natural = product(b, s, weight);
    let (high, low) = (num(b, F64, LOG2_E), num(b, F64, LOG2_E_LOW));
    let binary = product(b, natural, Pair(high, low));
    sum(b, e, binary)
}
