//! Constant folding of scalar integer arithmetic, with the semantics of `docs/semantics.md`.
//!
//! Floats are not folded, so that a floating-point result is always the one that the device computes.

use super::Const;
use super::Elem;
use super::kernel::{Kernel, Value};
use super::op::{BinOp, OpKind, Pred, UnOp};

/// The constant result of an operation, if it is scalar arithmetic on integer constants.
pub(super) fn fold(kernel: &Kernel, kind: &OpKind, args: &[Value]) -> Option<Const> {
    let int = |i: usize| match kernel.constant(*args.get(i)?)? {
        Const::Int(e, v) => Some((e, v)),
        Const::Float(..) => None,
    };
    match (kind, args) {
        (OpKind::Binary(op), [_, _]) => {
            let ((e, a), (f, b)) = (int(0)?, int(1)?);
            (e == f).then(|| of_constants(*op, e, a, b)).flatten().map(|v| Const::Int(e, v))
        }
        (OpKind::Cmp(pred), [_, _]) => {
            let ((e, a), (f, b)) = (int(0)?, int(1)?);
            (e == f).then(|| Const::Int(Elem::Bool, compare(*pred, e, a, b).into()))
        }
        (OpKind::Unary(UnOp::Neg), [_]) => int(0).map(|(e, a)| Const::Int(e, wrap(e, a.wrapping_neg()))),
        (OpKind::Unary(UnOp::Not), [_]) => match int(0)? {
            (Elem::Bool, a) => Some(Const::Int(Elem::Bool, 1 - a)),
            (e, a) => Some(Const::Int(e, wrap(e, !a))),
        },
        (OpKind::Cast(to), [_]) if to.is_int() => int(0).map(|(_, a)| Const::Int(*to, wrap(*to, a))),
        (OpKind::Select, [mask, a, b]) => match kernel.constant(*mask)? {
            Const::Int(_, 0) => kernel.constant(*b),
            Const::Int(..) => kernel.constant(*a),
            Const::Float(..) => None,
        },
        _ => None,
    }
}

/// `v` reduced to the bits of `e`, sign- or zero-extended.
#[must_use]
pub fn wrap(e: Elem, v: i64) -> i64 {
    let unused = 64 - e.bits();
    if e == Elem::Bool {
        v & 1
    } else if e.is_signed_int() {
        (v << unused) >> unused
    } else {
        ((v.cast_unsigned() << unused) >> unused).cast_signed()
    }
}

/// The result of a binary operation on two constants of type `e`; `None` if it is not folded.
pub(crate) fn of_constants(op: BinOp, e: Elem, a: i64, b: i64) -> Option<i64> {
    binary(op, e, a, b).map(|v| wrap(e, v))
}

fn binary(op: BinOp, e: Elem, a: i64, b: i64) -> Option<i64> {
    if !(e.is_arith_int() || e == Elem::Bool) {
        return None;
    }
    let (ua, ub) = (a.cast_unsigned(), b.cast_unsigned());
    let signed = e.is_signed_int();
    let in_width = ub < u64::from(e.bits()) && b >= 0;
    Some(match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::Div if b == 0 => 0,
        BinOp::Div if signed => a.wrapping_div(b),
        BinOp::Div => (ua / ub).cast_signed(),
        BinOp::Rem if b == 0 => a,
        BinOp::Rem if signed => a.wrapping_rem(b),
        BinOp::Rem => (ua % ub).cast_signed(),
        BinOp::MulHi => upper_half(e, a, b),
        BinOp::Powf => return None,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => {
            if in_width {
                a << b
            } else {
                0
            }
        }
        BinOp::Shr if in_width => {
            if signed {
                a >> b
            } else {
                (ua >> ub).cast_signed()
            }
        }
        BinOp::Shr => {
            if signed && a < 0 {
                -1
            } else {
                0
            }
        }
        BinOp::Min => {
            if less(e, a, b) {
                a
            } else {
                b
            }
        }
        BinOp::Max => {
            if less(e, a, b) {
                b
            } else {
                a
            }
        }
    })
}

/// The upper half of the product of two numbers of type `e`.
fn upper_half(e: Elem, a: i64, b: i64) -> i64 {
    let exact = |v: i64| if e.is_signed_int() { i128::from(v) } else { i128::from(v.cast_unsigned()) };
    let product = exact(a).wrapping_mul(exact(b)) >> e.bits();
    // At most 64 bits are left, and they are signed: a product of 128 bits has wrapped.
    i64::try_from(product).unwrap_or(0)
}

fn less(e: Elem, a: i64, b: i64) -> bool {
    if e.is_signed_int() { a < b } else { a.cast_unsigned() < b.cast_unsigned() }
}

fn compare(pred: Pred, e: Elem, a: i64, b: i64) -> bool {
    match pred {
        Pred::Eq => a == b,
        Pred::Ne => a != b,
        Pred::Lt => less(e, a, b),
        Pred::Le => !less(e, b, a),
        Pred::Gt => less(e, b, a),
        Pred::Ge => !less(e, a, b),
    }
}
