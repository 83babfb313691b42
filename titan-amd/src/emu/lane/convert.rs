//! Conversions.
//!
//! To integers: truncated (or rounded as the mnemonic states) and saturated; NaN gives 0. 8-bit floats are those of this machine
//! (ISA §7.2, table 30): no negative zero, no infinity, one NaN, bias 8 and 16.

use super::float::{f32_of, in32, in64, of_f32, out32, out64};
use super::half::{read, to_f64, write};
use super::int::{h, i, u};
use super::{LaneFn, Mode};

/// An 8-bit format: the bits of exponent and fraction, and the bias.
#[derive(Clone, Copy)]
pub(crate) struct Small {
    exponent: u32,
    fraction: u32,
    bias: i32,
}

pub(crate) const FP8: Small = Small { exponent: 4, fraction: 3, bias: 8 };
pub(crate) const BF8: Small = Small { exponent: 5, fraction: 2, bias: 16 };
/// The NaN of both formats.
const NAN: u8 = 0x80;

impl Small {
    /// The value that a code represents.
    pub(crate) fn decode(self, code: u8) -> f64 {
        if code == NAN {
            return f64::NAN;
        }
        let e = i32::from(code >> self.fraction) & ((1 << self.exponent) - 1);
        let f = i32::from(code) & ((1 << self.fraction) - 1);
        let scale = |m: i32, e: i32| f64::from(m) * 2_f64.powi(e - self.bias - self.fraction.cast_signed());
        let magnitude = if e == 0 { scale(f, 1) } else { scale(f | 1 << self.fraction, e) };
        if code & 0x80 != 0 { -magnitude } else { magnitude }
    }

    /// The largest value.
    fn most(self) -> f64 {
        self.decode(0x7F)
    }

