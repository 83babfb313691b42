//! What elementwise operations mean for one element, written for clarity, apart from the executor: elements are bits.
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bits are cut to their type on purpose")]

use crate::common::{bits_of, of_bits};
use titan_core::ir::fold::wrap;
use titan_core::ir::{BinOp, Elem, Pred, UnOp};
use titan_core::num::{Format, nibble_to_i8};

/// The integer that bits are.
pub(crate) fn int(e: Elem, bits: i64) -> i128 {
    if e == Elem::U64 { i128::from(bits as u64) } else { i128::from(bits) }
}

/// The low bits of an integer.
pub(crate) fn cut(e: Elem, v: i128) -> i64 {
    wrap(e, v as i64)
}

/// Bits of the float nearest to `v · 2^exp`, rounded once.
fn nearest(e: Elem, v: i128, exp: i32) -> i64 {
    match e {
        Elem::F32 => bits_of(e, (v as f32 as f64) * 2f64.powi(exp)),
        Elem::F64 => bits_of(e, v as f64 * 2f64.powi(exp)),
        _ => {
            // To odd in f64, then once.
            let f = v as f64;
            let exact = f as i128 == v;
            let mut bits = f.to_bits();
            if !exact && bits & 1 == 0 {
                let below = (f as i128).abs() > v.abs();
                bits = if below { bits - 1 } else { bits + 1 };
            }
            bits_of(e, f64::from_bits(bits) * 2f64.powi(exp))
        }
    }
}

/// What is expected of a float result.
pub(crate) enum Want {
    /// These bits; any NaN for NaN.
    Bits(i64),
    /// This value, within so many units in the last place of `f32` (or `f64`), and one rounding.
    Near(f64, f64, f64),
}

pub(crate) fn unary(op: UnOp, e: Elem, bits: i64) -> Want {
    let x = of_bits(e, bits);
    if e.is_int() || e == Elem::Bool {
        let v = int(e, bits);
        return Want::Bits(match op {
            UnOp::Neg => cut(e, -v),
            UnOp::Abs => cut(e, v.abs()),
            UnOp::Not if e == Elem::Bool => 1 - bits,
            UnOp::CountOnes => (0..e.bits()).map(|bit| bits >> bit & 1).sum(),
            UnOp::LeadingZeros => (0..e.bits()).rev().take_while(|bit| bits >> bit & 1 == 0).count() as i64,
            _ => cut(e, !v),
        });
    }
    let exact = |v: f64| Want::Bits(bits_of(e, v));
    let near_one = if (0.5..2.0).contains(&x) { 2f64.powi(-22) } else { 0.0 };
    let far = if x.abs() > 65536.0 { 2f64.powi(-22) } else { 0.0 };
    match op {
        UnOp::Neg => exact(-x),
        UnOp::Abs => exact(x.abs()),
        UnOp::Sqrt => exact(x.sqrt()),
        UnOp::Recip => exact(1.0 / x),
        UnOp::Floor => exact(x.floor()),
        UnOp::Ceil => exact(x.ceil()),
        UnOp::Trunc => exact(x.trunc()),
        UnOp::Round => exact(x.round()),
        UnOp::RoundTiesEven => exact(x.round_ties_even()),
        UnOp::IsNan => Want::Bits(x.is_nan().into()),
        UnOp::Not | UnOp::CountOnes | UnOp::LeadingZeros => Want::Bits(0),
        UnOp::Rsqrt => Want::Near(1.0 / x.sqrt(), 2.0, 0.0),
        UnOp::Exp => Want::Near(libm::exp(x), 2.0, 0.0),
        UnOp::Exp2 => Want::Near(libm::exp2(x), 2.0, 0.0),
        UnOp::Ln => Want::Near(libm::log(x), 2.0, near_one),
        UnOp::Log2 => Want::Near(libm::log2(x), 2.0, near_one),
        UnOp::Sin => Want::Near(libm::sin(x), 2.0, far),
        UnOp::Cos => Want::Near(libm::cos(x), 2.0, far),
        UnOp::Tanh => Want::Near(libm::tanh(x), 4.0, 0.0),
        UnOp::Sigmoid => Want::Near(
            if x < 0.0 { libm::exp(x) / (1.0 + libm::exp(x)) } else { 1.0 / (1.0 + libm::exp(-x)) },
            4.0,
            0.0,
        ),
        UnOp::Erf => Want::Near(libm::erf(x), 4.0, 0.0),
    }
}

