//! Functions of `f64`: argument reduction and polynomials, with correctly rounded operations only.
//!
//! Maximum errors, measured by `titan-core/tests/scalar/functions.rs` against `libm` or sums of two `f64`, in units in the
//! last place:
//!
//! | function | error |
//! |---|---|
//! | `exp` | 1.1 |
//! | `exp2` | 1.1 |
//! | `ln` | 1.1 |
//! | `log2` | 0.8 |
//! | `rsqrt` | 1.5 |
//! | `tanh` | 1.5 |
//! | `sigmoid` | 2.1 |
//! | `erf` | 1.2 |

use super::emit::{
    Nearest, cvt, exp2i, fcmp_const, fma_const, int_const, is_nan, nearest, num, patch, poly, scale, scale_by_power,
    shift, un, with_sign,
};
use super::trig;
use crate::ir::{Pred, UnOp};
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, IntBin, Num, Value};
use std::f64::consts::{LN_2, LOG2_E};

const F64: FloatTy = FloatTy::F64;
/// ln 2 minus its `f64` approximation.
const LN_2_LOW: f64 = 2.319_046_813_846_299_6e-17;

/// `(eʳ − 1 − r) / r²` for |r| ≤ ln(2) / 2: `fpminimax` of Sollya 8.0, degree 9, 53-bit coefficients, like all polynomials here; eʳ within
/// 2⁻⁵⁵.
const EXP: &[f64] = &[
    2.511_041_491_004_816_3e-8,
    2.762_131_766_918_925_5e-7,
    2.755_724_160_824_782_4e-6,
    2.480_151_869_973_478_7e-5,
    0.000_198_412_698_869_074_3,
    0.001_388_888_891_888_498_2,
    0.008_333_333_333_322_293,
    0.041_666_666_666_620_826,
    0.166_666_666_666_666_74,
    0.500_000_000_000_000_1,
];
/// `(ln((1 + √z) / (1 − √z)) / √z − 2) / z` for z ≤ 0.0295, within 2⁻⁵⁷.
const LN: &[f64] = &[
    0.146_177_971_258_967_73,
    0.153_316_108_420_233_2,
    0.181_828_924_628_691_2,
    0.222_222_110_905_232_36,
    0.285_714_286_262_102_05,
    0.399_999_999_998_992_8,
    0.666_666_666_666_667,
];
/// `(tanh(√z) / √z − 1) / z` for z ≤ 0.31, within 2⁻⁵⁸.
const TANH: &[f64] = &[
    -2.043_793_861_842_666_6e-5,
    8.486_614_357_289_09e-5,
    -0.000_234_476_586_709_942_3,
    0.000_588_879_546_701_830_2,
    -0.001_455_649_490_188_757_5,
    0.003_592_108_681_997_473,
    -0.008_863_234_251_957_577,
    0.021_869_488_486_142_345,
    -0.053_968_253_967_220_66,
    0.133_333_333_333_324_37,
    -0.333_333_333_333_333_3,
];
/// `erf(√z) / √z − 1` for z ≤ 1, within 2⁻⁵⁵.
const ERF: &[f64] = &[
    -7.787_140_263_008_16e-10,
    1.371_489_069_073_294_7e-8,
    -1.620_715_229_537_573e-7,
    1.644_722_893_705_724_4e-6,
    -1.492_471_878_798_298_4e-5,
    0.000_120_552_938_081_555_96,
    -0.000_854_832_593_172_770_4,
    0.005_223_977_605_995_373,
    -0.026_866_170_643_060_99,
    0.112_837_916_709_434_47,
    -0.376_126_389_031_834_76,
    0.128_379_167_095_512_56,
];
/// `exp(a²) · (1 − erf(a))` with a = 2.5 · (1 + t) / (1 − t), for a between 0.94 and 6: `remez` weighted by `exp(−a²)`, then
/// rounded; erf within 2⁻⁵⁴.
const ERFCX: &[f64] = &[
    -2.386_058_041_516_299_7e-6,
    -5.638_645_018_242_097_6e-5,
    -0.000_141_626_070_527_259_08,
    0.000_224_154_495_559_165_7,
    0.000_875_175_756_739_641_8,
    -0.002_642_393_864_477_507,
    -0.003_993_687_583_613_392,
    0.039_922_541_478_089_726,
    -0.125_033_052_266_808_44,
    0.251_713_193_212_100_95,
    -0.371_736_733_949_488_36,
    0.210_806_364_061_137_67,
];

