//! `f32`: argument reduction and polynomials, without branches.
//!
//! `FMA` states that `mul_add` is one instruction where this is compiled; the error bounds hold either way. The polynomials of
//! `exp`, `ln` and `tanh` are those of Cephes (S. Moshier), that of `erf` is N. Juffa's.
#![expect(clippy::excessive_precision, reason = "coefficients are written as they were computed")]

pub(crate) use super::trig::{cos, sin};

/// `a · b + c`, rounded once or twice.
#[inline(always)]
fn madd<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Horner's rule; the first coefficient is the highest.
#[inline(always)]
fn poly<const FMA: bool, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    for c in &coefficients[1..] {
        sum = madd::<FMA>(sum, x, *c);
    }
    sum
}

/// Adding this to a number below 2²² rounds it to an integer, which the low bits of the sum contain.
const ROUND: f32 = 12_582_912.0;
const LN_2_HI: f32 = 0.693_359_375;
const LN_2_LO: f32 = -2.121_944_4e-4;

/// The nearest integer, as a float and as an integer.
#[inline(always)]
fn nearest(x: f32) -> (f32, i32) {
    let shifted = x + ROUND;
    (shifted - ROUND, shifted.to_bits().wrapping_sub(ROUND.to_bits()).cast_signed())
}

/// eʳ for |r| ≤ 0.35.
#[inline(always)]
fn exp_near_zero<const FMA: bool>(r: f32) -> f32 {
    let p =
        poly::<FMA, 6>(r, [1.987_569_2e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5.000_000_1e-1]);
    madd::<FMA>(p, r * r, r) + 1.0
}

/// `x · 2ⁿ` for n in −252 ..= 254, rounded once.
#[inline(always)]
fn scale(x: f32, n: i32) -> f32 {
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) << 23).cast_unsigned());
    x * power(half) * power(n.wrapping_sub(half))
}

/// Clamps to a range; NaN stays NaN.
#[inline(always)]
fn clamp(x: f32, lo: f32, hi: f32) -> f32 {
    let x = if x < lo { lo } else { x };
    if x > hi { hi } else { x }
}

#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    let x = clamp(x, -104.0, 89.0);
    let (n, n_int) = nearest(x * std::f32::consts::LOG2_E);
    let r = madd::<FMA>(n, -LN_2_LO, madd::<FMA>(n, -LN_2_HI, x));
    scale(exp_near_zero::<FMA>(r), n_int)
}

#[inline(always)]
pub(crate) fn exp2<const FMA: bool>(x: f32) -> f32 {
    let x = clamp(x, -151.0, 129.0);
    let (n, n_int) = nearest(x);
    scale(exp_near_zero::<FMA>((x - n) * std::f32::consts::LN_2), n_int)
}

/// The exponent, `m − 1` and `ln(m) − (m − 1)` for a significand `m` in √½ .. √2.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "an exponent has 9 bits")]
fn log_parts<const FMA: bool>(x: f32) -> (f32, f32, f32) {
    let subnormal = x < f32::MIN_POSITIVE;
    let x = if subnormal { x * 8_388_608.0 } else { x };
    let bits = x.to_bits().cast_signed();
    let exponent = bits.wrapping_sub(0x3F35_04F3) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(exponent << 23).cast_unsigned()) - 1.0;
    let z = f * f;
    let p = poly::<FMA, 9>(
        f,
        [
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_9e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_7e-1,
            2.000_071_5e-1,
            -2.499_999_4e-1,
            3.333_333_1e-1,
        ],
    );
    let exponent = exponent as f32 - if subnormal { 23.0 } else { 0.0 };
    (exponent, f, p * f * z)
}

/// The logarithm of arguments for which [`log_parts`] has no meaning.
#[inline(always)]
fn log_edges(x: f32, value: f32) -> f32 {
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x >= 0.0 { value } else { f32::NAN }
}

#[inline(always)]
pub(crate) fn ln<const FMA: bool>(x: f32) -> f32 {
    let (e, f, rest) = log_parts::<FMA>(x);
    let y = madd::<FMA>(e, LN_2_LO, rest) - 0.5 * (f * f);
    log_edges(x, madd::<FMA>(e, LN_2_HI, f + y))
}

#[inline(always)]
pub(crate) fn log2<const FMA: bool>(x: f32) -> f32 {
    /// log₂ e − 1
    const MORE: f32 = 0.442_695_04;
    let (e, f, rest) = log_parts::<FMA>(x);
    let y = rest - 0.5 * (f * f);
    log_edges(x, madd::<FMA>(y, MORE, f * MORE) + y + f + e)
}

#[inline(always)]
pub(crate) fn tanh<const FMA: bool>(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let p = poly::<FMA, 5>(z, [-5.704_988_7e-3, 2.063_908_9e-2, -5.373_971_5e-2, 1.333_144_2e-1, -3.333_328_2e-1]);
    let near = madd::<FMA>(p * z, x, x);
    let far = 1.0 - 2.0 / (exp::<FMA>(2.0 * a) + 1.0);
    (if a < 0.625 { near } else { far }).copysign(x)
}

#[inline(always)]
pub(crate) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    let e = exp::<FMA>(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

#[inline(always)]
pub(crate) fn erf<const FMA: bool>(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let r = madd::<FMA>(-1.728_534_7e-5, a, 3.831_971_3e-4);
    let u = madd::<FMA>(-3.883_964_4e-3, a, 2.425_462_2e-2);
    let r = madd::<FMA>(r, s, u);
    let r = poly::<FMA, 4>(a, [r, -1.067_778_77e-1, -6.348_466_9e-1, -1.287_175_1e-1]);
    let r = madd::<FMA>(r, a, -a);
    let far = (1.0 - exp::<FMA>(r)).copysign(x);
    let p = poly::<FMA, 6>(
        s,
        [-5.967_617e-4, 4.991_194e-3, -2.676_813_5e-2, 1.128_199_25e-1, -3.761_253_4e-1, 1.283_791_7e-1],
    );
    if a > 0.927_734_4 { far } else { madd::<FMA>(p, x, x) }
}

/// Whether [`sin`] and [`cos`] cannot reduce the argument.
#[inline(always)]
pub(crate) fn is_huge(x: f32) -> bool {
    x.abs() > super::trig::LIMIT
}
