//! The three steps of a division: scale, multiply and add, fix up.
//!
//! Source: the pseudocode of `V_DIV_SCALE`, `V_DIV_FMAS` and `V_DIV_FIXUP` in ISA §12.11. Quotients that the scaling asks
//! about are compared by their exponents, as `f64` has room for those of `f32`.
//!
//! The manual's pseudocode has three bugs. They show when a compiler's division sequence of these steps, which is correctly rounded on
//! hardware, is executed with the pseudocode. First, `V_DIV_FMAS` undoes the scaling of `V_DIV_SCALE`, which is by 2^64 (2^128 for
//! `f64`) up for large quotients and down for small ones, not by 2^32 (2^64) up. Second, if the steps overflow, so that the quotient
//! of two numbers becomes NaN, `V_DIV_FIXUP` gives infinity. Third, if both the reciprocal of the denominator and the quotient are
//! subnormal, the denominator is scaled down, where the pseudocode would scale it beyond the largest number.
//!
//! | the quotient `n / d` | scaled | the result of the steps |
//! |---|---|---|
//! | near the largest number | d up | smaller by 2^64, scaled back up |
//! | of a subnormal d | both up | right |
//! | subnormal, 1/d subnormal | d down | larger by 2^64, scaled back down and rounded once |
//! | normal, 1/d subnormal | both down | right |
//! | subnormal | n up | larger by 2^64, scaled back down |
//! | of a tiny n | both up | right |
//!
//! (The powers are those of `f32`.) `tests/emu/division.rs` compares the sequences with exact quotients.

use super::float::{exponent64, f32_of, f64_of, in32, in64, ldexp64, of_f32, out32, out64};
use super::half::{fused, read, write};
use super::{LaneFn, Mode};
use titan_core::num::fma;

/// The parameters of a width: bias and bits of the fraction, and powers of two.
struct Width {
    bias: i32,
    /// The difference of exponents at which the quotient is near the largest number.
    large: i32,
    /// The powers of two by which sources are scaled.
    scale: i32,
    /// The exponent field up to which a numerator counts as tiny.
    tiny: i32,
}

const SINGLE: Width = Width { bias: 127, large: 96, scale: 64, tiny: 23 };
const DOUBLE: Width = Width { bias: 1023, large: 768, scale: 128, tiny: 53 };

/// The exponent field: 0 for subnormal numbers.
fn field(x: f64, bias: i32) -> i32 {
    if x == 0.0 { 0 } else { (exponent64(x) + bias).max(0) }
}

/// Whether a quotient of these would be subnormal.
fn subnormal_quotient(n: f64, d: f64, bias: i32) -> bool {
    let q = n / d;
    if bias == SINGLE.bias {
        // Every such quotient of f32 is a normal f64.
        let bits = f64::from(f32::MIN_POSITIVE);
        q != 0.0 && q.abs() < bits && q.abs() >= 2_f64.powi(-150)
    } else {
        q.is_subnormal()
    }
}

/// The scaled source, and whether the result must be scaled back; `s` equals the denominator `d` or the numerator `n`.
fn scale(w: &Width, [s, d, n]: [f64; 3]) -> (f64, bool) {
    let up = || ldexp64(s, w.scale);
    // The reciprocal of an `f32` is never subnormal in `f64`; the manual's condition is about `f32` too.
    let tiny_reciprocal = subnormal_quotient(1.0, d, w.bias);
    if n == 0.0 || d == 0.0 {
        (f64::NAN, false)
    } else if field(n, w.bias) - field(d, w.bias) >= w.large {
        (if s == d { up() } else { s }, true)
    } else if field(d, w.bias) == 0 {
        (up(), false)
    } else if tiny_reciprocal && subnormal_quotient(n, d, w.bias) {
        (if s == d { ldexp64(s, -w.scale) } else { s }, true)
    } else if tiny_reciprocal {
        (ldexp64(s, -w.scale), false)
    } else if subnormal_quotient(n, d, w.bias) {
        (if s == n { up() } else { s }, true)
    } else if field(n, w.bias) <= w.tiny {
        (up(), false)
    } else {
        (s, false)
    }
}

