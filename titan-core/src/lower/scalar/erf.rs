//! The error function of `f32`.
//!
//! Maximum error, measured as in [`super::exp`]: 1.7 units in the last place; 1.3 if the machine's 2ˣ is exact.

use super::emit::{fcmp_const, num, poly, un, with_sign};
use crate::ir::Pred;
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, Value};

const F32: FloatTy = FloatTy::F32;

/// `erf(√z) / √z − 1` for z ≤ 0.93²: `fpminimax` of Sollya 8.0, degree 5, 24-bit coefficients; erf within 2⁻²⁵.
const NEAR: &[f64] = &[-5.980_214e-4, 0.004_991_762, -0.026_766_231, 0.112_818_27, -0.376_124_98, 0.128_379_15];

/// `log₂(1 − erf(a))` for a between 0.92 and 4: `remez` of Sollya 8.0, degree 6, weighted by `1 − erf(a)`, coefficients
/// rounded to 24 bits; erf within 2⁻²⁶.
const FAR: &[f64] =
    &[2.812_472_2e-4, -0.004_376_679, 0.032_013_03, -0.149_832_98, -0.919_380_25, -1.626_822_4, -2.986_637_7e-4];

/// erf: up to 0.92 by an odd polynomial, beyond by one minus a power of two, which is 1 from 4 on.
pub(super) fn erf(b: &mut Builder, x: Value) -> Value {
    let magnitude = un(b, FloatUn::Abs, F32, x);
    let square = b.float(FloatBin::Mul, F32, magnitude, magnitude);
    let rest = poly(b, F32, square, NEAR);
    let near = b.fma(F32, magnitude, rest, magnitude);
    let (four, one) = (num(b, F32, 4.0), num(b, F32, 1.0));
    let bounded = b.float(FloatBin::Min, F32, magnitude, four);
    let exponent = poly(b, F32, bounded, FAR);
    let complement = un(b, FloatUn::Ex2Approx, F32, exponent);
    let far = b.float(FloatBin::Sub, F32, one, complement);
    // The comparison is false for NaN, which takes the other branch.
    let is_far = fcmp_const(b, Pred::Ge, F32, magnitude, 0.92);
    let value = b.select(is_far, far, near);
    with_sign(b, F32, value, x)
}
