//! Arithmetic on single elements: lowers the semantics of `docs/semantics.md` to operations of the lane IR, for all vendors.
//!
//! The representation of elements in registers is that of [`crate::lane`]. The verifier has rejected operations that an element type does
//! not have; if one arrives here nevertheless, that is a defect, which the builder records ([`Builder::fail`]).
//!
//! | module | lowers |
//! |---|---|
//! | `int` | integers and conditions: wrapping, narrow types, division by 0, shifts beyond the width |
//! | `float` | float arithmetic: 16-bit types, rounding, sums of products |
//! | `quotient` | quotients by a common divisor |
//! | `remainder` | remainders of floats |
//! | `power` | powers |
//! | `cast`, `fp8` | conversions of values and of bits |
//! | `exp`, `log`, `erf` | transcendental functions of `f32` |
//! | `trig`, `far` | sine and cosine of `f32` and `f64`; reduction of large arguments |
//! | `double` | the other functions of `f64` |
//! | `emit` | shorthand functions |
//!
//! 16-bit floats are computed in `f32` and rounded once, if the result of both roundings is that of one: `+ - * / √` (24 ≥ 2 · 11 + 2
//! digits; S. Figueroa, "When is double rounding innocuous?", 1995), but not multiply-add.
//!
//! Of the conversions [`crate::lane::OpKind::Convert`], only these are used: between `f16` and `f32`, between `f32` and `f64`, `f32` to
//! `bf16`, 32- and 64-bit integers to and from `f32` and `f64`; and, if the target has them, `f32` to fp8, and fp8 to `f16` and `f32`.
//!
//! Deliberately absent: which elements a thread holds; and packed arithmetic on two 16-bit floats, which the back ends choose.

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
mod power;
mod quotient;
mod remainder;
mod trig;

pub use cast::{bitcast, cast};

use crate::ir::{self, BinOp, Elem, Pred, ReduceOp, UnOp};
use crate::lane::{Builder, FloatTy, Ty, Value};
use crate::num;
use crate::target::Target;

/// The type of the register of an element.
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

/// The float type in which the element has arithmetic, if it has.
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

/// Records the defect that an operation does not exist for the element type; returns a value of its register type.
fn refuse(b: &mut Builder, what: &str, elem: Elem) -> Value {
    b.fail(format!("`{what}` of `{elem}` elements"));
    emit::bits(b, register(elem), 0)
}

/// A constant. Integers wrap to their type, and floats are rounded once.
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

/// An operation with one operand. The result of [`UnOp::IsNan`] is a condition, numbers of bits are `u32`, and all others have the operand's
/// type.
pub fn unary(b: &mut Builder, _target: &Target, op: UnOp, elem: Elem, x: Value) -> Value {
    match float_ty(elem) {
        Some(ty) => float::unary(b, op, ty, x),
        None => int::unary(b, op, elem, x),
    }
}

/// An operation with two operands of the same type.
pub fn binary(b: &mut Builder, target: &Target, op: BinOp, elem: Elem, x: Value, y: Value) -> Value {
    match float_ty(elem) {
        Some(ty) => float::binary(b, target, (op, ty), x, y),
        None => int::binary(b, op, elem, x, y),
    }
}

/// The quotients of several numerators by one divisor, with the same results as [`binary`].
pub fn quotients(b: &mut Builder, target: &Target, elem: Elem, numerators: &[Value], divisor: Value) -> Vec<Value> {
    match float_ty(elem) {
        Some(ty) if numerators.len() >= quotient::WORTHWHILE => quotient::quotients(b, ty, numerators, divisor),
        Some(_) | None => numerators.iter().map(|x| binary(b, target, BinOp::Div, elem, *x, divisor)).collect(),
    }
}

/// A comparison, whose result is a condition.
pub fn compare(b: &mut Builder, target: &Target, pred: Pred, elem: Elem, x: Value, y: Value) -> Value {
    match float_ty(elem) {
        Some(ty) => float::compare(b, target, (pred, ty), x, y),
        None => int::compare(b, pred, elem, x, y),
    }
}

/// `x · y + z` on floats, rounded once.
pub fn mul_add(b: &mut Builder, target: &Target, elem: Elem, x: Value, y: Value, z: Value) -> Value {
    match float_ty(elem) {
        Some(ty) => float::mul_add(b, target, ty, [x, y, z]),
        None => refuse(b, "mul_add", elem),
    }
}

/// The neutral element of [`combine`]. For sums and products, both must be called with [`Elem::accumulator`].
///
/// For extrema of floats it is NaN, which loses against every number and is the result only if all elements are NaN.
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
