//! f32 and f64 arithmetic and comparison.
//!
//! NaN results of f32 instructions are the canonical `0x7fffffff`; those of f64 instructions are `0x7fffffffffffffff`,
//! since the manual leaves their payload open. Directed roundings are exact where products do not underflow in f64.

use super::format::{round32, round64, sticky, sum_error};
use super::{LaneFn, Mode, Rnd, lo};
use crate::emu::ty::Ty;
use titan_core::num::fma;

const NAN32: u64 = 0x7FFF_FFFF;
const NAN64: u64 = 0x7FFF_FFFF_FFFF_FFFF;

#[inline]
fn is_subnormal_bits(bits: u32) -> bool {
    bits & 0x7F80_0000 == 0
}

/// The value of an f32 operand.
#[inline]
pub(crate) fn in32(m: Mode, bits: u64) -> f32 {
    let bits = lo(bits);
    f32::from_bits(if m.ftz && is_subnormal_bits(bits) { bits & 0x8000_0000 } else { bits })
}

/// The bits of an f32 result.
#[inline]
pub(crate) fn out32(m: Mode, x: f32) -> u64 {
    if x.is_nan() {
        return if m.sat { 0 } else { NAN32 };
    }
    let x = if m.sat { x.clamp(0.0, 1.0) + 0.0 } else { x };
    let bits = x.to_bits();
    u64::from(if m.ftz && is_subnormal_bits(bits) { bits & 0x8000_0000 } else { bits })
}

#[inline]
fn in64(bits: u64) -> f64 {
    f64::from_bits(bits)
}

#[inline]
fn out64(x: f64) -> u64 {
    if x.is_nan() { NAN64 } else { x.to_bits() }
}

fn add32(m: Mode, a: u64, b: u64, _: u64) -> u64 {
    let (a, b) = (in32(m, a), in32(m, b));
    if m.rnd == Rnd::Near {
        return out32(m, a + b);
    }
    let (a, b) = (f64::from(a), f64::from(b));
    let s = a + b;
    // The exact zero of two opposite numbers is negative only when rounding down.
    if s == 0.0 && a != 0.0 {
        return out32(m, if m.rnd == Rnd::Down { -0.0 } else { 0.0 });
    }
    if s == 0.0 && m.rnd == Rnd::Down && (a.is_sign_negative() || b.is_sign_negative()) {
        return out32(m, -0.0);
    }
    out32(m, round32(sticky(s, sum_error(a, b, s)), m.rnd))
}

fn mul32(m: Mode, a: u64, b: u64, _: u64) -> u64 {
    let (a, b) = (in32(m, a), in32(m, b));
    if m.rnd == Rnd::Near { out32(m, a * b) } else { out32(m, round32(f64::from(a) * f64::from(b), m.rnd)) }
}

/// The product is exact in f64 and the sum is made sticky, so that only the final rounding rounds.
fn fma32(m: Mode, a: u64, b: u64, c: u64) -> u64 {
    let (p, c) = (f64::from(in32(m, a)) * f64::from(in32(m, b)), f64::from(in32(m, c)));
    let s = p + c;
    if s == 0.0 && m.rnd == Rnd::Down && (p != 0.0 || p.is_sign_negative() != c.is_sign_negative()) {
        return out32(m, -0.0);
    }
    out32(m, round32(sticky(s, sum_error(p, c, s)), m.rnd))
}

fn div32(m: Mode, a: u64, b: u64, _: u64) -> u64 {
    let (a, b) = (in32(m, a), in32(m, b));
    if m.rnd == Rnd::Near {
        return out32(m, a / b);
    }
    let (a, b) = (f64::from(a), f64::from(b));
    let q = a / b;
    let remainder = fma(-q, b, a);
    let error = if b.is_sign_negative() { -remainder } else { remainder };
    out32(m, round32(sticky(q, if q.is_finite() { error } else { 0.0 }), m.rnd))
}

fn sqrt32(m: Mode, a: u64, _: u64, _: u64) -> u64 {
    let a = in32(m, a);
    if m.rnd == Rnd::Near {
        return out32(m, a.sqrt());
    }
    let a = f64::from(a);
    let s = a.sqrt();
    out32(m, round32(sticky(s, if s.is_finite() { fma(-s, s, a) } else { 0.0 }), m.rnd))
}

fn add64(m: Mode, a: u64, b: u64, _: u64) -> u64 {
    let (a, b) = (in64(a), in64(b));
    let s = a + b;
    if s == 0.0 && m.rnd == Rnd::Down && (a != 0.0 || a.is_sign_negative() != b.is_sign_negative()) {
        return out64(-0.0);
    }
    out64(round64(s, sum_error(a, b, s), m.rnd))
}