/// A function of an `f64` for which machines have no instruction.
pub(super) fn function(b: &mut Builder, op: UnOp, x: Value) -> Option<Value> {
    Some(match op {
        UnOp::Exp => exp(b, x),
        UnOp::Exp2 => exp2(b, x),
        UnOp::Ln => ln(b, x),
        UnOp::Log2 => log2(b, x),
        UnOp::Rsqrt => {
            let root = un(b, FloatUn::Sqrt, F64, x);
            let one = num(b, F64, 1.0);
            b.float(FloatBin::Div, F64, one, root)
        }
        UnOp::Sin => trig::sin(b, &trig::DOUBLE, true, x),
        UnOp::Cos => trig::cos(b, &trig::DOUBLE, true, x),
        UnOp::Tanh => tanh(b, x),
        UnOp::Sigmoid => sigmoid(b, x),
        UnOp::Erf => erf(b, x),
        UnOp::Neg
        | UnOp::Not
        | UnOp::Abs
        | UnOp::Sqrt
        | UnOp::Recip
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Trunc
        | UnOp::Round
        | UnOp::RoundTiesEven
        | UnOp::IsNan
        | UnOp::CountOnes
        | UnOp::LeadingZeros => return None,
    })
}

/// Clamps `x` to these bounds; NaN becomes one of them.
fn clamp(b: &mut Builder, x: Value, least: f64, greatest: f64) -> Value {
    let (least, greatest) = (num(b, F64, least), num(b, F64, greatest));
    let x = b.float(FloatBin::Max, F64, x, least);
    b.float(FloatBin::Min, F64, x, greatest)
}

/// 2ⁿ · eʳ; NaN if `x` is NaN.
pub(super) fn power(b: &mut Builder, x: Value, n: Nearest, r: Value) -> Value {
    let square = b.float(FloatBin::Mul, F64, r, r);
    let rest = poly(b, F64, r, EXP);
    let low = b.fma(F64, square, rest, r);
    let y = shift(b, F64, low, 1.0);
    let negative = fcmp_const(b, Pred::Lt, F64, x, 0.0);
    let value = scale_by_power(b, y, n.word, negative);
    let nan = is_nan(b, F64, x);
    b.select(nan, x, value)
}

fn exp(b: &mut Builder, x: Value) -> Value {
    let near = clamp(b, x, -746.0, 710.0);
    let n = nearest(b, F64, near, LOG2_E);
    let r = fma_const(b, F64, n.float, -LN_2, near);
    let r = fma_const(b, F64, n.float, -LN_2_LOW, r);
    power(b, x, n, r)
}

pub(super) fn exp2(b: &mut Builder, x: Value) -> Value {
    let near = clamp(b, x, -1076.0, 1025.0);
    let n = nearest(b, F64, near, 1.0);
    let f = b.float(FloatBin::Sub, F64, near, n.float);
    let r = scale(b, F64, f, LN_2);
    power(b, x, n, r)
}

/// The exponent e and the rest f of a positive number 2ᵉ · (1 + f), where 1 + f is between √½ and √2.
pub(super) fn log_split(b: &mut Builder, x: Value) -> (Value, Value) {
    let small = fcmp_const(b, Pred::Lt, F64, x, f64::MIN_POSITIVE);
    let (one, factor, zero, less) = (num(b, F64, 1.0), num(b, F64, exp2i(52)), num(b, F64, 0.0), num(b, F64, -52.0));
    let (factor, less) = (b.select(small, factor, one), b.select(small, less, zero));
    let x = b.float(FloatBin::Mul, F64, x, factor);
    let above = int_const(b, IntBin::Sub, x, std::f64::consts::FRAC_1_SQRT_2.to_bits());
    let exponent = int_const(b, IntBin::ShrS, above, 52);
    let exponent_bits = int_const(b, IntBin::And, above, 0xfff0_0000_0000_0000);
    let significand = b.int(IntBin::Sub, x, exponent_bits);
    let f = shift(b, F64, significand, -1.0);
    let e = cvt(b, Num::S64, Num::F64, exponent);
    (b.float(FloatBin::Add, F64, e, less), f)
}

/// The exponent, and the logarithm of the significand between √½ and √2.
fn log_parts(b: &mut Builder, x: Value) -> (Value, Value) {
    let (e, f) = log_split(b, x);
    // ln(1 + f) = f − s · (f − z · P(z)) with s = f / (2 + f), z = s².
    let sum = shift(b, F64, f, 2.0);
    let s = b.float(FloatBin::Div, F64, f, sum);
    let z = b.float(FloatBin::Mul, F64, s, s);
    let rest = poly(b, F64, z, LN);
    let minus = un(b, FloatUn::Neg, F64, f);
    let rest = b.fma(F64, z, rest, minus);
    (e, b.fma(F64, s, rest, f))
}

