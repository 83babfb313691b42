//! Values of every element type, as numbers: read from bytes, written to bytes, rounded. Nothing here is TITAN's.

use crate::bounds::Bound;
use titan_core::ir::Elem;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Num {
    Int(i128),
    Float(f64),
}

impl Num {
    pub(crate) fn float(self) -> f64 {
        match self {
            Num::Int(x) => x as f64,
            Num::Float(x) => x,
        }
    }

    pub(crate) fn int(self) -> i128 {
        match self {
            Num::Int(x) => x,
            Num::Float(x) => panic!("{x} is not an integer"),
        }
    }
}

/// The fraction bits, and the exponent of the least normal number, of a float type.
fn format(elem: Elem) -> (i32, i32) {
    match elem {
        Elem::F64 => (52, -1022),
        Elem::F32 => (23, -126),
        Elem::Tf32 => (10, -126),
        Elem::F16 => (10, -14),
        Elem::Bf16 => (7, -126),
        Elem::E4m3 => (3, -6),
        Elem::E5m2 => (2, -14),
        other => panic!("{other} is not a float"),
    }
}

pub(crate) fn is_float(elem: Elem) -> bool {
    matches!(elem, Elem::F64 | Elem::F32 | Elem::Tf32 | Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2)
}

/// The greatest finite value.
pub(crate) fn greatest(elem: Elem) -> f64 {
    match elem {
        Elem::F64 => f64::MAX,
        Elem::F32 => f32::MAX.into(),
        Elem::Tf32 => (2.0 - 2f64.powi(-10)) * 2f64.powi(127),
        Elem::F16 => 65504.0,
        Elem::Bf16 => half::bf16::MAX.to_f64(),
        Elem::E4m3 => 448.0,
        Elem::E5m2 => 57344.0,
        other => panic!("{other} is not a float"),
    }
}

/// The unit in the last place of a type at a value.
pub(crate) fn ulp(elem: Elem, x: f64) -> f64 {
    let (fraction, least) = format(elem);
    let x = x.abs();
    let exponent = if x < f64::MIN_POSITIVE { -1022 } else { (x.to_bits() >> 52) as i32 - 1023 };
    power(exponent.max(least) - fraction)
}

/// A power of 2 that `f64` can represent; `powi` is wrong for the smallest ones.
fn power(exponent: i32) -> f64 {
    match exponent {
        ..-1022 => f64::from_bits(1 << (exponent.max(-1074) + 1074)),
        _ => f64::from_bits(((exponent + 1023) as u64) << 52),
    }
}

fn small(bits: u64, fraction: i32, exponents: u32, bias: i32) -> f64 {
    let sign = if bits >> (fraction as u32 + exponents) & 1 == 1 { -1.0 } else { 1.0 };
    let exponent = (bits >> fraction & ((1 << exponents) - 1)) as i32;
    let rest = (bits & ((1 << fraction) - 1)) as f64 / 2f64.powi(fraction);
    sign * if exponent == 0 { rest * 2f64.powi(1 - bias) } else { (1.0 + rest) * 2f64.powi(exponent - bias) }
}

/// The value of an element's bits.
pub(crate) fn decode(elem: Elem, bits: u64) -> Num {
    let signed = |width: u32| Num::Int(((bits << (64 - width)).cast_signed() >> (64 - width)).into());
    match elem {
        Elem::F64 => Num::Float(f64::from_bits(bits)),
        Elem::F32 | Elem::Tf32 => Num::Float(f32::from_bits(bits as u32).into()),
        Elem::F16 => Num::Float(half::f16::from_bits(bits as u16).to_f64()),
        Elem::Bf16 => Num::Float(half::bf16::from_bits(bits as u16).to_f64()),
        Elem::E4m3 if bits & 0x7f == 0x7f => Num::Float(f64::NAN),
        Elem::E4m3 => Num::Float(small(bits, 3, 4, 7)),
        Elem::E5m2 if bits & 0x7f > 0x7c => Num::Float(f64::NAN),
        Elem::E5m2 if bits & 0x7f == 0x7c => {
            Num::Float(if bits & 0x80 == 0 { f64::INFINITY } else { f64::NEG_INFINITY })
        }
        Elem::E5m2 => Num::Float(small(bits, 2, 5, 15)),
        Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8 => signed(elem.bits()),
        Elem::U64 | Elem::U32 | Elem::U16 | Elem::U8 | Elem::Bool => Num::Int(bits.into()),
        Elem::I4 | Elem::U4 => panic!("two of them share a byte"),
    }
}

