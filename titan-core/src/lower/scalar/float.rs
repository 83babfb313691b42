//! Float arithmetic: the operations of the lane IR, and the conversions by which 16-bit floats are computed and rounded once.

use super::emit::{cvt, fcmp, int_const, is_nan, num, sign_bit, un, with_sign};
use super::{double, erf, exp, log, power, refuse, remainder, trig};
use crate::ir::{BinOp, Elem, Pred, UnOp};
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, IntBin, Num, OpKind, Ty, Value};
use crate::target::Target;

const fn elem(ty: FloatTy) -> Elem {
    match ty {
        FloatTy::F16 => Elem::F16,
        FloatTy::Bf16 => Elem::Bf16,
        FloatTy::F32 => Elem::F32,
        FloatTy::F64 => Elem::F64,
    }
}

/// A 16-bit float as an `f32`, exactly; other types are unchanged.
pub(super) fn widen(b: &mut Builder, ty: FloatTy, x: Value) -> Value {
    match ty {
        FloatTy::F16 => cvt(b, Num::F16, Num::F32, x),
        FloatTy::Bf16 => {
            // A `bf16` is the upper half of an `f32` with the same value.
            let zero = num(b, FloatTy::Bf16, 0.0);
            b.one(OpKind::Pack, &[zero, x])
        }
        FloatTy::F32 | FloatTy::F64 => x,
    }
}

/// An `f32` rounded to a 16-bit float; other types are unchanged.
pub(super) fn narrow(b: &mut Builder, ty: FloatTy, x: Value) -> Value {
    match ty {
        FloatTy::F16 => cvt(b, Num::F32, Num::F16, x),
        FloatTy::Bf16 => cvt(b, Num::F32, Num::Bf16, x),
        FloatTy::F32 | FloatTy::F64 => x,
    }
}

/// The type in which operations of a type are computed.
const fn wide(ty: FloatTy) -> FloatTy {
    match ty {
        FloatTy::F16 | FloatTy::Bf16 | FloatTy::F32 => FloatTy::F32,
        FloatTy::F64 => FloatTy::F64,
    }
}

pub(super) fn unary(b: &mut Builder, op: UnOp, ty: FloatTy, x: Value) -> Value {
    match op {
        UnOp::Neg => return un(b, FloatUn::Neg, ty, x),
        UnOp::Abs => return un(b, FloatUn::Abs, ty, x),
        UnOp::Not | UnOp::CountOnes | UnOp::LeadingZeros => return refuse(b, op.name(), elem(ty)),
        UnOp::IsNan => {
            let wide_x = widen(b, ty, x);
            return is_nan(b, wide(ty), wide_x);
        }
        UnOp::Exp
        | UnOp::Exp2
        | UnOp::Ln
        | UnOp::Log2
        | UnOp::Sqrt
        | UnOp::Rsqrt
        | UnOp::Recip
        | UnOp::Sin
        | UnOp::Cos
        | UnOp::Tanh
        | UnOp::Sigmoid
        | UnOp::Erf
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Trunc
        | UnOp::Round
        | UnOp::RoundTiesEven => {}
    }
    let wide_x = widen(b, ty, x);
    if op == UnOp::Exp && matches!(ty, FloatTy::F16 | FloatTy::Bf16) {
        let result = exp::exp_of_half(b, wide_x);
        return narrow(b, ty, result);
    }
    let result = match wide(ty) {
        FloatTy::F64 => double::function(b, op, wide_x),
        FloatTy::F16 | FloatTy::Bf16 | FloatTy::F32 => function(b, op, Range::of(ty), wide_x),
    };
    let result = result.unwrap_or_else(|| rounding(b, op, wide(ty), wide_x));
    narrow(b, ty, result)
}

/// The element type from which the argument of an `f32` function was converted, and to which its result is. A number from `f16` is not
/// subnormal in `f32` and is less than 2¹⁶, and results below 2⁻²⁶ need not be accurate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    Half,
    Single,
}

impl Range {
    const fn of(ty: FloatTy) -> Self {
        match ty {
            FloatTy::F16 => Range::Half,
            FloatTy::Bf16 | FloatTy::F32 | FloatTy::F64 => Range::Single,
        }
    }
}

