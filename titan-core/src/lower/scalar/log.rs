//! Logarithms of `f32`, and the reciprocal square root.
//!
//! The machine's log₂ is too inaccurate near 1, and is used only for zeros, infinities, NaN and negative numbers. Everything else is a
//! polynomial of the significand between √½ and √2.
//!
//! Maximum errors, measured as in [`super::exp`], in units in the last place:
//!
//! | function | machines with maximum error | exact machines |
//! |---|---|---|
//! | `ln` | 0.9 | 0.9 |
//! | `log2` | 1.0 | 1.0 |
//! | `rsqrt` | 2.0 | 0.5 |

use super::emit::{cvt, exp2i, fcmp_const, fma_const, int_const, num, poly, scale, shift, un};
use super::float::Range;
use crate::ir::Pred;
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, IntBin, Num, Value};
use std::f64::consts::{LN_2, LOG2_E};

const F32: FloatTy = FloatTy::F32;

/// `(ln(1 + f) − f) / f²` for 1 + f between √½ and √2: `fpminimax` of Sollya 8.0, degree 8, 24-bit coefficients; ln within
/// 2⁻²⁶.
const LN: &[f64] = &[
    -0.080_423_66,
    0.129_224_08,
    -0.130_838_9,
    0.141_732_05,
    -0.166_274_8,
    0.200_026_81,
    -0.250_008_14,
    0.333_333_13,
    -0.499_999_97,
];
/// `(log₂(1 + f) − f / ln 2) / f²` in the same way.
const LOG2: &[f64] = &[
    -0.116_860_084,
    0.186_112_91,
    -0.188_263_67,
    0.204_506_81,
    -0.239_949_54,
    0.288_577_32,
    -0.360_682_6,
    0.480_898_05,
    -0.721_347_5,
];
/// ln 2 and log₂ e minus their `f32` approximations.
const LN_2_LOW: f64 = -1.904_654_2e-9;
const LOG2_E_LOW: f64 = 1.925_963e-8;

/// The bits of √½, the lower bound of significands.
const ROOT_HALF: u64 = 0x3f35_04f3;

/// A number written as 2ᵉ · (1 + f).
struct Parts {
    /// The number, multiplied by a power of two if it is subnormal.
    x: Value,
    e: Value,
    f: Value,
}

fn parts(b: &mut Builder, range: Range, x: Value) -> Parts {
    let (x, less) = if range == Range::Half {
        (x, None)
    } else {
        let small = fcmp_const(b, Pred::Lt, F32, x, f32::MIN_POSITIVE.into());
        let (one, factor) = (num(b, F32, 1.0), num(b, F32, exp2i(23)));
        let factor = b.select(small, factor, one);
        let (zero, less) = (num(b, F32, 0.0), num(b, F32, -23.0));
        (b.float(FloatBin::Mul, F32, x, factor), Some(b.select(small, less, zero)))
    };
    let above = int_const(b, IntBin::Sub, x, ROOT_HALF);
    let exponent = int_const(b, IntBin::ShrS, above, 23);
    let exponent_bits = int_const(b, IntBin::And, above, 0xff80_0000);
    let significand = b.int(IntBin::Sub, x, exponent_bits);
    let f = shift(b, F32, significand, -1.0);
    let e = cvt(b, Num::S32, Num::F32, exponent);
    Parts { x, e: less.map_or(e, |less| b.float(FloatBin::Add, F32, e, less)), f }
}

/// Replaces the value by the machine's result for numbers whose logarithm is not finite.
fn with_edges(b: &mut Builder, x: Value, value: Value) -> Value {
    // The bits of positive finite numbers are 1 to 0x7f7f_ffff. After subtracting one, zero wraps to the upper end, with all other numbers.
    let less = int_const(b, IntBin::Sub, x, 1);
    let limit = b.const_like(less, 0x7f7f_ffff);
    let ordinary = b.cmp_u(Pred::Lt, less, limit);
    let edge = un(b, FloatUn::Lg2Approx, F32, x);
    b.select(ordinary, value, edge)
}

/// ln x = e · ln 2 + ln(1 + f).
pub(super) fn ln(b: &mut Builder, range: Range, x: Value) -> Value {
    let Parts { x, e, f } = parts(b, range, x);
    let square = b.float(FloatBin::Mul, F32, f, f);
    let rest = poly(b, F32, f, LN);
    let low = b.fma(F32, square, rest, f);
    let low = fma_const(b, F32, e, LN_2_LOW, low);
    let value = fma_const(b, F32, e, LN_2, low);
    with_edges(b, x, value)
}

/// log₂ x = e + log₂(1 + f).
pub(super) fn log2(b: &mut Builder, range: Range, x: Value) -> Value {
    let Parts { x, e, f } = parts(b, range, x);
    let rest = poly(b, F32, f, LOG2);
    let low = num(b, F32, LOG2_E_LOW);
    let rest = b.fma(F32, rest, f, low);
    let high = scale(b, F32, f, LOG2_E);
    let value = b.fma(F32, rest, f, high);
    let value = b.float(FloatBin::Add, F32, e, value);
    with_edges(b, x, value)
}

/// 1 / √x by the machine's instruction, which may treat subnormal numbers as zero: these are multiplied by 2²⁴, and their results by 2¹².
pub(super) fn rsqrt(b: &mut Builder, range: Range, x: Value) -> Value {
    if range == Range::Half {
        return un(b, FloatUn::RsqrtApprox, F32, x);
    }
    let small = fcmp_const(b, Pred::Lt, F32, x, f32::MIN_POSITIVE.into());
    let one = num(b, F32, 1.0);
    let (up, back) = (num(b, F32, exp2i(24)), num(b, F32, exp2i(12)));
    let (up, back) = (b.select(small, up, one), b.select(small, back, one));
    let x = b.float(FloatBin::Mul, F32, x, up);
    let y = un(b, FloatUn::RsqrtApprox, F32, x);
    b.float(FloatBin::Mul, F32, y, back)
}