fn mul64(m: Mode, a: u64, b: u64, _: u64) -> u64 {
    let (a, b) = (in64(a), in64(b));
    let p = a * b;
    out64(if m.rnd == Rnd::Near { p } else { round64(p, fma(a, b, -p), m.rnd) })
}

fn fma64(m: Mode, a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = (in64(a), in64(b), in64(c));
    let r = fma(a, b, c);
    if m.rnd == Rnd::Near || !r.is_finite() {
        return out64(r);
    }
    // The error of a fused product (Boldo and Muller, "Exact and approximated error of the FMA", 2011).
    let p = a * b;
    let low = fma(a, b, -p);
    let s = c + low;
    let s_low = sum_error(c, low, s);
    let t = p + s;
    let t_low = sum_error(p, s, t);
    out64(round64(r, ((t - r) + t_low) + s_low, m.rnd))
}

fn div64(m: Mode, a: u64, b: u64, _: u64) -> u64 {
    let (a, b) = (in64(a), in64(b));
    let q = a / b;
    if m.rnd == Rnd::Near || !q.is_finite() {
        return out64(q);
    }
    let remainder = fma(-q, b, a);
    out64(round64(q, if b.is_sign_negative() { -remainder } else { remainder }, m.rnd))
}

fn sqrt64(m: Mode, a: u64, _: u64, _: u64) -> u64 {
    let a = in64(a);
    let s = a.sqrt();
    out64(if m.rnd == Rnd::Near || !s.is_finite() { s } else { round64(s, fma(-s, s, a), m.rnd) })
}

/// `min` or `max` of two numbers, by the manual's rules for NaN and zeros.
pub(crate) fn pick(m: Mode, a: f64, b: f64, max: bool) -> f64 {
    let (sign, a, b) =
        if m.xorsign { (a.is_sign_negative() != b.is_sign_negative(), a.abs(), b.abs()) } else { (false, a, b) };
    let picked = match (a.is_nan(), b.is_nan()) {
        (true, true) => f64::NAN,
        (true, false) => {
            if m.nan {
                f64::NAN
            } else {
                b
            }
        }
        (false, true) => {
            if m.nan {
                f64::NAN
            } else {
                a
            }
        }
        // +0 counts as more than -0.
        (false, false) if a == b => {
            if a.is_sign_negative() == max {
                b
            } else {
                a
            }
        }
        (false, false) => {
            if (a > b) == max {
                a
            } else {
                b
            }
        }
    };
    if sign { -picked } else { picked }
}

#[expect(clippy::cast_possible_truncation, reason = "one of two f32 values")]
fn pick32(m: Mode, a: u64, b: u64, max: bool) -> u64 {
    out32(Mode { sat: false, ..m }, pick(m, f64::from(in32(m, a)), f64::from(in32(m, b)), max) as f32)
}

/// The arithmetic functions of f32 and f64, by opcode.
pub(crate) fn arithmetic(op: &str, ty: Ty) -> Option<LaneFn> {
    Some(match (op, ty) {
        ("add", Ty::F32) => add32,
        ("sub", Ty::F32) => |m, a, b, c| add32(m, a, b ^ 0x8000_0000, c),
        ("mul", Ty::F32) => mul32,
        ("fma", Ty::F32) => fma32,
        ("div", Ty::F32) => div32,
        ("rcp", Ty::F32) => |m, a, _, c| div32(m, 0x3F80_0000, a, c),
        ("sqrt", Ty::F32) => sqrt32,
        ("abs", Ty::F32) => |m, a, _, _| nan_or(m, a, |b| b & 0x7FFF_FFFF),
        ("neg", Ty::F32) => |m, a, _, _| nan_or(m, a, |b| b ^ 0x8000_0000),
        ("min", Ty::F32) => |m, a, b, _| pick32(m, a, b, false),
        ("max", Ty::F32) => |m, a, b, _| pick32(m, a, b, true),
        ("add", Ty::F64) => add64,
        ("sub", Ty::F64) => |m, a, b, c| add64(m, a, b ^ 1 << 63, c),
        ("mul", Ty::F64) => mul64,
        ("fma", Ty::F64) => fma64,
        ("div", Ty::F64) => div64,
        ("rcp", Ty::F64) => |m, a, _, c| div64(m, 1f64.to_bits(), a, c),
        ("sqrt", Ty::F64) => sqrt64,
        ("abs", Ty::F64) => |_, a, _, _| a & !(1 << 63),
        ("neg", Ty::F64) => |_, a, _, _| a ^ 1 << 63,
        ("min", Ty::F64) => |m, a, b, _| out64(pick(m, in64(a), in64(b), false)),
        ("max", Ty::F64) => |m, a, b, _| out64(pick(m, in64(a), in64(b), true)),
        ("copysign", Ty::F32) => |_, a, b, _| a & 0x8000_0000 | b & 0x7FFF_FFFF,
        ("copysign", Ty::F64) => |_, a, b, _| a & 1 << 63 | b & !(1 << 63),
        _ => return None,
    })
}