/// A transcendental function of an `f32`.
fn function(b: &mut Builder, op: UnOp, range: Range, x: Value) -> Option<Value> {
    Some(match op {
        UnOp::Exp => exp::exp(b, x),
        UnOp::Exp2 => exp::exp2(b, x),
        UnOp::Sigmoid => exp::sigmoid(b, range, x),
        UnOp::Tanh => exp::tanh(b, x),
        UnOp::Ln => log::ln(b, range, x),
        UnOp::Log2 => log::log2(b, range, x),
        UnOp::Rsqrt => log::rsqrt(b, range, x),
        UnOp::Sin => trig::sin(b, &trig::SINGLE, range == Range::Single, x),
        UnOp::Cos => trig::cos(b, &trig::SINGLE, range == Range::Single, x),
        UnOp::Erf => erf::erf(b, x),
        UnOp::Neg
        | UnOp::Not
        | UnOp::Abs
        | UnOp::Sqrt
        | UnOp::Recip
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Trunc
        | UnOp::Round
        | UnOp::RoundTiesEven
        | UnOp::IsNan
        | UnOp::CountOnes
        | UnOp::LeadingZeros => return None,
    })
}

/// A function of an `f32` or `f64` for which machines have a correctly rounded instruction.
fn rounding(b: &mut Builder, op: UnOp, ty: FloatTy, x: Value) -> Value {
    match op {
        UnOp::Sqrt => un(b, FloatUn::Sqrt, ty, x),
        UnOp::Floor => un(b, FloatUn::Floor, ty, x),
        UnOp::Ceil => un(b, FloatUn::Ceil, ty, x),
        UnOp::Trunc => un(b, FloatUn::Trunc, ty, x),
        UnOp::RoundTiesEven => un(b, FloatUn::RoundEven, ty, x),
        UnOp::Round => round(b, ty, x),
        UnOp::Recip => {
            let one = num(b, ty, 1.0);
            b.float(FloatBin::Div, ty, one, x)
        }
        UnOp::Exp
        | UnOp::Exp2
        | UnOp::Ln
        | UnOp::Log2
        | UnOp::Rsqrt
        | UnOp::Sin
        | UnOp::Cos
        | UnOp::Tanh
        | UnOp::Sigmoid
        | UnOp::Erf
        | UnOp::Neg
        | UnOp::Not
        | UnOp::Abs
        | UnOp::IsNan
        | UnOp::CountOnes
        | UnOp::LeadingZeros => refuse(b, op.name(), elem(ty)),
    }
}

/// Rounds to nearest, ties away from zero: the magnitude plus the greatest number below ½, truncated. With ½ itself, the number just below
/// ½ would be rounded to 1.
fn round(b: &mut Builder, ty: FloatTy, x: Value) -> Value {
    let below_half = if ty == FloatTy::F64 { 0.5f64.next_down() } else { f64::from(0.5f32.next_down()) };
    let half = num(b, ty, below_half);
    let half = with_sign(b, ty, half, x);
    let moved = b.float(FloatBin::Add, ty, x, half);
    un(b, FloatUn::Trunc, ty, moved)
}

pub(super) fn binary(b: &mut Builder, target: &Target, (op, ty): (BinOp, FloatTy), x: Value, y: Value) -> Value {
    let op = match op {
        BinOp::Add => FloatBin::Add,
        BinOp::Sub => FloatBin::Sub,
        BinOp::Mul => FloatBin::Mul,
        BinOp::Div => FloatBin::Div,
        BinOp::Min => FloatBin::Min,
        BinOp::Max => FloatBin::Max,
        BinOp::Rem => {
            let (x, y) = (widen(b, ty, x), widen(b, ty, y));
            let result = remainder::remainder(b, wide(ty), Range::of(ty), x, y);
            return narrow(b, ty, result);
        }
        BinOp::Powf => {
            let halves = matches!(ty, FloatTy::F16 | FloatTy::Bf16).then_some(Range::of(ty));
            let (x, y) = (widen(b, ty, x), widen(b, ty, y));
            let result = power::powf(b, wide(ty), halves, x, y);
            return narrow(b, ty, result);
        }
        BinOp::MulHi | BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr => {
            return refuse(b, op.name(), elem(ty));
        }
    };
    let native = match ty {
        FloatTy::F32 | FloatTy::F64 => true,
        FloatTy::F16 => op != FloatBin::Div,
        FloatTy::Bf16 => op != FloatBin::Div && target.computes(Elem::Bf16),
    };
    if native {
        return b.float(op, ty, x, y);
    }
    let (x, y) = (widen(b, ty, x), widen(b, ty, y));
    let result = b.float(op, FloatTy::F32, x, y);
    narrow(b, ty, result)
}

