//! Integer arithmetic of all widths, and operations on conditions.
//!
//! Narrow types are computed in 32 bits, and extended again if the result may be outside of their range.

use super::emit::int_const;
use super::refuse;
use crate::ir::{BinOp, Elem, Pred, UnOp};
use crate::lane::{Builder, IntBin, IntUn, OpKind, Ty, Value};

/// The minimum and maximum of an integer type; for `u64`, the bits read as `i64`; for other types, 0 and 1.
pub(super) const fn range(elem: Elem) -> (i64, i64) {
    match elem {
        Elem::I64 => (i64::MIN, i64::MAX),
        Elem::I32 => (i32::MIN as i64, i32::MAX as i64),
        Elem::I16 => (i16::MIN as i64, i16::MAX as i64),
        Elem::I8 => (i8::MIN as i64, i8::MAX as i64),
        Elem::I4 => (-8, 7),
        Elem::U64 => (0, -1),
        Elem::U32 => (0, u32::MAX as i64),
        Elem::U16 => (0, u16::MAX as i64),
        Elem::U8 => (0, u8::MAX as i64),
        Elem::U4 => (0, 15),
        Elem::F64 | Elem::F32 | Elem::Tf32 | Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2 | Elem::Bool => (0, 1),
    }
}

/// The bits of the register for the low bits of a number.
pub(super) const fn wrap_const(elem: Elem, v: i64) -> u64 {
    if matches!(elem, Elem::Bool) {
        return (v & 1).cast_unsigned();
    }
    let bits = elem.bits();
    let high = v << (64 - bits);
    let wide =
        if elem.is_signed_int() { high >> (64 - bits) } else { (high.cast_unsigned() >> (64 - bits)).cast_signed() };
    if bits == 64 { wide.cast_unsigned() } else { wide.cast_unsigned() & 0xffff_ffff }
}

/// The low bits of a 32-bit result, extended as a number of a type of at most 32 bits; values of wider types are unchanged.
pub(super) fn wrap(b: &mut Builder, elem: Elem, x: Value) -> Value {
    let signed = elem.is_signed_int();
    match elem.bits() {
        8 => b.one(OpKind::Extend { from: 8, signed, to: Ty::B32 }, &[x]),
        16 => b.one(OpKind::Extend { from: 16, signed, to: Ty::B32 }, &[x]),
        4 if signed => {
            let high = int_const(b, IntBin::Shl, x, 28);
            int_const(b, IntBin::ShrS, high, 28)
        }
        4 => int_const(b, IntBin::And, x, 15),
        _ => x,
    }
}

pub(super) fn unary(b: &mut Builder, op: UnOp, elem: Elem, x: Value) -> Value {
    match op {
        UnOp::Not if elem == Elem::Bool => b.not(x),
        UnOp::Not if elem.is_arith_int() => {
            // For narrow unsigned types, the upper bits stay zero.
            int_const(b, IntBin::Xor, x, wrap_const(elem, -1))
        }
        UnOp::Neg if elem.is_arith_int() => {
            let minus = negate(b, x);
            wrap(b, elem, minus)
        }
        UnOp::Abs if elem.is_arith_int() && !elem.is_signed_int() => x,
        UnOp::Abs if elem.is_arith_int() => {
            let minus = negate(b, x);
            let abs = b.int(IntBin::MaxS, x, minus);
            wrap(b, elem, abs)
        }
        UnOp::CountOnes if elem.is_arith_int() => count_ones(b, elem, x),
        UnOp::LeadingZeros if elem.is_arith_int() => leading_zeros(b, elem, x),
        UnOp::Neg
        | UnOp::Not
        | UnOp::Abs
        | UnOp::CountOnes
        | UnOp::LeadingZeros
        | UnOp::Exp
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
        | UnOp::IsNan => refuse(b, op.name(), elem),
    }
}

