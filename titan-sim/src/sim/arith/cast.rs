//! Conversions of values, and reinterpretations of their bits.

use super::bytes;
use super::float::round;
use crate::sim::value::{Cells, Num};
use titan_core::ir::Elem;
use titan_core::ir::fold::wrap;
use titan_core::num::Format;

/// Converts a value to another type.
pub(in crate::sim) fn cast(from: Elem, to: Elem, x: Num) -> Num {
    match x {
        Num::Float(x) if to.is_float() => Num::Float(round(to, x)),
        Num::Float(x) if to == Elem::Bool => Num::Int((x != 0.0).into()),
        Num::Float(x) => Num::Int(saturate(to, x)),
        Num::Int(v) if to == Elem::Bool => Num::Int((v != 0).into()),
        Num::Int(v) if to.is_float() => Num::Float(float(from, to, v)),
        Num::Int(v) => Num::Int(wrap(to, v)),
    }
}

/// Truncates toward zero and saturates to the range of the type; NaN becomes 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, which is the meaning")]
fn saturate(to: Elem, x: f64) -> i64 {
    if to == Elem::U64 {
        return (x as u64).cast_signed();
    }
    let bits = to.bits();
    let (lo, hi) =
        if to.is_signed_int() { (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)) } else { (0, (1 << bits) - 1) };
    (x as i64).clamp(lo, hi)
}

/// The nearest value of the floating-point type, rounded once.
#[expect(clippy::cast_precision_loss, reason = "rounding is what is wanted")]
fn float(from: Elem, to: Elem, v: i64) -> f64 {
    let negative = from.is_signed_int() && v < 0;
    let magnitude = if negative { v.unsigned_abs() } else { v.cast_unsigned() };
    let through = |format: Format| format.to_f64(format.from_int(negative, magnitude));
    let signed = |x: f64| if negative { -x } else { x };
    match to {
        Elem::F32 => signed(f64::from(magnitude as f32)),
        Elem::F16 => through(Format::F16),
        Elem::Bf16 => through(Format::BF16),
        Elem::Tf32 => through(Format::TF32),
        Elem::E4m3 => through(Format::E4M3),
        Elem::E5m2 => through(Format::E5M2),
        Elem::F64
        | Elem::I64
        | Elem::I32
        | Elem::I16
        | Elem::I8
        | Elem::I4
        | Elem::U64
        | Elem::U32
        | Elem::U16
        | Elem::U8
        | Elem::U4
        | Elem::Bool => signed(magnitude as f64),
    }
}

/// Reinterprets the bits of elements as another type of the same width.
pub(in crate::sim) fn bitcast(from: Elem, to: Elem, cells: &Cells) -> Cells {
    bytes::decode(to, &bytes::encode(from, cells))
}