pub(super) fn compare(b: &mut Builder, target: &Target, (pred, ty): (Pred, FloatTy), x: Value, y: Value) -> Value {
    if ty == FloatTy::Bf16 && !target.computes(Elem::Bf16) {
        let (x, y) = (widen(b, ty, x), widen(b, ty, y));
        return fcmp(b, pred, FloatTy::F32, x, y);
    }
    fcmp(b, pred, ty, x, y)
}

pub(super) fn mul_add(b: &mut Builder, target: &Target, ty: FloatTy, [x, y, z]: [Value; 3]) -> Value {
    if ty != FloatTy::Bf16 || target.computes(Elem::Bf16) {
        return b.fma(ty, x, y, z);
    }
    let [x, y, z] = [x, y, z].map(|v| {
        let single = widen(b, ty, v);
        cvt(b, Num::F32, Num::F64, single)
    });
    let product = b.float(FloatBin::Mul, FloatTy::F64, x, y);
    let sum = sum_to_odd(b, product, z);
    let sum = odd_single(b, sum);
    narrow(b, ty, sum)
}

/// The sum of two `f64` rounded to odd: if it is inexact, of the two neighbouring numbers the one whose last digit is odd (S. Boldo and G.
/// Melquiond, "Emulation of FMA and correctly rounded sums", 2008). Rounded again to at most 51 digits, it is the correctly rounded sum.
fn sum_to_odd(b: &mut Builder, x: Value, y: Value) -> Value {
    let ty = FloatTy::F64;
    let sum = b.float(FloatBin::Add, ty, x, y);
    // The rounding error of the sum, by D. Knuth's TwoSum.
    let part = b.float(FloatBin::Sub, ty, sum, x);
    let other = b.float(FloatBin::Sub, ty, sum, part);
    let (dx, dy) = (b.float(FloatBin::Sub, ty, x, other), b.float(FloatBin::Sub, ty, y, part));
    let rest = b.float(FloatBin::Add, ty, dx, dy);
    // The exact sum is above or below the rounded one in magnitude, depending on whether the rounding error has the same sign.
    let magnitude = un(b, FloatUn::Abs, ty, sum);
    let signs = b.int(IntBin::Xor, rest, sum);
    let signs = int_const(b, IntBin::And, signs, sign_bit(ty));
    let rest = un(b, FloatUn::Abs, ty, rest);
    let rest = b.or(rest, signs);
    let zero = num(b, ty, 0.0);
    let (above, below) = (fcmp(b, Pred::Gt, ty, rest, zero), fcmp(b, Pred::Lt, ty, rest, zero));
    let magnitude = to_odd(b, magnitude, above, below);
    with_sign(b, ty, magnitude, sum)
}

/// Makes the last digit of a rounded magnitude odd, if the exact one is greater (`above`) or less (`below`).
pub(super) fn to_odd(b: &mut Builder, rounded: Value, above: Value, below: Value) -> Value {
    let (zero, one, minus) = (b.const_like(rounded, 0), b.const_like(rounded, 1), b.const_like(rounded, -1));
    let step = b.select(below, minus, zero);
    let step = b.select(above, one, step);
    let moved = b.add(rounded, step);
    let odd = int_const(b, IntBin::And, rounded, 1);
    let odd = b.cmp_u(Pred::Ne, odd, zero);
    b.select(odd, rounded, moved)
}

/// An `f64` as an `f32` rounded to odd. Rounded again to at most 22 digits, it is the correctly rounded `f64`. NaN stays NaN.
pub(super) fn odd_single(b: &mut Builder, x: Value) -> Value {
    let rounded = cvt(b, Num::F64, Num::F32, x);
    let magnitude = un(b, FloatUn::Abs, FloatTy::F32, rounded);
    let back = cvt(b, Num::F32, Num::F64, magnitude);
    let exact = un(b, FloatUn::Abs, FloatTy::F64, x);
    let (above, below) = (fcmp(b, Pred::Gt, FloatTy::F64, exact, back), fcmp(b, Pred::Lt, FloatTy::F64, exact, back));
    let magnitude = to_odd(b, magnitude, above, below);
    with_sign(b, FloatTy::F32, magnitude, rounded)
}

/// The bits of a 16-bit float as a `b32`, sign- or zero-extended.
pub(super) fn half_bits(b: &mut Builder, x: Value, signed: bool) -> Value {
    b.one(OpKind::Extend { from: 16, signed, to: Ty::B32 }, &[x])
}
