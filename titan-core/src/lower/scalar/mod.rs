//! Arithmetic on one element: the meanings of `docs/semantics.md` in operations of a lane, once for all vendors.
//!
//! An element lies in a register as [`crate::lane`] says. The verifier has refused what an element type cannot do; a
//! combination that gets here all the same is a defect, which the builder keeps ([`Builder::fail`]).
//!
//! | module | lowers |
//! |---|---|
//! | `int` | integers and conditions: wrapping, narrow types, divisors of 0, long shifts |
//! | `float` | float arithmetic: 16-bit types, rounding, sums of products |
//! | `quotient` | quotients by one divisor |
//! | `cast`, `fp8` | conversions of values and of bits |
//! | `exp`, `log`, `erf` | functions of `f32` |
//! | `trig`, `far` | sine and cosine of both; arguments beyond all tables of angles |
//! | `double` | the other functions of `f64` |
//! | `emit` | abbreviations |
//!
//! Halves compute in `f32` and round once, where that is the same as rounding once at all: `+ - * / √` (24 ≥ 2 · 11 + 2
//! digits; S. Figueroa, "When is double rounding innocuous?", 1995), but not sums of products.
//!
//! Of [`crate::lane::OpKind::Convert`] only these pairs are used: `f16`–`f32` and `f32`–`f64` both ways, `f32` to `bf16`, 32-
//! and 64-bit integers to and from `f32` and `f64`; and where the target has them `f32` to fp8 and fp8 to `f16` and `f32`.
//!
//! Deliberately absent: which elements a thread holds, and packed arithmetic on two halves, which is a choice of back ends.

mod cast;
mod double;
mod emit;
mod erf;
mod exp;
mod far;
mod float;
mod fp8;
mod int;
mod log;
mod quotient;
mod trig;

pub use cast::{bitcast, cast};

use crate::ir::{self, BinOp, Elem, Pred, ReduceOp, UnOp};
use crate::lane::{Builder, FloatTy, Ty, Value};
use crate::num;
use crate::plan::Target;

/// The register of an element.
#[must_use]
pub const fn register(elem: Elem) -> Ty {
    match elem {
        Elem::Bool => Ty::Pred,
        Elem::F16 | Elem::Bf16 => Ty::B16,
        Elem::F64 | Elem::I64 | Elem::U64 => Ty::B64,
        Elem::F32
        | Elem::Tf32
        | Elem::E4m3
        | Elem::E5m2
        | Elem::I32
        | Elem::I16
        | Elem::I8
        | Elem::I4
        | Elem::U32
        | Elem::U16
        | Elem::U8
        | Elem::U4 => Ty::B32,
    }
}

/// How arithmetic reads the element, if it is a float with arithmetic.
const fn float_ty(elem: Elem) -> Option<FloatTy> {
    match elem {
        Elem::F64 => Some(FloatTy::F64),
        Elem::F32 => Some(FloatTy::F32),
        Elem::F16 => Some(FloatTy::F16),
        Elem::Bf16 => Some(FloatTy::Bf16),
        Elem::Tf32
        | Elem::E4m3
        | Elem::E5m2
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
        | Elem::Bool => None,
    }
}

/// A value of the element's register for an operation that the element does not have: the builder keeps the defect.
fn refuse(b: &mut Builder, what: &str, elem: Elem) -> Value {
    b.fail(format!("`{what}` of `{elem}` elements"));
    emit::bits(b, register(elem), 0)
}

/// A constant: integers wrap to their type, floats are rounded once.
pub fn constant(b: &mut Builder, c: ir::Const) -> Value {
    let (elem, bits) = match c {
        ir::Const::Int(elem, v) if elem.is_float() => (elem, float_bits(elem, integer_as_float(v))),
        ir::Const::Int(elem, v) => (elem, int::wrap_const(elem, v)),
        ir::Const::Float(elem, v) if elem.is_float() => (elem, float_bits(elem, v)),
        ir::Const::Float(elem, _) => return refuse(b, "a float constant", elem),
    };
    emit::bits(b, register(elem), bits)
}