    /// Rounds to nearest even; larger values than the largest become NaN, or the largest if `saturates`.
    pub(crate) fn encode(self, x: f64, saturates: bool) -> u8 {
        let bad = |negative: bool| if saturates { if negative { 0xFF } else { 0x7F } } else { NAN };
        if x.is_nan() {
            return NAN;
        }
        let unit = |e: i32| 2_f64.powi(e - self.bias - self.fraction.cast_signed());
        let a = x.abs();
        if a > self.most() * 2.0 {
            return bad(x < 0.0);
        }
        // The exponent field of the number, at least that of subnormal numbers.
        let e = if a == 0.0 { 1 } else { (super::float::exponent64(a) + self.bias).max(1) };
        // In units of the last place, rounded to even: the exponent may carry.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^(fraction + 1)")]
        let m = (a / unit(e)).round_ties_even() as u32;
        let code = if m < 1 << self.fraction {
            m
        } else {
            ((e.cast_unsigned()) << self.fraction) + (m - (1 << self.fraction))
        };
        if code > 0x7F {
            return bad(x < 0.0);
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 0x7F")]
        let code = code as u8;
        // There is no negative zero.
        if x < 0.0 && code != 0 { code | 0x80 } else { code }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "saturating, as the instruction")]
fn i32_of(x: f64) -> u64 {
    u64::from((x as i32).cast_unsigned())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating, as the instruction")]
fn u32_of(x: f64) -> u64 {
    u64::from(x as u32)
}

#[expect(clippy::cast_possible_truncation, reason = "saturating, as the instruction")]
fn i16_of(x: f64) -> u64 {
    u64::from((x as i16).cast_unsigned())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating, as the instruction")]
fn u16_of(x: f64) -> u64 {
    u64::from(x as u16)
}

/// Converts a number in −1..1 to a fraction of 32767, or one in 0..1 to a fraction of 65535.
fn snorm(x: f64) -> u64 {
    i16_of((if x.is_nan() { 0.0 } else { x.clamp(-1.0, 1.0) } * 32767.0).round_ties_even())
}

fn unorm(x: f64) -> u64 {
    u16_of((if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) } * 65535.0).round_ties_even())
}

/// Converts to `f16`, towards zero.
fn f16_rtz(x: f32) -> u64 {
    let bits = u64::from(titan_core::num::f16_from_f32(x));
    let back = to_f64(bits);
    // If rounding went away from zero, the next smaller code; from infinity, the largest number.
    if back.abs() > f64::from(x.abs()) && x.is_finite() { bits - 1 } else { bits }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the purpose")]
fn f32_from(m: Mode, x: f64) -> u64 {
    out32(m, x as f32)
}

/// Rounds a number stochastically: random bits are added below the last place, and the bits below it are truncated.
///
/// ISA §12.11, `V_CVT_SR_FP8_F32`, whose formula adds the upper bits of the second source to the significand. What is
/// rounded off is then below one unit in the last place.
pub(crate) fn stochastic(format: Small, x: f32, random: u32, saturates: bool) -> u8 {
    if !x.is_finite() || x == 0.0 {
        return format.encode(f64::from(x), saturates);
    }
    let a = f64::from(x.abs());
    let e = (super::float::exponent64(a) + format.bias).max(1);
    let unit = 2_f64.powi(e - format.bias - format.fraction.cast_signed());
    // A fraction of a unit in 0..1, from the random bits that are below the last place of a significand of 23 bits.
    let below = 23 - format.fraction;
    let share = f64::from(random >> (32 - below)) / 2_f64.powi(below.cast_signed());
    let units = (a / unit + share).floor();
    format.encode((units * unit).copysign(f64::from(x)), saturates)
}

/// A byte of a word.
#[expect(clippy::cast_possible_truncation, reason = "a byte")]
pub(crate) const fn byte(x: u64, n: u32) -> u8 {
    (x >> (8 * n)) as u8
}

/// The function of a mnemonic.
pub(crate) fn function(name: &str) -> Option<LaneFn> {
    #[expect(clippy::cast_possible_truncation, reason = "8-bit floats are f32")]
    fn small(format: Small, code: u8) -> u64 {
        of_f32(format.decode(code) as f32)
    }
    fn pair(format: Small, x: u64) -> u64 {
        small(format, byte(x, 0)) | small(format, byte(x, 1)) << 32
    }
    Some(match name {
        "v_cvt_i32_f64" => |m, x| i32_of(in64(m, x[0])),
        "v_cvt_u32_f64" => |m, x| u32_of(in64(m, x[0])),
        "v_cvt_i32_f32" => |m, x| i32_of(in32(m, x[0]).into()),
        "v_cvt_u32_f32" => |m, x| u32_of(in32(m, x[0]).into()),
        "v_cvt_rpi_i32_f32" => |m, x| i32_of((f64::from(in32(m, x[0])) + 0.5).floor()),
        "v_cvt_flr_i32_f32" => |m, x| i32_of(f64::from(in32(m, x[0])).floor()),
        "v_cvt_f64_i32" => |_, x| f64::from(i(x[0])).to_bits(),
        "v_cvt_f64_u32" => |_, x| f64::from(u(x[0])).to_bits(),
        "v_cvt_f32_i32" => |m, x| f32_from(m, f64::from(i(x[0]))),
        "v_cvt_f32_u32" => |m, x| f32_from(m, f64::from(u(x[0]))),
        "v_cvt_f16_f32" => |m, x| write(m, in32(m, x[0]).into()),
        "v_cvt_f32_f16" => |m, x| f32_from(m, read(m, x[0])),
        "v_cvt_f32_f64" => |m, x| f32_from(m, in64(m, x[0])),
        "v_cvt_f64_f32" => |m, x| out64(m, in32(m, x[0]).into()),
        "v_cvt_f16_u16" => |m, x| write(m, f64::from(h(x[0]))),
        "v_cvt_f16_i16" => |m, x| write(m, f64::from(h(x[0]).cast_signed())),
        "v_cvt_u16_f16" => |m, x| u16_of(read(m, x[0])),
        "v_cvt_i16_f16" => |m, x| i16_of(read(m, x[0])),
        "v_cvt_norm_i16_f16" => |m, x| snorm(read(m, x[0])),
        "v_cvt_norm_u16_f16" => |m, x| unorm(read(m, x[0])),
        "v_cvt_off_f32_i4" => |_, x| {
            let n = (u(x[0]) << 28).cast_signed() >> 28;
            out32(DEFAULT, f32_of(of_f32(n as f32 / 16.0)))
        },
        "v_cvt_f32_ubyte0" => |_, x| of_f32(byte(x[0], 0).into()),
        "v_cvt_f32_ubyte1" => |_, x| of_f32(byte(x[0], 1).into()),
        "v_cvt_f32_ubyte2" => |_, x| of_f32(byte(x[0], 2).into()),
        "v_cvt_f32_ubyte3" => |_, x| of_f32(byte(x[0], 3).into()),
        "v_cvt_f32_fp8" => |_, x| small(FP8, byte(x[0], 0)),
        "v_cvt_f32_bf8" => |_, x| small(BF8, byte(x[0], 0)),
        "v_cvt_pk_f32_fp8" => |_, x| pair(FP8, x[0]),
        "v_cvt_pk_f32_bf8" => |_, x| pair(BF8, x[0]),
        "v_cvt_pkrtz_f16_f32" => |m, x| f16_rtz(in32(m, x[0])) | f16_rtz(in32(m, x[1])) << 16,
        "v_cvt_pknorm_i16_f32" => |m, x| snorm(in32(m, x[0]).into()) | snorm(in32(m, x[1]).into()) << 16,
        "v_cvt_pknorm_u16_f32" => |m, x| unorm(in32(m, x[0]).into()) | unorm(in32(m, x[1]).into()) << 16,
        "v_cvt_pknorm_i16_f16" => |m, x| snorm(read(m, x[0])) | snorm(read(m, x[1])) << 16,
        "v_cvt_pknorm_u16_f16" => |m, x| unorm(read(m, x[0])) | unorm(read(m, x[1])) << 16,
        "v_cvt_pk_u16_u32" => |_, x| u64::from(u(x[0]).min(0xFFFF)) | u64::from(u(x[1]).min(0xFFFF)) << 16,
        "v_cvt_pk_i16_i32" => |_, x| {
            let sat = |v: u64| u64::from(i(v).clamp(-0x8000, 0x7FFF).cast_unsigned() & 0xFFFF);
            sat(x[0]) | sat(x[1]) << 16
        },
        "v_cvt_pk_u8_f32" => |m, x| {
            let at = 8 * (x[1] & 3);
            let value = u32_of(f64::from(in32(m, x[0])).round_ties_even()).min(255);
            x[2] & !(0xFF << at) | value << at
        },
        "v_pack_b32_f16" => |m, x| {
            let keep = |v: u64| write(m, read(m, v));
            keep(x[0]) | keep(x[1]) << 16
        },
        _ => return None,
    })
}

/// A mode without effects.
const DEFAULT: Mode = Mode {
    round_32: 0,
    round_16_64: 0,
    denorm_32: 3,
    denorm_16_64: 3,
    dx10_clamp: true,
    ieee: true,
    fp16_overflow: false,
};

/// Converts two `f32`, or one stochastically, to 8-bit floats; returns the result and its number of bits.
pub(crate) fn to_small(name: &str, m: Mode, x: [u64; 3]) -> Option<(u64, u32)> {
    let format = if name.contains("bf8") { BF8 } else { FP8 };
    let code = |v: u64| u64::from(format.encode(f32_of(v).into(), m.fp16_overflow));
    match name {
        "v_cvt_pk_fp8_f32" | "v_cvt_pk_bf8_f32" => Some((code(x[0]) | code(x[1]) << 8, 16)),
        "v_cvt_sr_fp8_f32" | "v_cvt_sr_bf8_f32" => {
            Some((stochastic(format, f32_of(x[0]), u(x[1]), m.fp16_overflow).into(), 8))
        }
        _ => None,
    }
}