/// The words of a number, the lowest first, without the copies of the sign above a narrow type.
fn words(b: &mut Builder, elem: Elem, x: Value) -> Vec<Value> {
    match elem.bits() {
        64 => b.op(OpKind::Unpack, &[x]),
        32 => vec![x],
        _ if elem.is_signed_int() => vec![int_const(b, IntBin::And, x, (1 << elem.bits()) - 1)],
        _ => vec![x],
    }
}

fn count_ones(b: &mut Builder, elem: Elem, x: Value) -> Value {
    let ones: Vec<Value> =
        words(b, elem, x).iter().map(|word| b.one(OpKind::IntUn(IntUn::CountOnes), &[*word])).collect();
    match ones[..] {
        [low, high] => b.add(low, high),
        _ => ones.first().copied().unwrap_or(x),
    }
}

/// Of 64 bits, the zeros of the upper word, and if that is 0, those of the lower one too.
fn leading_zeros(b: &mut Builder, elem: Elem, x: Value) -> Value {
    let words = words(b, elem, x);
    let mut zeros = |word: Value| b.one(OpKind::IntUn(IntUn::LeadingZeros), &[word]);
    if let [low, high] = words[..] {
        let (of_low, of_high) = (zeros(low), zeros(high));
        let (all, none) = (b.add_const(of_low, 32), b.const_like(high, 0));
        let empty = b.cmp_u(Pred::Eq, high, none);
        return b.select(empty, all, of_high);
    }
    let all = zeros(words.first().copied().unwrap_or(x));
    b.add_const(all, i64::from(elem.bits()) - 32)
}

/// The upper half of a product. That of signed numbers of 64 bits is that of their bits, less each factor for which the other one is negative:
/// read as unsigned, a negative number is greater by 2⁶⁴.
fn mul_hi(b: &mut Builder, elem: Elem, x: Value, y: Value) -> Value {
    let signed = elem.is_signed_int();
    match elem.bits() {
        64 => {
            let high = b.int(IntBin::MulHi, x, y);
            if !signed {
                return high;
            }
            [(x, y), (y, x)].into_iter().fold(high, |high, (sign, other)| {
                let negative = int_const(b, IntBin::ShrS, sign, 63);
                let less = b.and(negative, other);
                b.int(IntBin::Sub, high, less)
            })
        }
        32 if signed => {
            let wide = b.one(OpKind::MulWide { signed }, &[x, y]);
            b.op(OpKind::Unpack, &[wide]).get(1).copied().unwrap_or(x)
        }
        32 => b.int(IntBin::MulHi, x, y),
        // The whole product has at most 32 bits.
        bits => {
            let product = b.mul(x, y);
            int_const(b, if signed { IntBin::ShrS } else { IntBin::ShrU }, product, bits.into())
        }
    }
}

fn negate(b: &mut Builder, x: Value) -> Value {
    let zero = b.const_like(x, 0);
    b.int(IntBin::Sub, zero, x)
}

