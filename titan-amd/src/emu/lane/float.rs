//! `f32` and `f64` arithmetic: rounded to nearest even, exact to the bit.
//!
//! Subnormal inputs and results are flushed as `MODE` says. Minimum and maximum follow the manual's tables for NaN and
//! signed zeros.

use super::{CompareFn, LaneFn, Mode, denormals};
use titan_core::num::fma;

pub(crate) const fn f32_of(bits: u64) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is the number")]
    f32::from_bits(bits as u32)
}

pub(crate) const fn f64_of(bits: u64) -> f64 {
    f64::from_bits(bits)
}

pub(crate) const fn of_f32(x: f32) -> u64 {
    x.to_bits() as u64
}

/// The value of an input, flushed if the mode requires it.
pub(crate) fn in32(m: Mode, bits: u64) -> f32 {
    let x = f32_of(bits);
    if x.is_subnormal() && !denormals(m, 32).inputs { 0_f32.copysign(x) } else { x }
}

/// The bits of a result, flushed if the mode requires it.
pub(crate) fn out32(m: Mode, x: f32) -> u64 {
    of_f32(if x.is_subnormal() && !denormals(m, 32).results { 0_f32.copysign(x) } else { x })
}

pub(crate) fn in64(m: Mode, bits: u64) -> f64 {
    let x = f64_of(bits);
    if x.is_subnormal() && !denormals(m, 64).inputs { 0_f64.copysign(x) } else { x }
}

pub(crate) fn out64(m: Mode, x: f64) -> u64 {
    if x.is_subnormal() && !denormals(m, 64).results { 0_f64.copysign(x) } else { x }.to_bits()
}

/// The smaller of two: ISA §12.7, `V_MIN_F32`; `less(a, b)` compares numbers that are not NaN.
macro_rules! extremes {
    ($min:ident, $max:ident, $float:ty, $bits:ty, $quiet:expr) => {
        pub(crate) fn $min(m: Mode, a: $float, b: $float) -> $float {
            signalling!($float, $bits, $quiet, m, a, b);
            if a.is_nan() {
                return b;
            }
            if b.is_nan() {
                return a;
            }
            if a == 0.0 && b == 0.0 {
                return if a.is_sign_negative() { a } else { b };
            }
            if a < b { a } else { b }
        }

        pub(crate) fn $max(m: Mode, a: $float, b: $float) -> $float {
            signalling!($float, $bits, $quiet, m, a, b);
            if a.is_nan() {
                return b;
            }
            if b.is_nan() {
                return a;
            }
            if a == 0.0 && b == 0.0 {
                return if a.is_sign_negative() { b } else { a };
            }
            if a > b { a } else { b }
        }
    };
}

/// In IEEE mode a signalling NaN is returned as a quiet one.
macro_rules! signalling {
    ($float:ty, $bits:ty, $quiet:expr, $m:ident, $a:ident, $b:ident) => {
        for x in [$a, $b] {
            if $m.ieee && x.is_nan() && x.to_bits() & $quiet == 0 {
                return <$float>::from_bits(x.to_bits() | $quiet);
            }
        }
    };
}

extremes!(min32, max32, f32, u32, 1_u32 << 22);
extremes!(min64, max64, f64, u64, 1_u64 << 51);

/// The median, by the manual's formula over maxima.
pub(crate) fn med32(m: Mode, [a, b, c]: [f32; 3]) -> f32 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return min32(m, min32(m, a, b), c);
    }
    let most = max32(m, max32(m, a, b), c);
    if most == a {
        max32(m, b, c)
    } else if most == b {
        max32(m, a, c)
    } else {
        max32(m, a, b)
    }
}

/// A product with a power of two, rounded once.
pub(crate) fn ldexp64(x: f64, n: i32) -> f64 {
    let (mantissa, exponent) = parts64(x);
    compose64(mantissa, exponent.saturating_add(n), x.is_sign_negative(), x)
}

/// The significand in 1/2..1 and the exponent; for values that are not finite, the value itself and 0.
pub(crate) fn frexp_of(x: f64) -> (f64, i32) {
    (frexp_mant64(x), frexp_exp64(x))
}

/// The significand and the exponent: the magnitude is `mantissa * 2^exponent`.
fn parts64(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let e = (bits >> 52 & 0x7FF) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if e == 0 { (fraction, -1074) } else { (fraction | 1 << 52, e - 1075) }
}

