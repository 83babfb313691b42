//! `cvt`: between integers and floating-point formats of all widths.
//!
//! Floating point to integer rounds in the direction of the modifier and clamps to the destination; NaN becomes 0. PTX ISA, "cvt".

use super::float::{in32, out32};
use super::format::{BF16, E4M3, E5M2, F16, TF32, round32, round64, sticky};
use super::half::{in16, out16};
use super::int::{mask, signed};
use super::{LaneFn, Mode, Rnd, lo};
use crate::emu::ty::Ty;

/// Packs the types of a conversion into [`Mode::aux`], so that one function serves all conversions.
///
/// `widen` is 0, or the width of the register to which a narrower result is sign-extended.
pub(crate) fn pack(to: Ty, from: Ty, integral: bool, widen: u32) -> u32 {
    index(to) | index(from) << 8 | u32::from(integral) << 16 | widen << 17
}

const TYPES: [Ty; 13] = [
    Ty::U8,
    Ty::U16,
    Ty::U32,
    Ty::U64,
    Ty::S8,
    Ty::S16,
    Ty::S32,
    Ty::S64,
    Ty::F16,
    Ty::Bf16,
    Ty::F32,
    Ty::F64,
    Ty::Tf32,
];

fn index(ty: Ty) -> u32 {
    u32::try_from(TYPES.iter().position(|t| *t == ty).unwrap_or(0)).unwrap_or(0)
}

fn unpack(aux: u32, at: u32) -> Ty {
    TYPES.get((aux >> at & 0xFF) as usize).copied().unwrap_or(Ty::U8)
}

/// Whether `cvt` supports a type.
pub(crate) fn knows(ty: Ty) -> bool {
    TYPES.contains(&ty)
}

/// Scalar conversions; `aux` is from [`pack`].
pub(crate) fn scalar(m: Mode, a: u64, _: u64, _: u64) -> u64 {
    let (to, from, integral) = (unpack(m.aux, 0), unpack(m.aux, 8), m.aux >> 16 & 1 == 1);
    let result = match (from.is_float(), to.is_float()) {
        (false, false) => int_to_int(m, a, from, to),
        (false, true) => int_to_float(m, a, from, to),
        (true, false) => float_to_int(m, a, from, to),
        (true, true) => float_to_float(m, a, from, to, integral),
    };
    let widen = m.aux >> 17;
    if widen == 0 { result } else { signed(result, to.bits()).cast_unsigned() & mask(widen) }
}

fn int_value(a: u64, ty: Ty) -> i128 {
    if ty.is_signed() { signed(a, ty.bits()).into() } else { (a & mask(ty.bits())).into() }
}

fn range(ty: Ty) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low bits are asked for")]
fn low_bits(x: i128) -> u64 {
    x as u64
}

fn int_to_int(m: Mode, a: u64, from: Ty, to: Ty) -> u64 {
    let value = int_value(a, from);
    let (least, most) = range(to);
    low_bits(if m.sat { value.clamp(least, most) } else { value }) & mask(to.bits())
}

fn int_to_float(m: Mode, a: u64, from: Ty, to: Ty) -> u64 {
    let value = int_value(a, from);
    let near = value as f64;
    // Exact: a rounded 64-bit integer is an integer of at most 65 bits.
    #[expect(clippy::cast_possible_truncation, reason = "an f64 made from a 64-bit integer")]
    let error = (value - near as i128) as f64;
    if to == Ty::F64 {
        return round64(near, error, m.rnd).to_bits();
    }
    float_out(m, to, sticky(near, error))
}

/// Rounds a sticky f64 to the bits of a type.
fn float_out(m: Mode, to: Ty, x: f64) -> u64 {
    match to {
        Ty::F16 => out16(m, F16, x),
        Ty::Bf16 => out16(m, BF16, x),
        Ty::Tf32 => {
            let x = if m.relu && x <= 0.0 { 0.0 } else { x };
            TF32.code(x, m.rnd, m.sat) << 13
        }
        Ty::F32 => {
            let x = if m.relu && x <= 0.0 { 0.0 } else { x };
            out32(m, round32(x, m.rnd))
        }
        _ => {
            let x = if m.sat { if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) + 0.0 } } else { x };
            if x.is_nan() { 0x7FFF_FFFF_FFFF_FFFF } else { x.to_bits() }
        }
    }
}

fn float_in(m: Mode, from: Ty, a: u64) -> f64 {
    match from {
        Ty::F16 => in16(Mode { ftz: false, ..m }, F16, a),
        Ty::Bf16 => in16(Mode { ftz: false, ..m }, BF16, a),
        Ty::F32 | Ty::Tf32 => in32(m, a).into(),
        _ => f64::from_bits(a),
    }
}

fn to_integral(x: f64, rnd: Rnd) -> f64 {
    match rnd {
        Rnd::Near => x.round_ties_even(),
        Rnd::Away => x.round(),
        Rnd::Zero => x.trunc(),
        Rnd::Down => x.floor(),
        Rnd::Up => x.ceil(),
    }
}

