//! f16, bf16 and their pairs.
//!
//! Sums and products are computed in f64 and rounded once; a fused product is made sticky before. NaN results are
//! `0x7fff`.

use super::float::pick;
use super::format::{BF16, F16, Format, sticky, sum_error};
use super::{LaneFn, Mode, Rnd, halves};
use crate::emu::ty::Ty;

/// The value of an operand.
#[inline]
pub(crate) fn in16(m: Mode, format: Format, bits: u64) -> f64 {
    let exponent = ((1 << format.exp) - 1) << format.frac;
    let bits = if m.ftz && bits & exponent == 0 { bits & format.sign() } else { bits };
    format.value(bits)
}

/// The bits of a result.
#[inline]
pub(crate) fn out16(m: Mode, format: Format, x: f64) -> u64 {
    let x = if m.sat { if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) + 0.0 } } else { x };
    let x = if m.relu && x < 0.0 { 0.0 } else { x };
    let x = if m.relu && x == 0.0 { 0.0 } else { x };
    let bits = format.code(x, m.rnd, false);
    let exponent = ((1 << format.exp) - 1) << format.frac;
    if m.ftz && bits & exponent == 0 { bits & format.sign() } else { bits }
}

fn add(m: Mode, f: Format, a: u64, b: u64) -> u64 {
    let (a, b) = (in16(m, f, a), in16(m, f, b));
    let s = a + b;
    out16(m, f, sticky(s, sum_error(a, b, s)))
}

fn mul(m: Mode, f: Format, a: u64, b: u64) -> u64 {
    out16(m, f, in16(m, f, a) * in16(m, f, b))
}

fn fma(m: Mode, f: Format, a: u64, b: u64, c: u64) -> u64 {
    let (p, c) = (in16(m, f, a) * in16(m, f, b), in16(m, f, c));
    let s = p + c;
    out16(m, f, sticky(s, sum_error(p, c, s)))
}

fn minmax(m: Mode, f: Format, a: u64, b: u64, max: bool) -> u64 {
    out16(Mode { sat: false, relu: false, rnd: Rnd::Near, ..m }, f, pick(m, in16(m, f, a), in16(m, f, b), max))
}

/// Applies a change of the sign bit, after flushing; NaN becomes canonical.
fn sign(m: Mode, f: Format, a: u64, change: fn(u64, u64) -> u64) -> u64 {
    let x = in16(m, f, a);
    if x.is_nan() { f.nan } else { change(f.code(x, Rnd::Near, false), f.sign()) }
}

/// Makes a function for each of the four types from a function of a format.
macro_rules! each {
    ($ty:expr, $f:expr) => {{
        const G: fn(Mode, Format, u64, u64, u64) -> u64 = $f;
        match $ty {
            Ty::F16 => |m: Mode, a, b, c| G(m, F16, a, b, c),
            Ty::Bf16 => |m: Mode, a, b, c| G(m, BF16, a, b, c),
            Ty::F16x2 => |m: Mode, a, b, c| halves(|a, b, c| G(m, F16, a, b, c), a, b, c),
            Ty::Bf16x2 => |m: Mode, a, b, c| halves(|a, b, c| G(m, BF16, a, b, c), a, b, c),
            _ => return None,
        }
    }};
}

/// The arithmetic functions of 16-bit floats, by opcode.
pub(crate) fn arithmetic(op: &str, ty: Ty) -> Option<LaneFn> {
    Some(match op {
        "add" => each!(ty, |m, f, a, b, _| add(m, f, a, b)),
        "sub" => each!(ty, |m, f, a, b, _| add(m, f, a, b ^ f.sign())),
        "mul" => each!(ty, |m, f, a, b, _| mul(m, f, a, b)),
        "fma" => each!(ty, fma),
        "min" => each!(ty, |m, f, a, b, _| minmax(m, f, a, b, false)),
        "max" => each!(ty, |m, f, a, b, _| minmax(m, f, a, b, true)),
        "abs" => each!(ty, |m, f, a, _, _| sign(m, f, a, |x, s| x & !s)),
        "neg" => each!(ty, |m, f, a, _, _| sign(m, f, a, |x, s| x ^ s)),
        "ex2" => each!(ty, |m, f, a, _, _| out16(m, f, in16(m, f, a).exp2())),
        "tanh" => each!(ty, |m, f, a, _, _| out16(m, f, in16(m, f, a).tanh())),
        _ => return None,
    })
}