#[expect(clippy::cast_precision_loss, reason = "the constant is the nearest float")]
const fn integer_as_float(v: i64) -> f64 {
    v as f64
}

#[expect(clippy::cast_possible_truncation, reason = "`as` rounds to nearest even")]
fn float_bits(elem: Elem, v: f64) -> u64 {
    match elem {
        Elem::F64 => v.to_bits(),
        Elem::Tf32 => num::tf32_from_f64(v).to_bits().into(),
        Elem::F16 => num::f16_from_f64(v).into(),
        Elem::Bf16 => num::bf16_from_f64(v).into(),
        Elem::E4m3 => num::e4m3_from_f64(v).into(),
        Elem::E5m2 => num::e5m2_from_f64(v).into(),
        Elem::F32
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
        | Elem::Bool => (v as f32).to_bits().into(),
    }
}

/// An operation of one operand. [`UnOp::IsNan`] gives a condition, every other the type of its operand.
pub fn unary(b: &mut Builder, _target: &Target, op: UnOp, elem: Elem, x: Value) -> Value {
    match float_ty(elem) {
        Some(ty) => float::unary(b, op, ty, x),
        None => int::unary(b, op, elem, x),
    }
}

/// An operation of two operands of one type.
pub fn binary(b: &mut Builder, target: &Target, op: BinOp, elem: Elem, x: Value, y: Value) -> Value {
    match float_ty(elem) {
        Some(ty) => float::binary(b, target, (op, ty), x, y),
        None => int::binary(b, op, elem, x, y),
    }
}

/// The quotients of several elements by one, as [`binary`] computes them.
pub fn quotients(b: &mut Builder, target: &Target, elem: Elem, numerators: &[Value], divisor: Value) -> Vec<Value> {
    match float_ty(elem) {
        Some(ty) if numerators.len() >= quotient::WORTHWHILE => quotient::quotients(b, ty, numerators, divisor),
        Some(_) | None => numerators.iter().map(|x| binary(b, target, BinOp::Div, elem, *x, divisor)).collect(),
    }
}

/// A comparison: a condition.
pub fn compare(b: &mut Builder, target: &Target, pred: Pred, elem: Elem, x: Value, y: Value) -> Value {
    match float_ty(elem) {
        Some(ty) => float::compare(b, target, (pred, ty), x, y),
        None => int::compare(b, pred, elem, x, y),
    }
}

/// `x · y + z` of floats, rounded once.
pub fn mul_add(b: &mut Builder, target: &Target, elem: Elem, x: Value, y: Value, z: Value) -> Value {
    match float_ty(elem) {
        Some(ty) => float::mul_add(b, target, ty, [x, y, z]),
        None => refuse(b, "mul_add", elem),
    }
}

/// The element that changes nothing in [`combine`]. Call both with [`Elem::accumulator`] for sums and products.
///
/// Of extremes of floats it is NaN, which loses against every number and is the result only if all are.
#[must_use]
pub const fn neutral(op: ReduceOp, elem: Elem) -> ir::Const {
    if elem.is_float() {
        return ir::Const::Float(
            elem,
            match op {
                ReduceOp::Sum => -0.0,
                ReduceOp::Prod => 1.0,
                ReduceOp::Max | ReduceOp::Min => f64::NAN,
            },
        );
    }
    let (least, greatest) = int::range(elem);
    ir::Const::Int(
        elem,
        match op {
            ReduceOp::Sum => 0,
            ReduceOp::Prod => 1,
            ReduceOp::Max => least,
            ReduceOp::Min => greatest,
        },
    )
}

/// One step of a reduction or scan.
pub fn combine(b: &mut Builder, target: &Target, op: ReduceOp, elem: Elem, x: Value, y: Value) -> Value {
    let op = match op {
        ReduceOp::Sum => BinOp::Add,
        ReduceOp::Prod => BinOp::Mul,
        ReduceOp::Max => BinOp::Max,
        ReduceOp::Min => BinOp::Min,
    };
    binary(b, target, op, elem, x, y)
}