fn float_to_int(m: Mode, a: u64, from: Ty, to: Ty) -> u64 {
    let x = float_in(m, from, a);
    let (least, most) = range(to);
    // `as` clamps to i128 and makes NaN zero, as the instruction does for its own range.
    #[expect(clippy::cast_possible_truncation, reason = "clamped next")]
    let value = to_integral(x, m.rnd) as i128;
    low_bits(value.clamp(least, most)) & mask(to.bits())
}

fn float_to_float(m: Mode, a: u64, from: Ty, to: Ty, integral: bool) -> u64 {
    let x = float_in(m, from, a);
    if !integral {
        return float_out(m, to, x);
    }
    let rounded = to_integral(x, m.rnd);
    float_out(Mode { rnd: Rnd::Near, ..m }, to, rounded)
}

/// `cvt.f16x2.f32 d, a, b`: `a` goes to the upper half. And to `bf16x2`, `e4m3x2`, `e5m2x2`.
pub(crate) fn pair_from_f32(to: Ty) -> Option<LaneFn> {
    Some(match to {
        Ty::F16x2 => |m, a, b, _| pair(a, b, 16, |x| out16_sat(m, F16, in32(m, x).into())),
        Ty::Bf16x2 => |m, a, b, _| pair(a, b, 16, |x| out16_sat(m, BF16, in32(m, x).into())),
        Ty::E4m3x2 => |m, a, b, _| pair(a, b, 8, |x| small(m, E4M3, in32(m, x).into())),
        Ty::E5m2x2 => |m, a, b, _| pair(a, b, 8, |x| small(m, E5M2, in32(m, x).into())),
        _ => return None,
    })
}

/// Conversions between packed pairs of 16-bit and of 8-bit elements.
pub(crate) fn pair_to_pair(to: Ty, from: Ty) -> Option<LaneFn> {
    Some(match (to, from) {
        (Ty::E4m3x2, Ty::F16x2) => |m, a, _, _| pair(a >> 16, a & 0xFFFF, 8, |x| small(m, E4M3, F16.value(x))),
        (Ty::E5m2x2, Ty::F16x2) => |m, a, _, _| pair(a >> 16, a & 0xFFFF, 8, |x| small(m, E5M2, F16.value(x))),
        (Ty::F16x2, Ty::E4m3x2) => |m, a, _, _| pair(a >> 8, a & 0xFF, 16, |x| out16(m, F16, E4M3.value(x))),
        (Ty::F16x2, Ty::E5m2x2) => |m, a, _, _| pair(a >> 8, a & 0xFF, 16, |x| out16(m, F16, E5M2.value(x))),
        _ => return None,
    })
}

fn pair(high: u64, low: u64, bits: u32, f: impl Fn(u64) -> u64) -> u64 {
    f(high) << bits | f(low)
}

/// `cvt.satfinite` from f32 to one 16-bit float.
pub(crate) fn to_half_satfinite(to: Ty) -> Option<LaneFn> {
    Some(match to {
        Ty::F16 => |m, a, _, _| out16_sat(m, F16, in32(m, a).into()),
        Ty::Bf16 => |m, a, _, _| out16_sat(m, BF16, in32(m, a).into()),
        _ => return None,
    })
}

/// `.satfinite` clamps to the largest number, not to 1.
fn out16_sat(m: Mode, format: super::format::Format, x: f64) -> u64 {
    let code = out16(Mode { sat: false, ..m }, format, x);
    let infinite = format.value(code).is_infinite();
    if m.sat && infinite { code - 1 } else { code }
}

fn small(m: Mode, format: super::format::Format, x: f64) -> u64 {
    let x = if m.relu && x <= 0.0 { 0.0 } else { x };
    format.code(x, m.rnd, true)
}

/// `cvt.pack.sat`: `a` and `b` clamped to 16 or 8 bits, packed; with 8 bits, `c` moves up by two bytes.
pub(crate) fn pack_integers(to: Ty) -> Option<LaneFn> {
    Some(match to {
        Ty::S16 => |_, a, b, _| clamped(a, Ty::S16) << 16 | clamped(b, Ty::S16),
        Ty::U16 => |_, a, b, _| clamped(a, Ty::U16) << 16 | clamped(b, Ty::U16),
        Ty::S8 => |_, a, b, c| lo(c << 16 | clamped(a, Ty::S8) << 8 | clamped(b, Ty::S8)).into(),
        Ty::U8 => |_, a, b, c| lo(c << 16 | clamped(a, Ty::U8) << 8 | clamped(b, Ty::U8)).into(),
        _ => return None,
    })
}

fn clamped(a: u64, to: Ty) -> u64 {
    let (least, most) = range(to);
    low_bits(int_value(a, Ty::S32).clamp(least, most)) & mask(to.bits())
}
