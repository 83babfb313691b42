//! Float operations by Rust's own `f32` and `f64`, which are IEEE 754. 16-bit floats are computed exactly in `f64`, then rounded by
//! `titan_core::num`.

use super::{Margin, low32};
use titan_core::ir::Pred;
use titan_core::lane::{FloatBin, FloatTy, FloatUn, Num};
use titan_core::num::{self, Format};

const fn single(bits: u64) -> f32 {
    f32::from_bits(low32(bits))
}

fn bits32(x: f32) -> u64 {
    x.to_bits().into()
}

fn bits16(bits: u64) -> u16 {
    u16::try_from(bits & 0xffff).unwrap_or(0)
}

/// The exact value of a float of any type.
fn value(ty: FloatTy, bits: u64) -> f64 {
    match ty {
        FloatTy::F16 => num::f16_to_f64(bits16(bits)),
        FloatTy::Bf16 => num::bf16_to_f64(bits16(bits)),
        FloatTy::F32 => single(bits).into(),
        FloatTy::F64 => f64::from_bits(bits),
    }
}

/// The nearest float of type `ty`.
#[expect(clippy::cast_possible_truncation, reason = "`as` rounds to nearest even")]
fn round(ty: FloatTy, x: f64) -> u64 {
    match ty {
        FloatTy::F16 => num::f16_from_f64(x).into(),
        FloatTy::Bf16 => num::bf16_from_f64(x).into(),
        FloatTy::F32 => bits32(x as f32),
        FloatTy::F64 => x.to_bits(),
    }
}

/// The mask of the sign bit, for `neg` and `abs`.
const fn sign_bit(ty: FloatTy) -> u64 {
    match ty {
        FloatTy::F16 | FloatTy::Bf16 => 1 << 15,
        FloatTy::F32 => 1 << 31,
        FloatTy::F64 => 1 << 63,
    }
}

/// `f64` has more than twice the digits and more than twice the exponent range of the narrower types, so that the result of one operation
/// in `f64`, rounded to the narrower type, is the correctly rounded result (S. Figueroa, "When is double rounding innocuous?", 1995).
pub(crate) fn binary(op: FloatBin, ty: FloatTy, a: u64, b: u64) -> u64 {
    let (x, y) = (value(ty, a), value(ty, b));
    let exact = match op {
        FloatBin::Add => x + y,
        FloatBin::Sub => x - y,
        FloatBin::Mul => x * y,
        FloatBin::Div => x / y,
        FloatBin::Min | FloatBin::Max => return extreme(op == FloatBin::Min, (a, x), (b, y)),
    };
    round(ty, exact)
}

fn extreme(least: bool, (a, x): (u64, f64), (b, y): (u64, f64)) -> u64 {
    let first_is_less = x < y || (x == y && x.is_sign_negative());
    if y.is_nan() || (!x.is_nan() && first_is_less == least) { a } else { b }
}

pub(crate) fn compare(pred: Pred, ty: FloatTy, a: u64, b: u64) -> bool {
    let (x, y) = (value(ty, a), value(ty, b));
    match pred {
        Pred::Eq => x == y,
        Pred::Ne => x != y,
        Pred::Lt => x < y,
        Pred::Le => x <= y,
        Pred::Gt => x > y,
        Pred::Ge => x >= y,
    }
}

/// `a · b + c` rounded once.
pub(crate) fn fma(ty: FloatTy, a: u64, b: u64, c: u64) -> u64 {
    let (x, y, z) = (value(ty, a), value(ty, b), value(ty, c));
    match ty {
        FloatTy::F64 => x.mul_add(y, z).to_bits(),
        FloatTy::F32 => bits32(single(a).mul_add(single(b), single(c))),
        FloatTy::F16 | FloatTy::Bf16 => round(ty, sum_to_odd(x * y, z)),
    }
}

/// The sum rounded to odd: if it is inexact, of the two neighbouring floats the one whose last digit is odd. A later rounding to fewer
/// digits then takes the omitted digits into account.
fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let rest = (a - (sum - part)) + (b - part);
    if rest == 0.0 || rest.is_nan() || sum.to_bits() & 1 == 1 {
        sum
    } else if rest > 0.0 {
        sum.next_up()
    } else {
        sum.next_down()
    }
}

/// The result of a unary function: exact, or, if the contract allows an error, with the error that `margin` selects.
pub(crate) fn unary(op: FloatUn, ty: FloatTy, a: u64, margin: Margin) -> u64 {
    let x = value(ty, a);
    match op {
        FloatUn::Neg => a ^ sign_bit(ty),
        FloatUn::Abs => a & !sign_bit(ty),
        FloatUn::Sqrt => round(ty, x.sqrt()),
        FloatUn::Floor => round(ty, x.floor()),
        FloatUn::Ceil => round(ty, x.ceil()),
        FloatUn::Trunc => round(ty, x.trunc()),
        FloatUn::RoundEven => round(ty, x.round_ties_even()),
        FloatUn::Ex2Approx => approximate(f64::exp2, if x.abs() <= 0.5 { 1.6 } else { 2.0 }, x, margin),
        FloatUn::Lg2Approx => {
            approximate(f64::log2, if (0.5..=2.0).contains(&x) { f64::INFINITY } else { 2.0 }, x, margin)
        }
        FloatUn::RcpApprox => approximate(|x| 1.0 / x, 1.0, x, margin),
        FloatUn::RsqrtApprox => approximate(|x| 1.0 / x.sqrt(), 2.0, x, margin),
    }
}

