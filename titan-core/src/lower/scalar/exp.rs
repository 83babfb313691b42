//! Exponentials of `f32`: `exp`, `exp2`, `sigmoid`, `tanh`.
//!
//! All of them use the machine's 2ˣ. Its error may be 2 units in the last place in general, and 1.6 between −½ and ½
//! ([`FloatUn::Ex2Approx`]). The other steps may add little to that: reductions are exact to a fraction of a unit, and powers of two are
//! multiplied last.
//!
//! Maximum errors over 4 · 10⁶ numbers of all exponents and signs, for both ends of the error that contracts allow the machine, in units in
//! the last place; `titan-core/tests/scalar/functions.rs` measures them and checks these numbers:
//!
//! | function | machines with maximum error | exact machines |
//! |---|---|---|
//! | `exp2` | 2.0 | 0.75 |
//! | `exp`, all numbers | 2.3, beyond 88 2.6 | 0.8, beyond 88 1.1 |
//! | `sigmoid` | 3.4 | 2.0 |
//! | `tanh` | 2.8 | 1.7 |

use super::emit::{NEAREST, exp2i, fcmp_const, fma_const, int_const, nearest, num, poly, scale, shift, un, with_sign};
use super::float::Range;
use crate::ir::Pred;
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, IntBin, Value};
use std::f64::consts::LOG2_E;

const F32: FloatTy = FloatTy::F32;
/// log₂ e minus its `f32` approximation.
const LOG2_E_LOW: f64 = 1.925_963e-8;

/// 2ˣ by the machine's instruction; subnormal results, and results close to that, may be flushed to zero.
pub(super) fn exp2(b: &mut Builder, x: Value) -> Value {
    un(b, FloatUn::Ex2Approx, F32, x)
}

/// `x · log₂ e − n`, with a product of twice the precision.
fn fraction(b: &mut Builder, x: Value, n: Value) -> Value {
    let minus = un(b, FloatUn::Neg, F32, n);
    let high = fma_const(b, F32, x, LOG2_E, minus);
    fma_const(b, F32, x, LOG2_E_LOW, high)
}

/// eˣ = 2ⁿ · 2ᶠ. Only `n` is clamped, to the exponents of one normal factor. Beyond them `f` grows with `x`, which gives subnormal numbers
/// and zero below, and infinity above; NaN stays NaN.
pub(super) fn exp(b: &mut Builder, x: Value) -> Value {
    let (least, greatest) = (num(b, F32, -87.0), num(b, F32, 88.0));
    let near = b.float(FloatBin::Max, F32, x, least);
    let near = b.float(FloatBin::Min, F32, near, greatest);
    // The biased exponent of 2ⁿ, n + 127, is computed in the low bits of a float whose last digit has the weight 1.
    let magic = NEAREST + 127.0;
    let constant = num(b, F32, magic);
    let word = fma_const(b, F32, near, LOG2_E, constant);
    let n = shift(b, F32, word, -magic);
    let f = fraction(b, x, n);
    let y = un(b, FloatUn::Ex2Approx, F32, f);
    let power = int_const(b, IntBin::Shl, word, 23);
    b.float(FloatBin::Mul, F32, y, power)
}

/// eˣ for results in `f16`: the rounding of x · log₂ e is far below the last digit of an `f16`.
pub(super) fn exp_of_half(b: &mut Builder, x: Value) -> Value {
    let power = scale(b, F32, x, LOG2_E);
    un(b, FloatUn::Ex2Approx, F32, power)
}

/// eˣ for x ≤ 0.
fn exp_of_negative(b: &mut Builder, range: Range, x: Value) -> Value {
    let (least, up) = if range == Range::Half { (-87.0, 0) } else { (-104.0, 64) };
    let least = num(b, F32, least);
    let near = b.float(FloatBin::Max, F32, x, least);
    let n = nearest(b, F32, near, LOG2_E);
    let f = fraction(b, x, n.float);
    let y = un(b, FloatUn::Ex2Approx, F32, f);
    let power = int_const(b, IntBin::Shl, n.word, 23);
    let power = int_const(b, IntBin::Add, power, (127 + up) << 23);
    let y = b.float(FloatBin::Mul, F32, y, power);
    if up == 0 { y } else { scale(b, F32, y, exp2i(-64)) }
}

/// 1 / (1 + e⁻ˣ). With e = e^−|x| ≤ 1 nothing overflows: 1 / (1 + e) for positive numbers; and for negative ones e / (1 + e) = e − e · e /
/// (1 + e), where the error of the machine's reciprocal is multiplied by `e`.
pub(super) fn sigmoid(b: &mut Builder, range: Range, x: Value) -> Value {
    let magnitude = un(b, FloatUn::Abs, F32, x);
    let minus = un(b, FloatUn::Neg, F32, magnitude);
    let e = exp_of_negative(b, range, minus);
    let sum = shift(b, F32, e, 1.0);
    let positive = un(b, FloatUn::RcpApprox, F32, sum);
    let part = b.float(FloatBin::Mul, F32, e, positive);
    let minus_e = un(b, FloatUn::Neg, F32, e);
    let negative = b.fma(F32, minus_e, part, e);
    let is_negative = fcmp_const(b, Pred::Lt, F32, x, 0.0);
    b.select(is_negative, negative, positive)
}

/// `(tanh(√z) / √z − 1) / z` for z ≤ 0.31, within 2⁻²⁷ of tanh: `fpminimax` of Sollya 8.0, degree 4, 24-bit coefficients.
const TANH: &[f64] = &[-0.006_580_346_7, 0.021_290_878, -0.053_905_588, 0.133_330_84, -0.333_333_3];

/// tanh: up to 0.55 by a polynomial, beyond by 1 − 2e / (1 + e) with e = e^−2|x|.
pub(super) fn tanh(b: &mut Builder, x: Value) -> Value {
    let magnitude = un(b, FloatUn::Abs, F32, x);
    let square = b.float(FloatBin::Mul, F32, magnitude, magnitude);
    let cube = b.float(FloatBin::Mul, F32, magnitude, square);
    let rest = poly(b, F32, square, TANH);
    let near = b.fma(F32, cube, rest, magnitude);
    // Where e is used it is at most ⅓, and its error has at most that weight; if it is flushed to zero, the result is 1.
    let exponent = scale(b, F32, magnitude, -2.0 * LOG2_E);
    let e = un(b, FloatUn::Ex2Approx, F32, exponent);
    let sum = shift(b, F32, e, 1.0);
    let inverse = un(b, FloatUn::RcpApprox, F32, sum);
    let twice = scale(b, F32, e, -2.0);
    let one = num(b, F32, 1.0);
    let far = b.fma(F32, twice, inverse, one);
    let is_near = fcmp_const(b, Pred::Lt, F32, magnitude, 0.55);
    let value = b.select(is_near, near, far);
    with_sign(b, F32, value, x)
}
