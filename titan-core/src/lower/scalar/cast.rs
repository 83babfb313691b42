//! Conversions of values between all element types, and of bits.
//!
//! Every number passes through one of four carrier types, which represent it exactly: a 32-bit integer, a 64-bit integer, an `f32` or an
//! `f64`. From there it is rounded once. If the target type has fewer digits than the carrier, and there is no direct conversion, an `f32`
//! rounded to odd is an intermediate step.

use super::emit::{bits, cvt, fcmp, int_const, is_nan, num};
use super::float::{half_bits, narrow, odd_single, to_odd, widen};
use super::{constant, fp8, int, refuse, register};
use crate::ir::{Const, Elem, Pred};
use crate::lane::{Builder, FloatTy, IntBin, Num, OpKind, Ty, Value};
use crate::target::Target;

/// The carrier type of a number during a conversion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// A 32-bit integer, signed or unsigned.
    Int32(bool),
    /// A 64-bit integer, signed or unsigned.
    Int64(bool),
    Single,
    Double,
}

impl Carrier {
    const fn of(elem: Elem) -> Self {
        match elem {
            Elem::I32 | Elem::I16 | Elem::I8 | Elem::I4 => Carrier::Int32(true),
            Elem::U32 | Elem::U16 | Elem::U8 | Elem::U4 | Elem::Bool => Carrier::Int32(false),
            Elem::I64 => Carrier::Int64(true),
            Elem::U64 => Carrier::Int64(false),
            Elem::F32 | Elem::Tf32 | Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2 => Carrier::Single,
            Elem::F64 => Carrier::Double,
        }
    }

    const fn num(self) -> Num {
        match self {
            Carrier::Int32(true) => Num::S32,
            Carrier::Int32(false) => Num::U32,
            Carrier::Int64(true) => Num::S64,
            Carrier::Int64(false) => Num::U64,
            Carrier::Single => Num::F32,
            Carrier::Double => Num::F64,
        }
    }
}

/// Converts a value. To floats: rounded to nearest even (to `tf32`: ties away from zero; to fp8: saturating). To integers: rounded toward
/// zero and saturating. Between integers: the low bits.
pub fn cast(b: &mut Builder, target: &Target, from: Elem, to: Elem, x: Value) -> Value {
    if from == to {
        return x;
    }
    match (from, to) {
        (Elem::Bool, _) => return from_condition(b, to, x),
        (Elem::E4m3 | Elem::E5m2, Elem::F16) if target.converts(from) => {
            let from = if from == Elem::E4m3 { Num::E4m3 } else { Num::E5m2 };
            return cvt(b, from, Num::F16, x);
        }
        (Elem::E5m2, Elem::F16) => return fp8::e5m2_to_half(b, x),
        _ => {}
    }
    let x = match from {
        Elem::F16 => widen(b, FloatTy::F16, x),
        Elem::Bf16 => widen(b, FloatTy::Bf16, x),
        Elem::E4m3 | Elem::E5m2 => fp8::decode(b, target, from, x),
        Elem::F64
        | Elem::F32
        | Elem::Tf32
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
        | Elem::Bool => x,
    };
    match to {
        Elem::Bool => is_not_zero(b, Carrier::of(from), x),
        Elem::F64 | Elem::F32 | Elem::Tf32 | Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2 => {
            to_float(b, target, (from, to), x)
        }
        Elem::I64
        | Elem::I32
        | Elem::I16
        | Elem::I8
        | Elem::I4
        | Elem::U64
        | Elem::U32
        | Elem::U16
        | Elem::U8
        | Elem::U4 => to_int(b, (from, to), x),
    }
}

fn from_condition(b: &mut Builder, to: Elem, x: Value) -> Value {
    if to.is_float() {
        let (one, zero) = (constant(b, Const::Float(to, 1.0)), constant(b, Const::Float(to, 0.0)));
        return b.select(x, one, zero);
    }
    let word = b.one(OpKind::FromPred, &[x]);
    if to.bits() == 64 { b.one(OpKind::Extend { from: 32, signed: false, to: Ty::B64 }, &[word]) } else { word }
}

fn is_not_zero(b: &mut Builder, from: Carrier, x: Value) -> Value {
    let float = match from {
        Carrier::Single => FloatTy::F32,
        Carrier::Double => FloatTy::F64,
        Carrier::Int32(_) | Carrier::Int64(_) => {
            let zero = b.const_like(x, 0);
            return b.cmp_u(Pred::Ne, x, zero);
        }
    };
    let zero = num(b, float, 0.0);
    fcmp(b, Pred::Ne, float, x, zero)
}

/// Whether every number of the integer type `from`, of at most 32 bits, is a number of `to`.
const fn holds(to: Elem, from: Elem) -> bool {
    let ((least, greatest), (lo, hi)) = (int::range(to), int::range(from));
    least <= lo && hi <= greatest
}

fn to_int(b: &mut Builder, (from, to): (Elem, Elem), x: Value) -> Value {
    let wide = to.bits() == 64;
    let carrier = Carrier::of(from);
    match carrier {
        Carrier::Int32(signed) if wide => b.one(OpKind::Extend { from: 32, signed, to: Ty::B64 }, &[x]),
        Carrier::Int64(_) if wide => x,
        Carrier::Int32(_) if holds(to, from) => x,
        Carrier::Int32(_) => int::wrap(b, to, x),
        Carrier::Int64(_) => {
            let low = b.one(OpKind::Truncate(Ty::B32), &[x]);
            int::wrap(b, to, low)
        }
        Carrier::Single | Carrier::Double => {
            let integer = cvt(b, carrier.num(), Carrier::of(to).num(), x);
            saturate(b, to, integer)
        }
    }
}