pub(super) fn binary(b: &mut Builder, op: BinOp, elem: Elem, x: Value, y: Value) -> Value {
    let bitwise = match op {
        BinOp::And => Some(IntBin::And),
        BinOp::Or => Some(IntBin::Or),
        BinOp::Xor => Some(IntBin::Xor),
        BinOp::Add
        | BinOp::Sub
        | BinOp::Mul
        | BinOp::Div
        | BinOp::Rem
        | BinOp::Shl
        | BinOp::Shr
        | BinOp::Min
        | BinOp::Max
        | BinOp::MulHi
        | BinOp::Powf => None,
    };
    if let (Some(op), true) = (bitwise, elem == Elem::Bool || elem.is_arith_int()) {
        return b.int(op, x, y);
    }
    if !elem.is_arith_int() || op == BinOp::Powf {
        return refuse(b, op.name(), elem);
    }
    let signed = elem.is_signed_int();
    let pick = |s, u| if signed { s } else { u };
    let result = match op {
        BinOp::Add => b.add(x, y),
        BinOp::Sub => b.int(IntBin::Sub, x, y),
        BinOp::Mul => b.mul(x, y),
        BinOp::Div => divide(b, pick(IntBin::DivS, IntBin::DivU), x, y),
        BinOp::Rem => divide(b, pick(IntBin::RemS, IntBin::RemU), x, y),
        BinOp::Shl => shift(b, IntBin::Shl, elem, x, y),
        BinOp::Shr => shift(b, pick(IntBin::ShrS, IntBin::ShrU), elem, x, y),
        BinOp::Min => b.int(pick(IntBin::MinS, IntBin::MinU), x, y),
        BinOp::Max => b.int(pick(IntBin::MaxS, IntBin::MaxU), x, y),
        BinOp::MulHi => mul_hi(b, elem, x, y),
        BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Powf => x,
    };
    match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Shl => wrap(b, elem, result),
        // Only one quotient is outside of the range: that of the minimum by −1.
        BinOp::Div if signed => wrap(b, elem, result),
        BinOp::Div
        | BinOp::Rem
        | BinOp::And
        | BinOp::Or
        | BinOp::Xor
        | BinOp::Shr
        | BinOp::Min
        | BinOp::Max
        | BinOp::MulHi
        | BinOp::Powf => result,
    }
}

/// Division by 0 gives a quotient of 0 and a remainder equal to the dividend: the operation is done with a divisor of 1, and the quotient
/// replaced by 0.
fn divide(b: &mut Builder, op: IntBin, x: Value, y: Value) -> Value {
    let (zero, one) = (b.const_like(y, 0), b.const_like(y, 1));
    let by_zero = b.cmp_u(Pred::Eq, y, zero);
    let divisor = b.select(by_zero, one, y);
    let result = b.int(op, x, divisor);
    let otherwise = if matches!(op, IntBin::RemS | IntBin::RemU) { x } else { zero };
    b.select(by_zero, otherwise, result)
}

/// A shift by an amount outside of the width, including negative amounts, gives 0, or the sign for an arithmetic shift to the right.
fn shift(b: &mut Builder, op: IntBin, elem: Elem, x: Value, y: Value) -> Value {
    let width = if elem.bits() == 64 { 64 } else { 32 };
    let low = |b: &mut Builder, y: Value| if width == 64 { b.one(OpKind::Truncate(Ty::B32), &[y]) } else { y };
    if op == IntBin::ShrS {
        let amount = int_const(b, IntBin::MinU, y, width - 1);
        let amount = low(b, amount);
        return b.int(op, x, amount);
    }
    // Amounts between the narrow width and 32 shift all bits out of the type as well.
    let limit = b.const_like(y, width.cast_signed());
    let inside = b.cmp_u(Pred::Lt, y, limit);
    let amount = low(b, y);
    let amount = int_const(b, IntBin::And, amount, width - 1);
    let shifted = b.int(op, x, amount);
    let zero = b.const_like(x, 0);
    b.select(inside, shifted, zero)
}

pub(super) fn compare(b: &mut Builder, pred: Pred, elem: Elem, x: Value, y: Value) -> Value {
    if elem == Elem::Bool {
        return compare_conditions(b, pred, x, y);
    }
    if !elem.is_arith_int() {
        refuse(b, pred.name(), elem);
        return b.pred(false);
    }
    b.one(OpKind::IntCmp { pred, signed: elem.is_signed_int() }, &[x, y])
}

/// Compares conditions, by the order `false < true`.
fn compare_conditions(b: &mut Builder, pred: Pred, x: Value, y: Value) -> Value {
    match pred {
        Pred::Eq | Pred::Ne => b.one(OpKind::IntCmp { pred, signed: false }, &[x, y]),
        Pred::Lt => {
            let not = b.not(x);
            b.and(not, y)
        }
        Pred::Gt => {
            let not = b.not(y);
            b.and(x, not)
        }
        Pred::Le => {
            let not = b.not(x);
            b.or(not, y)
        }
        Pred::Ge => {
            let not = b.not(y);
            b.or(x, not)
        }
    }
}
