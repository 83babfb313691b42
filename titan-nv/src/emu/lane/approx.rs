//! The approximating f32 functions.
//!
//! Hardware tables are not public; the manual states maximum errors (PTX ISA, the tables under `div`, `rcp`,
//! `sqrt`, `rsqrt`, `sin`, `cos`, `lg2`, `ex2`, `tanh`). Here the result is that of f64, rounded once to f32, so it lies
//! within every stated bound but differs from hardware in the last bits: compare with a tolerance. Special values follow
//! the manual's tables.

use super::float::{in32, out32};
use super::{LaneFn, Mode};
use crate::emu::ty::Ty;

#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the purpose")]
fn of32(m: Mode, a: u64, f: fn(f64) -> f64) -> u64 {
    out32(m, f(f64::from(in32(m, a))) as f32)
}

/// `a * (1 / b)`, with a reciprocal that is flushed to zero for large `b`: `b` in (2^126, 2^128) gives 0, or NaN for an
/// infinite `a`.
fn divide(m: Mode, a: u64, b: u64, _: u64) -> u64 {
    let (a, b) = (in32(m, a), in32(m, b));
    let huge = b.abs() > 2f32.powi(126) && b.is_finite();
    out32(m, if huge { a * (0f32).copysign(b) } else { a / b })
}

/// The function of an opcode and type; `div.full` is exact division here.
pub(crate) fn function(op: &str, ty: Ty) -> Option<LaneFn> {
    if ty == Ty::F64 {
        // The manual: as `rcp.rn` and 1/sqrt, with the lower 32 bits of the significand zero.
        return Some(match op {
            "rcp" => |_, a, _, _| cut64(1.0 / f64::from_bits(a)),
            "rsqrt" => |_, a, _, _| cut64(1.0 / f64::from_bits(a).sqrt()),
            _ => return None,
        });
    }
    if ty != Ty::F32 {
        return super::half::arithmetic(op, ty).filter(|_| matches!(op, "ex2" | "tanh"));
    }
    Some(match op {
        "div" => divide,
        "rcp" => |m, a, _, _| of32(m, a, |x| 1.0 / x),
        "sqrt" => |m, a, _, _| of32(m, a, f64::sqrt),
        "rsqrt" => |m, a, _, _| of32(m, a, |x| 1.0 / x.sqrt()),
        "sin" => |m, a, _, _| of32(m, a, f64::sin),
        "cos" => |m, a, _, _| of32(m, a, f64::cos),
        "lg2" => |m, a, _, _| of32(m, a, f64::log2),
        "ex2" => |m, a, _, _| of32(m, a, f64::exp2),
        "tanh" => |m, a, _, _| of32(m, a, f64::tanh),
        _ => return None,
    })
}

fn cut64(x: f64) -> u64 {
    if x.is_nan() { 0x7FFF_FFFF_FFFF_FFFF } else { x.to_bits() & !0xFFFF_FFFF }
}