/// `v_div_scale`: the result's bits, and the lane's bit of the mask. Subnormal inputs are never flushed.
#[expect(clippy::cast_possible_truncation, reason = "a power of two times an f32")]
pub(crate) fn div_scale(name: &str, x: [u64; 3]) -> Option<(u64, bool)> {
    match name {
        "v_div_scale_f32" => {
            let (r, flag) = scale(&SINGLE, x.map(|b| f64::from(f32_of(b))));
            Some((of_f32(r as f32), flag))
        }
        "v_div_scale_f64" => {
            let (r, flag) = scale(&DOUBLE, x.map(f64_of));
            Some((r.to_bits(), flag))
        }
        _ => None,
    }
}

/// `v_div_fmas`: a fused multiply-add, times the power of two that undoes the scaling where the mask requires it. The
/// direction follows from the size of the scaled source.
#[expect(clippy::cast_possible_truncation, reason = "rounded once: the sum is rounded to odd before")]
pub(crate) fn div_fmas(name: &str, m: Mode, x: [u64; 3], scaled: bool) -> Option<u64> {
    match name {
        "v_div_fmas_f32" => {
            let [a, b, c] = x.map(f32_of);
            let power = if c.abs() >= 2.0 { 64 } else { -64 };
            let sum = || fused(a.into(), b.into(), c.into()) * 2_f64.powi(power);
            Some(out32(m, if scaled { sum() as f32 } else { fma(a, b, c) }))
        }
        "v_div_fmas_f64" => {
            let [a, b, c] = x.map(f64_of);
            let power = if c.abs() >= 2.0 { 128 } else { -128 };
            Some(out64(m, if scaled { scaled_sum(a, b, c, power) } else { fma(a, b, c) }))
        }
        _ => None,
    }
}

/// `(a * b + c) * 2^power`, rounded once.
fn scaled_sum(a: f64, b: f64, c: f64, power: i32) -> f64 {
    let sum = fma(a, b, c);
    let rounded = ldexp64(sum, power);
    // The first rounding matters only if the second one is at a tie: then the bits that it lost decide.
    let lost = sum - ldexp64(rounded, -power);
    if !rounded.is_finite() || lost.abs() != ldexp64(0.5, -1074 - power) {
        return rounded;
    }
    let product = a * b;
    let total = product + c;
    let back = total - product;
    let error = (total - sum) + ((product - (total - back)) + (c - back) + fma(a, b, -product));
    let beyond = error != 0.0 && (error > 0.0) == (lost > 0.0);
    if beyond { rounded + f64::from_bits(1).copysign(lost) } else { rounded }
}

/// `v_div_fixup`: the quotient, or the result for special operands. `low` is the difference of exponents below which
/// the quotient underflows.
fn fixup([q, d, n]: [f64; 3], bias: i32, low: i32) -> f64 {
    let negative = d.is_sign_negative() != n.is_sign_negative();
    let sign = |v: f64| if negative { -v } else { v };
    if n.is_nan() {
        n
    } else if d.is_nan() {
        d
    } else if (n == 0.0 && d == 0.0) || (n.is_infinite() && d.is_infinite()) {
        -f64::NAN
    } else if d == 0.0 || n.is_infinite() {
        sign(f64::INFINITY)
    } else if d.is_infinite() || n == 0.0 || field(n, bias) - field(d, bias) < low {
        sign(0.0)
    } else if q.is_nan() {
        // The steps overflowed, though both operands are finite: see the start of this module.
        sign(f64::INFINITY)
    } else {
        sign(q.abs())
    }
}

/// The function of a mnemonic.
#[expect(clippy::cast_possible_truncation, reason = "each is an f32, or a corner")]
pub(crate) fn function(name: &str) -> Option<LaneFn> {
    Some(match name {
        "v_div_fixup_f32" => |m, x| {
            let r = fixup(x.map(|b| f64::from(in32(m, b))), 127, -150);
            // The quotient itself keeps its bits.
            out32(m, r as f32)
        },
        "v_div_fixup_f64" => |m, x| out64(m, fixup(x.map(|b| in64(m, b)), 1023, -1075)),
        "v_div_fixup_f16" | "v_div_fixup_legacy_f16" => |m, x| write(m, fixup(x.map(|b| read(m, b)), 15, -40)),
        _ => return None,
    })
}