/// Replaces the value of a logarithm for arguments to which [`log_split`] does not apply: zero, negative numbers, infinity and NaN.
pub(super) fn edges_of_log(b: &mut Builder, x: Value, value: Value) -> Value {
    let infinite = fcmp_const(b, Pred::Eq, F64, x, f64::INFINITY);
    let zero = fcmp_const(b, Pred::Eq, F64, x, 0.0);
    let number = fcmp_const(b, Pred::Ge, F64, x, 0.0);
    let value = b.select(infinite, x, value);
    let value = patch(b, F64, value, zero, f64::NEG_INFINITY);
    let nan = num(b, F64, f64::NAN);
    b.select(number, value, nan)
}

fn ln(b: &mut Builder, x: Value) -> Value {
    let (e, low) = log_parts(b, x);
    let low = fma_const(b, F64, e, LN_2_LOW, low);
    let value = fma_const(b, F64, e, LN_2, low);
    edges_of_log(b, x, value)
}

pub(super) fn log2(b: &mut Builder, x: Value) -> Value {
    let (e, low) = log_parts(b, x);
    let value = fma_const(b, F64, low, LOG2_E, e);
    edges_of_log(b, x, value)
}

/// tanh: up to 0.55 by a polynomial, beyond by (1 − e) / (1 + e) with e = e^−2|x|.
fn tanh(b: &mut Builder, x: Value) -> Value {
    let magnitude = un(b, FloatUn::Abs, F64, x);
    let square = b.float(FloatBin::Mul, F64, magnitude, magnitude);
    let cube = b.float(FloatBin::Mul, F64, magnitude, square);
    let rest = poly(b, F64, square, TANH);
    let near = b.fma(F64, cube, rest, magnitude);
    let twice = scale(b, F64, magnitude, -2.0);
    let e = exp(b, twice);
    let one = num(b, F64, 1.0);
    let above = b.float(FloatBin::Sub, F64, one, e);
    let below = b.float(FloatBin::Add, F64, one, e);
    let far = b.float(FloatBin::Div, F64, above, below);
    let is_near = fcmp_const(b, Pred::Lt, F64, magnitude, 0.55);
    let value = b.select(is_near, near, far);
    with_sign(b, F64, value, x)
}

/// The logistic function: with e = e^−|x|, it is 1 / (1 + e) or e / (1 + e).
fn sigmoid(b: &mut Builder, x: Value) -> Value {
    let magnitude = un(b, FloatUn::Abs, F64, x);
    let minus = un(b, FloatUn::Neg, F64, magnitude);
    let e = exp(b, minus);
    let sum = shift(b, F64, e, 1.0);
    let one = num(b, F64, 1.0);
    let negative = fcmp_const(b, Pred::Lt, F64, x, 0.0);
    let above = b.select(negative, e, one);
    b.float(FloatBin::Div, F64, above, sum)
}

/// erf: up to 0.95 by an odd polynomial, beyond by 1 − exp(−x²) · P(t), which is 1 from 6 on.
fn erf(b: &mut Builder, x: Value) -> Value {
    let magnitude = un(b, FloatUn::Abs, F64, x);
    let square = b.float(FloatBin::Mul, F64, magnitude, magnitude);
    let rest = poly(b, F64, square, ERF);
    let near = b.fma(F64, magnitude, rest, magnitude);
    let six = num(b, F64, 6.0);
    let bounded = b.float(FloatBin::Min, F64, magnitude, six);
    let (above, below) = (shift(b, F64, bounded, -2.5), shift(b, F64, bounded, 2.5));
    let t = b.float(FloatBin::Div, F64, above, below);
    let g = poly(b, F64, t, ERFCX);
    let minus = un(b, FloatUn::Neg, F64, bounded);
    let exponent = b.float(FloatBin::Mul, F64, bounded, minus);
    let e = exp(b, exponent);
    let minus = un(b, FloatUn::Neg, F64, e);
    let one = num(b, F64, 1.0);
    let far = b.fma(F64, minus, g, one);
    // The comparison is false for NaN, which takes the other branch.
    let is_far = fcmp_const(b, Pred::Ge, F64, magnitude, 0.95);
    let value = b.select(is_far, far, near);
    with_sign(b, F64, value, x)
}
