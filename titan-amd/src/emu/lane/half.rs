//! `f16`: exact in `f64`, rounded once.
//!
//! Sums and products of two `f16` are exact in `f64`. A fused multiply-add may not be: it is rounded to odd in `f64`, so
//! that the second rounding is correct (Boldo, Melquiond: "Emulation of FMA and correctly rounded sums").

use super::float::{frexp_of, ldexp64};
use super::{LaneFn, Mode, denormals};
use titan_core::num;

#[expect(clippy::cast_possible_truncation, reason = "the lower half is the number")]
pub(crate) const fn to_f64(bits: u64) -> f64 {
    num::f16_to_f64(bits as u16)
}

#[expect(clippy::cast_possible_truncation, reason = "every f16 is an f32")]
pub(crate) const fn to_f32(bits: u64) -> f32 {
    to_f64(bits) as f32
}

/// The smallest normal number.
const NORMAL: f64 = 6.103_515_625e-5;

pub(crate) fn read(m: Mode, bits: u64) -> f64 {
    let x = to_f64(bits);
    if x.abs() < NORMAL && !denormals(m, 16).inputs { 0_f64.copysign(x) } else { x }
}

pub(crate) fn write(m: Mode, x: f64) -> u64 {
    let mut bits = u64::from(num::f16_from_f64(x));
    if m.fp16_overflow && x.is_finite() && bits & 0x7FFF == 0x7C00 {
        bits -= 1;
    }
    let small = to_f64(bits).abs() < NORMAL;
    if small && !denormals(m, 16).results { bits & 0x8000 } else { bits }
}

/// `a * b + c`, rounded to odd in `f64`.
pub(crate) fn fused(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    if !sum.is_finite() {
        return sum;
    }
    // The error of the sum, exactly (Knuth's two-sum).
    let back = sum - product;
    let error = (product - (sum - back)) + (c - back);
    let bits = sum.to_bits();
    if error == 0.0 || bits & 1 == 1 {
        return sum;
    }
    let away = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away { bits + 1 } else { bits - 1 })
}

fn min(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

fn max(a: f64, b: f64) -> f64 {
    -min(-a, -b)
}

fn med(a: f64, b: f64, c: f64) -> f64 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return min(min(a, b), c);
    }
    max(min(a, b), min(max(a, b), c))
}

fn fract(x: f64) -> f64 {
    // The largest f16 below 1.
    if x.is_infinite() { f64::NAN } else { (x - x.floor()).min(0.999_511_718_75) }
}

#[expect(clippy::cast_possible_truncation, reason = "16 bits")]
const fn i16_of(bits: u64) -> i32 {
    (bits as u16).cast_signed() as i32
}

macro_rules! lane {
    (|$a:ident| $e:expr) => {
        |m, x| {
            let $a = read(m, x[0]);
            write(m, $e)
        }
    };
    (|$a:ident, $b:ident| $e:expr) => {
        |m, x| {
            let ($a, $b) = (read(m, x[0]), read(m, x[1]));
            write(m, $e)
        }
    };
    (|$a:ident, $b:ident, $c:ident| $e:expr) => {
        |m, x| {
            let ($a, $b, $c) = (read(m, x[0]), read(m, x[1]), read(m, x[2]));
            write(m, $e)
        }
    };
}

/// A multiply-add whose product is rounded before the addition.
fn separate(m: Mode, a: f64, b: f64, c: f64) -> f64 {
    to_f64(write(m, a * b)) + c
}

/// The function of a mnemonic.
pub(crate) fn function(name: &str) -> Option<LaneFn> {
    Some(match name {
        "v_add_f16" | "v_pk_add_f16" => lane!(|a, b| a + b),
        "v_sub_f16" => lane!(|a, b| a - b),
        "v_subrev_f16" => lane!(|a, b| b - a),
        "v_mul_f16" | "v_pk_mul_f16" => lane!(|a, b| a * b),
        "v_min_f16" | "v_pk_min_f16" => lane!(|a, b| min(a, b)),
        "v_max_f16" | "v_pk_max_f16" => lane!(|a, b| max(a, b)),
        "v_min3_f16" => lane!(|a, b, c| min(min(a, b), c)),
        "v_max3_f16" => lane!(|a, b, c| max(max(a, b), c)),
        "v_med3_f16" => lane!(|a, b, c| med(a, b, c)),
        "v_fma_f16" | "v_fma_legacy_f16" | "v_pk_fma_f16" | "v_pk_fmac_f16" => lane!(|a, b, c| fused(a, b, c)),
        "v_mad_f16" | "v_mad_legacy_f16" | "v_mac_f16" | "v_madak_f16" => {
            |m, x| write(m, separate(m, read(m, x[0]), read(m, x[1]), read(m, x[2])))
        }
        "v_madmk_f16" => |m, x| write(m, separate(m, read(m, x[0]), read(m, x[1]), read(m, x[2]))),
        "v_ldexp_f16" => |m, x| write(m, ldexp64(read(m, x[0]), i16_of(x[1]))),
        "v_trunc_f16" => lane!(|a| a.trunc()),
        "v_ceil_f16" => lane!(|a| a.ceil()),
        "v_floor_f16" => lane!(|a| a.floor()),
        "v_rndne_f16" => lane!(|a| a.round_ties_even()),
        "v_fract_f16" => lane!(|a| fract(a)),
        "v_frexp_mant_f16" => lane!(|a| frexp_of(a).0),
        #[expect(clippy::cast_sign_loss, reason = "the bits of a 16-bit integer")]
        "v_frexp_exp_i16_f16" => |m, x| (frexp_of(read(m, x[0])).1 & 0xFFFF) as u64,
        _ => return None,
    })
}