fn compose64(mantissa: u64, exponent: i32, negative: bool, x: f64) -> f64 {
    if !x.is_finite() || mantissa == 0 {
        return x;
    }
    let width = 64 - mantissa.leading_zeros().cast_signed();
    let top = exponent + width;
    let magnitude = if top > 1024 {
        f64::INFINITY
    } else {
        // The number of lowest bits that are below the format's last place.
        let shift = (-1074 - exponent).max(0);
        if shift == 0 {
            #[expect(clippy::cast_precision_loss, reason = "at most 53 bits")]
            let m = mantissa as f64;
            scale_exact(m, exponent)
        } else if shift > 60 {
            0.0
        } else {
            let (kept, rest, half) = (mantissa >> shift, mantissa & ((1 << shift) - 1), 1_u64 << (shift - 1));
            let up = rest > half || (rest == half && kept & 1 == 1);
            f64::from_bits(kept + u64::from(up))
        }
    };
    if negative { -magnitude } else { magnitude }
}

/// A product with a power of two, which is exact.
fn scale_exact(m: f64, mut n: i32) -> f64 {
    let mut m = m;
    while n > 1000 {
        m *= 2_f64.powi(1000);
        n -= 1000;
    }
    while n < -1000 {
        m *= 2_f64.powi(-1000);
        n += 1000;
    }
    m * 2_f64.powi(n)
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the purpose; the product is exact in f64")]
fn ldexp32(x: f32, n: i32) -> f32 {
    // With `n` clamped, the product of an f32 and 2^n is exact in f64, so that only the conversion rounds.
    (f64::from(x) * 2_f64.powi(n.clamp(-400, 400))) as f32
}

/// The distance to the integer below, less than 1.
fn fract32(x: f32) -> f32 {
    if x.is_infinite() { f32::NAN } else { (x - x.floor()).min(f32::from_bits(0x3F7F_FFFF)) }
}

fn fract64(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { (x - x.floor()).min(f64::from_bits(0x3FEF_FFFF_FFFF_FFFF)) }
}

fn frexp_exp32(x: f32) -> i32 {
    if x == 0.0 || !x.is_finite() { 0 } else { exponent64(f64::from(x)) + 1 }
}

fn frexp_exp64(x: f64) -> i32 {
    if x == 0.0 || !x.is_finite() { 0 } else { exponent64(x) + 1 }
}

/// The power of two of the highest bit.
pub(crate) fn exponent64(x: f64) -> i32 {
    let (mantissa, exponent) = parts64(x);
    exponent + 63 - mantissa.leading_zeros().cast_signed()
}

fn frexp_mant64(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() { x } else { ldexp64(x, -frexp_exp64(x)) }
}

#[expect(clippy::cast_possible_truncation, reason = "the significand of an f32")]
fn frexp_mant32(x: f32) -> f32 {
    frexp_mant64(f64::from(x)) as f32
}

fn signed(bits: u64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "a register")]
    (bits as u32).cast_signed()
}

/// Zero times anything is zero: ISA §12.11, `V_MUL_LEGACY_F32`.
fn legacy(a: f32, b: f32) -> f32 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

macro_rules! lane32 {
    (|$m:ident, $a:ident| $e:expr) => {
        |$m, x| {
            let $a = in32($m, x[0]);
            out32($m, $e)
        }
    };
    (|$m:ident, $a:ident, $b:ident| $e:expr) => {
        |$m, x| {
            let ($a, $b) = (in32($m, x[0]), in32($m, x[1]));
            out32($m, $e)
        }
    };
    (|$m:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        |$m, x| {
            let ($a, $b, $c) = (in32($m, x[0]), in32($m, x[1]), in32($m, x[2]));
            out32($m, $e)
        }
    };
}

macro_rules! lane64 {
    (|$m:ident, $a:ident| $e:expr) => {
        |$m, x| {
            let $a = in64($m, x[0]);
            out64($m, $e)
        }
    };
    (|$m:ident, $a:ident, $b:ident| $e:expr) => {
        |$m, x| {
            let ($a, $b) = (in64($m, x[0]), in64($m, x[1]));
            out64($m, $e)
        }
    };
    (|$m:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        |$m, x| {
            let ($a, $b, $c) = (in64($m, x[0]), in64($m, x[1]), in64($m, x[2]));
            out64($m, $e)
        }
    };
}

