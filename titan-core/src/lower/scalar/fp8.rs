//! OCP 8-bit floats on machines without conversions for them, or with conversions for other formats of the same name: integer arithmetic on
//! the bits of `f32`.
//!
//! Source of the formats: "OCP 8-bit Floating Point Specification (OFP8)", 1.0.

use super::emit::{bits, cvt, int_const, is_nan, scale, shift};
use crate::ir::{Elem, Pred};
use crate::lane::{Builder, FloatTy, IntBin, Num, OpKind, Ty, Value};
use crate::target::Target;

/// The code of NaN without its sign bit, in both formats.
const NAN: u64 = 0x7f;

/// The parameters of a format.
struct Format {
    num: Num,
    /// The number of fraction bits.
    fraction: u32,
    /// The exponent of the smallest normal number.
    least: i32,
    /// The maximum finite number.
    greatest: f32,
}

const fn format(elem: Elem) -> Format {
    if matches!(elem, Elem::E5m2) {
        Format { num: Num::E5m2, fraction: 2, least: -14, greatest: 57344.0 }
    } else {
        Format { num: Num::E4m3, fraction: 3, least: -6, greatest: 448.0 }
    }
}

/// The code nearest to an `f32`, ties to even, saturating; NaN stays NaN.
pub(super) fn encode(b: &mut Builder, target: &Target, to: Elem, x: Value) -> Value {
    let f = format(to);
    if target.converts(to) {
        return cvt(b, Num::F32, f.num, x);
    }
    let single = FloatTy::F32;
    let magnitude = int_const(b, IntBin::And, x, 0x7fff_ffff);
    let magnitude = int_const(b, IntBin::MinU, magnitude, f.greatest.to_bits().into());
    // A normal number is rounded by adding half a unit minus one, plus one if the last digit kept is odd. The exponents of the formats have
    // different biases.
    let drop = 23 - f.fraction;
    let normal = {
        let odd = int_const(b, IntBin::ShrU, magnitude, drop.into());
        let odd = int_const(b, IntBin::And, odd, 1);
        let start = (f.least + 126).cast_unsigned() << 23;
        let half = (1u32 << (drop - 1)) - 1;
        let moved = int_const(b, IntBin::Add, magnitude, half.wrapping_sub(start).into());
        let rounded = b.add(moved, odd);
        int_const(b, IntBin::ShrU, rounded, drop.into())
    };
    // A subnormal number is added to a power of two whose last digit has the weight of the format's last digit, which rounds it.
    let power = exp2i(f.least + 23 - f.fraction.cast_signed());
    let subnormal = {
        let sum = shift(b, single, magnitude, power.into());
        int_const(b, IntBin::Sub, sum, power.to_bits().into())
    };
    let least = bits(b, Ty::B32, exp2i(f.least).to_bits().into());
    let is_small = b.cmp_u(Pred::Lt, magnitude, least);
    let code = b.select(is_small, subnormal, normal);
    let nan = is_nan(b, single, x);
    let nan_code = bits(b, Ty::B32, NAN);
    let code = b.select(nan, nan_code, code);
    let sign = int_const(b, IntBin::ShrU, x, 24);
    let sign = int_const(b, IntBin::And, sign, 0x80);
    b.or(code, sign)
}

/// 2ⁿ, if that is a normal number.
const fn exp2i(n: i32) -> f32 {
    f32::from_bits((n + 127).cast_unsigned() << 23)
}

/// The value of a code as an `f32`, exactly.
pub(super) fn decode(b: &mut Builder, target: &Target, from: Elem, x: Value) -> Value {
    let f = format(from);
    if target.converts(from) {
        return cvt(b, f.num, Num::F32, x);
    }
    if from == Elem::E5m2 {
        let half = e5m2_to_half(b, x);
        return cvt(b, Num::F16, Num::F32, half);
    }
    // With its bits at the positions of an `f32`, the code has the value divided by a power of two; this holds for subnormal codes too.
    let magnitude = int_const(b, IntBin::And, x, 0x7f);
    let small = int_const(b, IntBin::Shl, magnitude, (23 - f.fraction).into());
    let value = scale(b, FloatTy::F32, small, exp2i(f.least + 126).into());
    let nan_code = bits(b, Ty::B32, NAN);
    let is_nan = b.cmp_u(Pred::Eq, magnitude, nan_code);
    let nan = b.f32(f32::NAN);
    let value = b.select(is_nan, nan, value);
    let sign = int_const(b, IntBin::And, x, 0x80);
    let sign = int_const(b, IntBin::Shl, sign, 24);
    b.or(value, sign)
}

/// An `e5m2` is the upper half of an `f16` with the same value.
pub(super) fn e5m2_to_half(b: &mut Builder, x: Value) -> Value {
    let bits = int_const(b, IntBin::Shl, x, 8);
    b.one(OpKind::Truncate(Ty::B16), &[bits])
}