/// Saturates a 32-bit number to the range of a narrower type of the same signedness.
fn saturate(b: &mut Builder, to: Elem, x: Value) -> Value {
    if to.bits() >= 32 {
        return x;
    }
    let (least, greatest) = int::range(to);
    if !to.is_signed_int() {
        return int_const(b, IntBin::MinU, x, greatest.cast_unsigned());
    }
    let x = int_const(b, IntBin::MinS, x, greatest.cast_unsigned());
    int_const(b, IntBin::MaxS, x, least.cast_unsigned())
}

fn to_float(b: &mut Builder, target: &Target, (from, to): (Elem, Elem), x: Value) -> Value {
    let carrier = Carrier::of(from);
    if to == Elem::F64 || (to == Elem::F32 && carrier != Carrier::Single) {
        return cvt(b, carrier.num(), if to == Elem::F64 { Num::F64 } else { Num::F32 }, x);
    }
    let single = match carrier {
        Carrier::Single => x,
        Carrier::Double => odd_single(b, x),
        Carrier::Int32(_) if from.bits() <= 16 => cvt(b, carrier.num(), Num::F32, x),
        // The range of these formats ends far below 2²⁰: all greater numbers have the same result.
        Carrier::Int32(_) | Carrier::Int64(_) if matches!(to, Elem::F16 | Elem::E4m3 | Elem::E5m2) => {
            clamped(b, carrier, x)
        }
        Carrier::Int32(_) | Carrier::Int64(_) => odd_single_from_int(b, carrier, x),
    };
    match to {
        Elem::F16 => narrow(b, FloatTy::F16, single),
        Elem::Bf16 => narrow(b, FloatTy::Bf16, single),
        Elem::E4m3 | Elem::E5m2 => fp8::encode(b, target, to, single),
        Elem::Tf32 if matches!(from, Elem::Bf16 | Elem::E4m3 | Elem::E5m2) => single,
        // Widening is exact too, but the payload of a NaN may have lower bits, which are cleared.
        Elem::Tf32 if from == Elem::F16 => int_const(b, IntBin::And, single, 0xffff_e000),
        Elem::Tf32 => round_tf32(b, single),
        Elem::F32 => single,
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
        | Elem::Bool => refuse(b, "a conversion to a float", to),
    }
}

/// An integer as an `f32`: exact up to 2²⁰; all greater magnitudes become 2²⁰.
fn clamped(b: &mut Builder, from: Carrier, x: Value) -> Value {
    let limit = 1u64 << 20;
    let signed = matches!(from, Carrier::Int32(true) | Carrier::Int64(true));
    let near = if signed {
        let x = int_const(b, IntBin::MinS, x, limit);
        int_const(b, IntBin::MaxS, x, limit.wrapping_neg())
    } else {
        int_const(b, IntBin::MinU, x, limit)
    };
    let low = if b.ty(near) == Ty::B64 { b.one(OpKind::Truncate(Ty::B32), &[near]) } else { near };
    cvt(b, Num::S32, Num::F32, low)
}

/// An integer as an `f32`, rounded to odd.
fn odd_single_from_int(b: &mut Builder, from: Carrier, x: Value) -> Value {
    let num = from.num();
    let rounded = cvt(b, num, Num::F32, x);
    // The conversion back saturates if rounding went just beyond the range of the type. The difference is then off by at most one, and has
    // the right sign.
    let back = cvt(b, Num::F32, num, rounded);
    let signed = matches!(from, Carrier::Int32(true) | Carrier::Int64(true));
    let less = b.one(OpKind::IntCmp { pred: Pred::Lt, signed }, &[x, back]);
    let greater = b.one(OpKind::IntCmp { pred: Pred::Gt, signed }, &[x, back]);
    let zero = b.const_like(rounded, 0);
    let negative = b.cmp_s(Pred::Lt, rounded, zero);
    let (above, below) = (b.select(negative, less, greater), b.select(negative, greater, less));
    // The bits of the magnitude follow the sign bit, so that adding one is a step away from zero for both signs.
    to_odd(b, rounded, above, below)
}

/// Rounds an `f32` to 10 fraction bits, ties away from zero: adds half a unit, and clears the low bits. The carry may produce infinity,
/// which is correct; a NaN must not be changed to infinity or zero by it.
fn round_tf32(b: &mut Builder, x: Value) -> Value {
    let moved = int_const(b, IntBin::Add, x, 0x1000);
    let nan = is_nan(b, FloatTy::F32, x);
    let quiet = bits(b, Ty::B32, 0x7fff_e000);
    let rounded = int_const(b, IntBin::And, moved, 0xffff_e000);
    b.select(nan, quiet, rounded)
}

/// The bits of a value as another type of the same width.
pub fn bitcast(b: &mut Builder, from: Elem, to: Elem, x: Value) -> Value {
    if from.bits() != to.bits() || from == Elem::Bool || to == Elem::Bool {
        return refuse(b, "a bitcast to another width", from);
    }
    match (register(from), register(to)) {
        (Ty::B32, Ty::B16) => b.one(OpKind::Truncate(Ty::B16), &[x]),
        (Ty::B16, Ty::B32) => half_bits(b, x, to.is_signed_int()),
        _ if to.bits() < 32 && register(to) == Ty::B32 && from.is_signed_int() != to.is_signed_int() => {
            int::wrap(b, to, x)
        }
        _ => x,
    }
}