/// The function of a mnemonic.
pub(crate) fn function(name: &str) -> Option<LaneFn> {
    Some(match name {
        "v_add_f32" | "v_pk_add_f32" => lane32!(|m, a, b| a + b),
        "v_sub_f32" => lane32!(|m, a, b| a - b),
        "v_subrev_f32" => lane32!(|m, a, b| b - a),
        "v_mul_f32" | "v_pk_mul_f32" => lane32!(|m, a, b| a * b),
        "v_mul_legacy_f32" => lane32!(|m, a, b| legacy(a, b)),
        "v_min_f32" => lane32!(|m, a, b| min32(m, a, b)),
        "v_max_f32" => lane32!(|m, a, b| max32(m, a, b)),
        "v_min3_f32" => lane32!(|m, a, b, c| min32(m, min32(m, a, b), c)),
        "v_max3_f32" => lane32!(|m, a, b, c| max32(m, max32(m, a, b), c)),
        "v_med3_f32" => lane32!(|m, a, b, c| med32(m, [a, b, c])),
        // Their third source is the destination's old value or, for instructions with a literal, the last operand in the text.
        "v_fma_f32" | "v_fmac_f32" | "v_fmaak_f32" | "v_pk_fma_f32" => lane32!(|m, a, b, c| fma(a, b, c)),
        "v_fmamk_f32" => lane32!(|m, a, k, b| fma(a, k, b)),
        "v_fract_f32" => lane32!(|m, a| fract32(a)),
        "v_trunc_f32" => lane32!(|m, a| a.trunc()),
        "v_ceil_f32" => lane32!(|m, a| a.ceil()),
        "v_floor_f32" => lane32!(|m, a| a.floor()),
        "v_rndne_f32" => lane32!(|m, a| a.round_ties_even()),
        "v_frexp_mant_f32" => lane32!(|m, a| frexp_mant32(a)),
        "v_frexp_exp_i32_f32" => |m, x| u64::from(frexp_exp32(in32(m, x[0])).cast_unsigned()),
        "v_ldexp_f32" => |m, x| out32(m, ldexp32(in32(m, x[0]), signed(x[1]))),
        "v_add_f64" => lane64!(|m, a, b| a + b),
        "v_mul_f64" => lane64!(|m, a, b| a * b),
        "v_min_f64" => lane64!(|m, a, b| min64(m, a, b)),
        "v_max_f64" => lane64!(|m, a, b| max64(m, a, b)),
        "v_fma_f64" | "v_fmac_f64" => lane64!(|m, a, b, c| fma(a, b, c)),
        "v_fract_f64" => lane64!(|m, a| fract64(a)),
        "v_trunc_f64" => lane64!(|m, a| a.trunc()),
        "v_ceil_f64" => lane64!(|m, a| a.ceil()),
        "v_floor_f64" => lane64!(|m, a| a.floor()),
        "v_rndne_f64" => lane64!(|m, a| a.round_ties_even()),
        "v_frexp_mant_f64" => lane64!(|m, a| frexp_mant64(a)),
        "v_frexp_exp_i32_f64" => |m, x| u64::from(frexp_exp64(in64(m, x[0])).cast_unsigned()),
        "v_ldexp_f64" => |m, x| out64(m, ldexp64(in64(m, x[0]), signed(x[1]))),
        "v_dot2c_f32_f16" | "v_dot2_f32_f16" => |m, x| {
            // ISA §12.10: the products are added one after the other, in f32; §6.4: subnormal inputs and results are flushed, whatever
            // `MODE` says.
            let m = Mode { denorm_32: 0, denorm_16_64: 0, ..m };
            #[expect(clippy::cast_possible_truncation, reason = "every f16 is an f32")]
            let h = |bits: u64, i: u32| super::half::read(m, bits >> (16 * i)) as f32;
            let sum = fma(h(x[0], 0), h(x[1], 0), in32(m, x[2]));
            out32(m, fma(h(x[0], 1), h(x[1], 1), sum))
        },
        _ => return None,
    })
}