fn ulp(v: f64, fraction: i32, least: i32) -> f64 {
    let exponent = if v == 0.0 { least } else { libm::ilogb(v).max(least) };
    libm::scalbn(1.0, exponent - fraction)
}

impl Want {
    pub(crate) fn check(&self, e: Elem, got: i64, what: &str) {
        let value = of_bits(e, got);
        match self {
            Want::Bits(want) => {
                let both_nan = e.is_float() && of_bits(e, *want).is_nan() && value.is_nan();
                assert!(
                    got == *want || both_nan,
                    "{what} = {value:e} ({got:#x}), not {:e} ({want:#x})",
                    of_bits(e, *want)
                );
            }
            Want::Near(want, ulps, absolute) => {
                let nearest = of_bits(e, bits_of(e, *want));
                if want.is_nan() || nearest.is_infinite() || *want == 0.0 {
                    let same = value == nearest || value.is_nan() && want.is_nan();
                    let edge = nearest.is_infinite() && want.is_finite() && value.abs() >= max_finite(e);
                    assert!(same || edge, "{what} = {value:e}, not {want:e}");
                    return;
                }
                let (wide, own) = match e {
                    Elem::F64 => (ulp(*want, 52, -1022) * 2.0, 0.0),
                    Elem::F32 => (ulp(*want, 23, -126), 0.0),
                    Elem::F16 => (ulp(*want, 23, -126), ulp(*want, 10, -14) * 0.5001),
                    _ => (ulp(*want, 23, -126), ulp(*want, 7, -126) * 0.5001),
                };
                let allowed = (ulps * wide).max(*absolute) + own;
                assert!(
                    (value - want).abs() <= allowed,
                    "{what} = {value:e}, not {want:e}: {} too far",
                    (value - want).abs() / allowed
                );
            }
        }
    }
}

fn max_finite(e: Elem) -> f64 {
    match e {
        Elem::F64 => f64::MAX,
        Elem::F16 => 65504.0,
        Elem::Bf16 => 3.38e38,
        _ => f32::MAX.into(),
    }
}

/// A power, by the platform's function and not by that of the executor.
pub(crate) fn power(e: Elem, a: i64, b: i64) -> Want {
    Want::Near(of_bits(e, a).powf(of_bits(e, b)), 1.0, 0.0)
}

pub(crate) fn binary(op: BinOp, e: Elem, a: i64, b: i64) -> i64 {
    if e.is_float() {
        let (x, y) = (of_bits(e, a), of_bits(e, b));
        return match op {
            BinOp::Add => bits_of(e, x + y),
            BinOp::Sub => bits_of(e, x - y),
            BinOp::Mul => bits_of(e, x * y),
            BinOp::Div => bits_of(e, x / y),
            BinOp::Rem => bits_of(e, x % y),
            BinOp::Min => {
                if x.is_nan() || !y.is_nan() && less(y, x) {
                    b
                } else {
                    a
                }
            }
            _ => {
                if x.is_nan() || !y.is_nan() && less(x, y) {
                    b
                } else {
                    a
                }
            }
        };
    }
    let (x, y) = (int(e, a), int(e, b));
    let width = i128::from(e.bits());
    let amount = if y < 0 { width } else { y };
    let value = match op {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        BinOp::Mul => x.wrapping_mul(y),
        BinOp::Div => {
            if y == 0 {
                0
            } else {
                x / y
            }
        }
        BinOp::Rem => {
            if y == 0 {
                x
            } else {
                x % y
            }
        }
        BinOp::And => x & y,
        BinOp::Or => x | y,
        BinOp::Xor => x ^ y,
        BinOp::Shl => {
            if amount >= width {
                0
            } else {
                x << amount
            }
        }
        BinOp::Shr => {
            if amount >= width {
                if x < 0 { -1 } else { 0 }
            } else {
                x >> amount
            }
        }
        BinOp::Min => x.min(y),
        BinOp::Max => x.max(y),
        BinOp::MulHi => x.wrapping_mul(y) >> e.bits(),
        BinOp::Powf => panic!("not of integers"),
    };
    if e == Elem::Bool { (value & 1) as i64 } else { cut(e, value) }
}