/// The result of an `f32` function whose error may be up to `ulps` units in the last place.
#[expect(clippy::cast_possible_truncation, reason = "`as` rounds to nearest even")]
fn approximate(f: fn(f64) -> f64, ulps: f64, x: f64, margin: Margin) -> u64 {
    let least = f64::from(f32::MIN_POSITIVE);
    let flush = |x: f64| if x.abs() < least && margin != Margin::None { 0f64.copysign(x) } else { x };
    let x = flush(x);
    let y = f(x);
    let sign = match margin {
        Margin::None => 0.0,
        Margin::High => 1.0,
        Margin::Low => -1.0,
    };
    // Zeros and infinities are exact.
    if y == 0.0 || !y.is_finite() || margin == Margin::None || y.abs() < least {
        return bits32(flush(y) as f32);
    }
    let ulp = f64::from(f32::EPSILON) * f64::from_bits(y.abs().to_bits() & 0x7ff0_0000_0000_0000);
    // An infinite `ulps` stands for an absolute error, which is that of the logarithm near 1.
    let allowed = if ulps.is_finite() { ulps * ulp } else { 2f64.powi(-21) };
    // The farthest `f32` within the allowed error; the `f32` nearest to the bound itself may be beyond it.
    let end = y + sign * allowed;
    let mut far = end as f32;
    if (f64::from(far) - end) * sign > 0.0 {
        far = if sign > 0.0 { far.next_down() } else { far.next_up() };
    }
    bits32(flush(far.into()) as f32)
}

/// The operand of a conversion, as read from its bits.
enum Read {
    Float(f64),
    Int(bool, u64),
}

fn read(from: Num, bits: u64) -> Read {
    let signed = |x: i64| Read::Int(x < 0, x.unsigned_abs());
    match from {
        Num::F16 => Read::Float(num::f16_to_f64(bits16(bits))),
        Num::Bf16 => Read::Float(num::bf16_to_f64(bits16(bits))),
        Num::F32 | Num::Tf32 => Read::Float(single(bits).into()),
        Num::F64 => Read::Float(f64::from_bits(bits)),
        Num::E4m3 => Read::Float(Format::E4M3.to_f64(low32(bits) & 0xff)),
        Num::E5m2 => Read::Float(Format::E5M2.to_f64(low32(bits) & 0xff)),
        Num::S32 => signed(low32(bits).cast_signed().into()),
        Num::S64 => signed(bits.cast_signed()),
        Num::U32 | Num::U64 => Read::Int(false, bits),
    }
}

/// Converts a value from one type to another.
pub(crate) fn convert(from: Num, to: Num, bits: u64) -> u64 {
    let narrow = |format: Format, read: Read| match read {
        Read::Float(x) => u64::from(format.from_f64(x)),
        Read::Int(negative, magnitude) => u64::from(format.from_int(negative, magnitude)),
    };
    let read = read(from, bits);
    match to {
        Num::F16 => narrow(Format::F16, read),
        Num::Bf16 => narrow(Format::BF16, read),
        Num::E4m3 => narrow(Format::E4M3, read),
        Num::E5m2 => narrow(Format::E5M2, read),
        // The bits that a `tf32` lacks are zero.
        Num::Tf32 => narrow(Format::TF32, read) << 13,
        Num::F32 | Num::F64 => to_wide(to, &read),
        Num::S32 | Num::U32 | Num::S64 | Num::U64 => to_int(to, &read),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "`as` rounds to nearest even")]
fn to_wide(to: Num, read: &Read) -> u64 {
    let (as_single, as_double) = match *read {
        Read::Float(x) => (x as f32, x),
        Read::Int(negative, n) => {
            let sign = if negative { -1.0 } else { 1.0 };
            (sign as f32 * n as f32, sign * n as f64)
        }
    };
    if to == Num::F64 {
        return as_double.to_bits();
    }
    bits32(as_single)
}

/// `as` rounds toward zero, saturates, and converts NaN to 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturation is what is meant")]
fn to_int(to: Num, read: &Read) -> u64 {
    let signed = matches!(to, Num::S32 | Num::S64);
    let bits = if matches!(to, Num::S32 | Num::U32) { 32 } else { 64 };
    let (least, greatest) =
        if signed { (-1i128 << (bits - 1), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    let x = match *read {
        Read::Float(x) => x as i128,
        Read::Int(true, n) => -i128::from(n),
        Read::Int(false, n) => n.into(),
    };
    x.clamp(least, greatest) as u64
}