/// Applies a change of the sign bit, after flushing; NaN becomes canonical.
fn nan_or(m: Mode, a: u64, f: fn(u64) -> u64) -> u64 {
    let x = in32(m, a);
    if x.is_nan() { NAN32 } else { f(x.to_bits().into()) }
}

/// The value of an operand of any floating-point type that can be compared.
fn value(m: Mode, ty: Ty, bits: u64) -> f64 {
    match ty {
        Ty::F32 => in32(m, bits).into(),
        Ty::F64 => in64(bits),
        Ty::F16 => super::half::in16(m, super::format::F16, bits),
        _ => super::half::in16(m, super::format::BF16, bits),
    }
}

macro_rules! compare {
    ($ty:expr, $f:expr) => {{
        const F: fn(f64, f64) -> bool = $f;
        match $ty {
            Ty::F32 => |m: Mode, a, b, _| u64::from(F(value(m, Ty::F32, a), value(m, Ty::F32, b))),
            Ty::F64 => |m: Mode, a, b, _| u64::from(F(value(m, Ty::F64, a), value(m, Ty::F64, b))),
            Ty::F16 => |m: Mode, a, b, _| u64::from(F(value(m, Ty::F16, a), value(m, Ty::F16, b))),
            Ty::Bf16 => |m: Mode, a, b, _| u64::from(F(value(m, Ty::Bf16, a), value(m, Ty::Bf16, b))),
            _ => return None,
        }
    }};
}

/// The function of a comparison: 1 if it holds. Ordered comparisons are false if an operand is NaN, those that end in `u` are true.
pub(crate) fn compare(cmp: &str, ty: Ty) -> Option<LaneFn> {
    Some(match cmp {
        "eq" => compare!(ty, |a, b| a == b),
        "ne" => compare!(ty, |a, b| a != b && !a.is_nan() && !b.is_nan()),
        "lt" => compare!(ty, |a, b| a < b),
        "le" => compare!(ty, |a, b| a <= b),
        "gt" => compare!(ty, |a, b| a > b),
        "ge" => compare!(ty, |a, b| a >= b),
        "equ" => compare!(ty, |a, b| a == b || a.is_nan() || b.is_nan()),
        "neu" => compare!(ty, |a, b| a != b),
        "ltu" => compare!(ty, |a, b| a.is_nan() || b.is_nan() || a < b),
        "leu" => compare!(ty, |a, b| a.is_nan() || b.is_nan() || a <= b),
        "gtu" => compare!(ty, |a, b| a.is_nan() || b.is_nan() || a > b),
        "geu" => compare!(ty, |a, b| a.is_nan() || b.is_nan() || a >= b),
        "num" => compare!(ty, |a, b| !a.is_nan() && !b.is_nan()),
        "nan" => compare!(ty, |a, b| a.is_nan() || b.is_nan()),
        _ => return None,
    })
}

/// The function of `testp`: 1 if the operand has the property.
pub(crate) fn test(property: &str, ty: Ty) -> Option<LaneFn> {
    Some(match (property, ty) {
        ("finite", Ty::F32) => |_, a, _, _| u64::from(f32::from_bits(lo(a)).is_finite()),
        ("infinite", Ty::F32) => |_, a, _, _| u64::from(f32::from_bits(lo(a)).is_infinite()),
        ("number", Ty::F32) => |_, a, _, _| u64::from(!f32::from_bits(lo(a)).is_nan()),
        ("notanumber", Ty::F32) => |_, a, _, _| u64::from(f32::from_bits(lo(a)).is_nan()),
        ("normal", Ty::F32) => |_, a, _, _| u64::from(f32::from_bits(lo(a)).is_normal()),
        ("subnormal", Ty::F32) => |_, a, _, _| u64::from(f32::from_bits(lo(a)).is_subnormal()),
        ("finite", Ty::F64) => |_, a, _, _| u64::from(in64(a).is_finite()),
        ("infinite", Ty::F64) => |_, a, _, _| u64::from(in64(a).is_infinite()),
        ("number", Ty::F64) => |_, a, _, _| u64::from(!in64(a).is_nan()),
        ("notanumber", Ty::F64) => |_, a, _, _| u64::from(in64(a).is_nan()),
        ("normal", Ty::F64) => |_, a, _, _| u64::from(in64(a).is_normal()),
        ("subnormal", Ty::F64) => |_, a, _, _| u64::from(in64(a).is_subnormal()),
        _ => return None,
    })
}
