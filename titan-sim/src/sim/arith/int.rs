//! Integers and `bool`: two's complement that wraps.

use titan_core::ir::fold::wrap;
use titan_core::ir::{BinOp, Elem, Pred, UnOp};

fn less(e: Elem, a: i64, b: i64) -> bool {
    if e.is_signed_int() { a < b } else { a.cast_unsigned() < b.cast_unsigned() }
}

/// The low 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is meant")]
const fn low(x: i128) -> i64 {
    x as i64
}

/// Applies a binary operation.
pub(super) fn binary(op: BinOp, e: Elem, a: i64, b: i64) -> i64 {
    let signed = e.is_signed_int();
    let (ua, ub) = (a.cast_unsigned(), b.cast_unsigned());
    let inside = (0..i64::from(e.bits())).contains(&b);
    let exact = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::Div if signed => {
            if b == 0 {
                0
            } else {
                a.wrapping_div(b)
            }
        }
        BinOp::Div => ua.checked_div(ub).unwrap_or(0).cast_signed(),
        BinOp::Rem if signed => {
            if b == 0 {
                a
            } else {
                a.wrapping_rem(b)
            }
        }
        BinOp::Rem => ua.checked_rem(ub).unwrap_or(ua).cast_signed(),
        // The upper half of the exact product.
        BinOp::MulHi if signed => low((i128::from(a) * i128::from(b)) >> e.bits()),
        BinOp::MulHi => low(((u128::from(ua) * u128::from(ub)) >> e.bits()).cast_signed()),
        // The verifier admits it on floats only.
        BinOp::Powf => a,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => {
            if inside {
                a << b
            } else {
                0
            }
        }
        BinOp::Shr if inside && signed => a >> b,
        BinOp::Shr if inside => (ua >> ub).cast_signed(),
        BinOp::Shr => {
            if signed && a < 0 {
                -1
            } else {
                0
            }
        }
        BinOp::Min => {
            if less(e, b, a) {
                b
            } else {
                a
            }
        }
        BinOp::Max => {
            if less(e, a, b) {
                b
            } else {
                a
            }
        }
    };
    wrap(e, exact)
}

/// Applies a unary operation; functions that are defined on floats only return `a`.
pub(super) fn unary(op: UnOp, e: Elem, a: i64) -> i64 {
    let exact = match op {
        UnOp::Neg => a.wrapping_neg(),
        UnOp::Not => !a,
        UnOp::Abs => {
            if e.is_signed_int() {
                a.wrapping_abs()
            } else {
                a
            }
        }
        UnOp::CountOnes => bits(e, a).count_ones().into(),
        UnOp::LeadingZeros => i64::from(bits(e, a).leading_zeros()) - i64::from(64 - e.bits()),
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
        | UnOp::RoundTiesEven
        | UnOp::IsNan => a,
    };
    wrap(op.of_another_element().unwrap_or(e), exact)
}

/// The bits of a number, without copies of its sign above them.
const fn bits(e: Elem, a: i64) -> u64 {
    a.cast_unsigned() & (u64::MAX >> (64 - e.bits()))
}

/// Applies a comparison.
pub(super) fn compare(pred: Pred, e: Elem, a: i64, b: i64) -> bool {
    match pred {
        Pred::Eq => a == b,
        Pred::Ne => a != b,
        Pred::Lt => less(e, a, b),
        Pred::Le => !less(e, b, a),
        Pred::Gt => less(e, b, a),
        Pred::Ge => !less(e, a, b),
    }
}