/// The comparison of floats with this name, the middle of the mnemonic: ISA §12.9.
pub(crate) fn compare(test: &str, bits: u32) -> Option<CompareFn> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    fn order<T: PartialOrd>(a: T, b: T) -> Option<std::cmp::Ordering> {
        a.partial_cmp(&b)
    }
    macro_rules! tests {
        ($read:expr) => {
            match test {
                "f" => |_, _| false,
                "lt" => |m, x| $read(m, x[0]) < $read(m, x[1]),
                "eq" => |m, x| $read(m, x[0]) == $read(m, x[1]),
                "le" => |m, x| $read(m, x[0]) <= $read(m, x[1]),
                "gt" => |m, x| $read(m, x[0]) > $read(m, x[1]),
                "lg" => |m, x| $read(m, x[0]) < $read(m, x[1]) || $read(m, x[0]) > $read(m, x[1]),
                "ge" => |m, x| $read(m, x[0]) >= $read(m, x[1]),
                "o" => |m, x| !$read(m, x[0]).is_nan() && !$read(m, x[1]).is_nan(),
                "u" => |m, x| $read(m, x[0]).is_nan() || $read(m, x[1]).is_nan(),
                "nge" => |m, x| !matches!(order($read(m, x[0]), $read(m, x[1])), Some(Greater | Equal)),
                "nlg" => |m, x| !($read(m, x[0]) < $read(m, x[1]) || $read(m, x[0]) > $read(m, x[1])),
                "ngt" => |m, x| order($read(m, x[0]), $read(m, x[1])) != Some(Greater),
                "nle" => |m, x| !matches!(order($read(m, x[0]), $read(m, x[1])), Some(Less | Equal)),
                "neq" => |m, x| !($read(m, x[0]) == $read(m, x[1])),
                "nlt" => |m, x| order($read(m, x[0]), $read(m, x[1])) != Some(Less),
                "tru" => |_, _| true,
                _ => return None,
            }
        };
    }
    let function: CompareFn = match bits {
        16 => tests!(super::half::read),
        32 => tests!(in32),
        _ => tests!(in64),
    };
    Some(function)
}

/// Tests the class of a float against a mask of ten classes, the second source: ISA §12.9, `V_CMP_CLASS_F32`.
pub(crate) fn class(bits: u32) -> CompareFn {
    const fn index(nan: bool, quiet: bool, kind: (bool, bool, bool), negative: bool) -> u32 {
        let (infinite, zero, subnormal) = kind;
        match (nan, infinite, zero, subnormal) {
            (true, ..) => quiet as u32,
            (_, true, ..) => {
                if negative {
                    2
                } else {
                    9
                }
            }
            (_, _, true, _) => {
                if negative {
                    5
                } else {
                    6
                }
            }
            (.., true) => {
                if negative {
                    4
                } else {
                    7
                }
            }
            _ => {
                if negative {
                    3
                } else {
                    8
                }
            }
        }
    }
    fn of(bits: u64, sign: u32, fraction: u32) -> u32 {
        let magnitude = bits & ((1 << sign) - 1);
        let top = ((1_u64 << (sign - fraction)) - 1) << fraction;
        let quiet = bits >> (fraction - 1) & 1 == 1;
        let kind = (magnitude == top, magnitude == 0, magnitude >> fraction == 0);
        index(magnitude > top, quiet, kind, bits >> sign & 1 == 1)
    }
    match bits {
        16 => |_, x| x[1] >> of(x[0], 15, 10) & 1 == 1,
        32 => |_, x| x[1] >> of(x[0], 31, 23) & 1 == 1,
        _ => |_, x| x[1] >> of(x[0], 63, 52) & 1 == 1,
    }
}

/// Negates a float of this number of bits, or takes its absolute value, by changing the sign bit.
pub(crate) const fn modify(x: u64, bits: u32, neg: bool, abs: bool) -> u64 {
    let sign = 1 << (bits - 1);
    let x = if abs { x & !sign } else { x };
    if neg { x ^ sign } else { x }
}

/// A result clamped to 0..1 and multiplied, if `MODE` allows that: ISA §6.2.2.
pub(crate) fn output(m: Mode, x: u64, bits: u32, clamp: bool, omod: u32) -> u64 {
    let factor = if denormals(m, bits).results || m.ieee { 1.0 } else { [1.0, 2.0, 4.0, 0.5][omod as usize & 3] };
    let adjust = |v: f64| {
        let v = if factor == 1.0 { v } else { v * factor };
        match clamp {
            false => v,
            true if v.is_nan() => {
                if m.dx10_clamp {
                    0.0
                } else {
                    v
                }
            }
            true => v.clamp(0.0, 1.0),
        }
    };
    if !clamp && factor == 1.0 {
        return x;
    }
    match bits {
        16 => super::half::write(m, adjust(super::half::to_f64(x))),
        #[expect(clippy::cast_possible_truncation, reason = "a product by a power of two, rounded to f32")]
        32 => out32(m, adjust(f64::from(f32_of(x))) as f32),
        _ => out64(m, adjust(f64_of(x))),
    }
}