/// The bits of a value that the type has.
pub(crate) fn encode(elem: Elem, x: Num) -> u64 {
    let mask = if elem.bits() == 64 { u64::MAX } else { (1 << elem.bits()) - 1 };
    match (elem, x) {
        (Elem::F64, x) => x.float().to_bits(),
        (Elem::F32 | Elem::Tf32, x) => (x.float() as f32).to_bits().into(),
        (Elem::F16, x) => half::f16::from_f64(x.float()).to_bits().into(),
        (Elem::Bf16, x) => half::bf16::from_f64(x.float()).to_bits().into(),
        (Elem::E4m3 | Elem::E5m2, x) => {
            let codes = 0..=255u64;
            let same = |c: &u64| decode(elem, *c).float().to_bits() == x.float().to_bits() || decode(elem, *c) == x;
            codes.into_iter().find(same).unwrap_or(0x7f)
        }
        (_, x) => x.int() as u64 & mask,
    }
}

/// An exact value rounded to a type: to nearest, ties to even, `tf32` away from zero; too large is infinite, or the greatest.
pub(crate) fn round(elem: Elem, x: f64) -> f64 {
    if elem == Elem::F64 || x.is_nan() || x == 0.0 {
        return x;
    }
    let saturates = matches!(elem, Elem::E4m3 | Elem::E5m2);
    let limit = greatest(elem);
    if x.is_infinite() {
        return if saturates { limit.copysign(x) } else { x };
    }
    let unit = ulp(elem, x);
    let steps = x / unit;
    let rounded = if elem == Elem::Tf32 { steps.round() } else { steps.round_ties_even() } * unit;
    match rounded.abs() > limit {
        true if saturates => limit.copysign(x),
        true => f64::INFINITY.copysign(x),
        false => rounded,
    }
}

/// What an integer type makes of a number.
pub(crate) fn wrap(elem: Elem, x: i128) -> i128 {
    let bits = elem.bits();
    match elem {
        Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8 => (x << (128 - bits)) >> (128 - bits),
        Elem::U64 | Elem::U32 | Elem::U16 | Elem::U8 => ((x as u128) << (128 - bits) >> (128 - bits)) as i128,
        Elem::Bool => x & 1,
        other => panic!("{other} is not an integer"),
    }
}

/// The least and the greatest value of an integer type.
pub(crate) fn range(elem: Elem) -> (i128, i128) {
    let bits = elem.bits();
    match elem {
        Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    }
}

/// How far a float is from the exact value beyond its one rounding, in last places of what it is computed in; infinite if it
/// is something else altogether, such as the zero of the other sign.
pub(crate) fn excess(elem: Elem, found: f64, exact: f64, bound: Bound) -> f64 {
    if exact.is_nan() || found.is_nan() {
        return if exact.is_nan() && found.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let wide = if elem == Elem::F64 { Elem::F64 } else { Elem::F32 };
    let rounded = round(elem, exact);
    if found == rounded {
        let is_same = bound.any_zero || found.is_sign_negative() == rounded.is_sign_negative();
        return if found != 0.0 || is_same { 0.0 } else { f64::INFINITY };
    }
    let unit = ulp(wide, exact);
    let slack = bound.ulps * unit + bound.absolute;
    if found.is_infinite() || rounded.is_infinite() {
        let near = found.signum() == exact.signum() && exact.abs() + slack >= greatest(elem);
        return if near && slack > 0.0 && (found.is_infinite() || found.abs() == greatest(elem)) {
            0.0
        } else {
            f64::INFINITY
        };
    }
    // A result whose error is below the slack may round to a neighbour.
    let half = if elem == wide && bound.ulps > 0.0 { 0.0 } else { 0.5 * ulp(elem, exact.abs().max(found.abs())) };
    ((found - exact).abs() - bound.absolute - half).max(0.0) / unit
}