/// -0 is less than +0.
fn less(x: f64, y: f64) -> bool {
    x < y || x == y && x.is_sign_negative() && !y.is_sign_negative()
}

pub(crate) fn compare(pred: Pred, e: Elem, a: i64, b: i64) -> i64 {
    let holds = |less: bool, equal: bool, greater: bool| match pred {
        Pred::Eq => equal,
        Pred::Ne => !equal,
        Pred::Lt => less,
        Pred::Le => less || equal,
        Pred::Gt => greater,
        Pred::Ge => greater || equal,
    };
    if e.is_float() {
        let (x, y) = (of_bits(e, a), of_bits(e, b));
        return holds(x < y, x == y, x > y).into();
    }
    let (x, y) = (int(e, a), int(e, b));
    holds(x < y, x == y, x > y).into()
}

/// `a · b + c` of finite numbers that are not too far apart, exactly and then rounded once.
pub(crate) fn mul_add(e: Elem, a: i64, b: i64, c: i64) -> i64 {
    if e == Elem::F64 {
        return bits_of(e, titan_core::num::fma(of_bits(e, a), of_bits(e, b), of_bits(e, c)));
    }
    let fixed = |x: f64, exp: i32| {
        let scaled = x * 2f64.powi(exp);
        assert!(scaled == scaled.trunc() && scaled.abs() < 2f64.powi(120), "{x} does not fit the test");
        scaled as i128
    };
    let sum = fixed(of_bits(e, a), 45) * fixed(of_bits(e, b), 45) + fixed(of_bits(e, c), 90);
    nearest(e, sum, -90)
}

pub(crate) fn cast(from: Elem, to: Elem, bits: i64) -> i64 {
    if from.is_float() {
        let x = of_bits(from, bits);
        return if to == Elem::Bool {
            (x != 0.0).into()
        } else if to.is_float() {
            bits_of(to, x)
        } else {
            let low = if to.is_signed_int() { -(1i128 << (to.bits() - 1)) } else { 0 };
            let high = low + (1i128 << to.bits()) - 1;
            cut(to, (x as i128).clamp(low, high))
        };
    }
    let v = int(from, bits);
    match to {
        Elem::Bool => (v != 0).into(),
        Elem::F64 => bits_of(to, v as f64),
        Elem::F32 => i64::from((v as f32).to_bits()),
        Elem::Tf32 => i64::from(Format::TF32.from_int(v < 0, v.unsigned_abs() as u64) << 13),
        Elem::F16 => Format::F16.from_int(v < 0, v.unsigned_abs() as u64).into(),
        Elem::Bf16 => Format::BF16.from_int(v < 0, v.unsigned_abs() as u64).into(),
        Elem::E4m3 => Format::E4M3.from_int(v < 0, v.unsigned_abs() as u64).into(),
        Elem::E5m2 => Format::E5M2.from_int(v < 0, v.unsigned_abs() as u64).into(),
        _ => cut(to, v),
    }
}

pub(crate) fn bitcast(to: Elem, bits: i64) -> i64 {
    match to {
        Elem::I4 => nibble_to_i8(bits as u8 & 15).into(),
        _ if to.is_int() => wrap(to, bits),
        _ if to.bits() == 64 => bits,
        _ => bits & ((1i64 << to.bits()) - 1),
    }
}
