//! Remainders of floats, `x % y`: x minus the quotient, truncated, times y. They are exact, as C's `fmod` and Rust's `%`.
//!
//! With a = |x| and c = |y|, the quotient q is rounded to nearest and the rest a − q · c computed by one fused multiply-add; if it is
//! negative, c is added. This is exact while q is not too large: let p be the digits of the type and a / c below 2^(p−2).
//!
//! * The rounded quotient a / c is off by at most ¼, so that q is off by at most ¾ from the exact quotient, and |a − q · c| ≤ ¾ c.
//! * The rest is a multiple of the last place of c if a ≥ c, and less than c: it has at most p digits. If a < c then q is 0, or 1 for a ≥ c / 2,
//!   where the difference is exact by Sterbenz's lemma. So the multiply-add does not round.
//! * The sum of a negative rest and c is between c / 4 and c, and the exact remainder, which has at most p digits for the same reason.
//!
//! Larger quotients are computed behind a branch: the quotient's digits come in pieces of at most [`PIECE`], from the highest on, and each
//! piece leaves a rest with a sign, of at most ¾ of the divisor times the weight of the piece.
//!
//! Deliberately absent: remainders of integers (`int`).

use super::emit::{cvt, exp2i, fcmp, fcmp_const, int_const, num, patch, scale, un, with_sign};
use super::float::Range;
use crate::ir::Pred;
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, IntBin, Num, OpKind, Ty, Value};

const F64: FloatTy = FloatTy::F64;

/// The digits of a quotient that are computed at once in `f64`. The product with a reciprocal is off by two roundings, together at most 2⁻⁵² of
/// less than 2⁵⁰: at most ¼, as above.
const PIECE: i64 = 50;

/// `x % y` in `f32` or `f64`.
pub(super) fn remainder(b: &mut Builder, ty: FloatTy, range: Range, x: Value, y: Value) -> Value {
    let (a, c) = (un(b, FloatUn::Abs, ty, x), un(b, FloatUn::Abs, ty, y));
    let limit = scale(b, ty, c, if ty == F64 { exp2i(51) } else { exp2i(22) });
    // False for NaN: those and infinities may take either way.
    let near = fcmp(b, Pred::Lt, ty, a, limit);
    let mut open = b.begin_if(near, &[ty.ty()]);
    let quotient = b.float(FloatBin::Div, ty, a, c);
    let rest = piece(b, ty, quotient, a, c);
    let rest = not_negative(b, ty, rest, c);
    b.terminate(OpKind::Yield, &[rest]);
    b.begin_else(&mut open);
    let rest = if ty == F64 { far_double(b, a, c) } else { far_single(b, range, a, c) };
    b.terminate(OpKind::Yield, &[rest]);
    let rest = b.end(open).first().copied().unwrap_or(a);
    // A finite number is its own remainder by an infinite one. By zero, and of an infinite number, it is NaN.
    let (infinite, finite) =
        (fcmp_const(b, Pred::Eq, ty, c, f64::INFINITY), fcmp_const(b, Pred::Lt, ty, a, f64::INFINITY));
    let own = b.and(infinite, finite);
    let rest = b.select(own, a, rest);
    let positive = fcmp_const(b, Pred::Gt, ty, c, 0.0);
    let defined = b.and(positive, finite);
    let undefined = b.not(defined);
    let rest = patch(b, ty, rest, undefined, f64::NAN);
    with_sign(b, ty, rest, x)
}

/// `a − q · c` for the integer nearest to a quotient.
fn piece(b: &mut Builder, ty: FloatTy, quotient: Value, a: Value, c: Value) -> Value {
    let nearest = un(b, FloatUn::RoundEven, ty, quotient);
    let minus = un(b, FloatUn::Neg, ty, nearest);
    b.fma(ty, minus, c, a)
}

/// A rest above −c, plus c if it is negative. NaN stays NaN.
fn not_negative(b: &mut Builder, ty: FloatTy, rest: Value, c: Value) -> Value {
    let negative = fcmp_const(b, Pred::Lt, ty, rest, 0.0);
    let moved = b.float(FloatBin::Add, ty, rest, c);
    let rest = b.select(negative, moved, rest);
    // Without the sign of a rest −0.
    un(b, FloatUn::Abs, ty, rest)
}

/// Quotients of two `f32` are below 2²⁷⁸, of two `f16` below 2⁴⁰. All weights are in the range of `f64`, in which both are exact, and each
/// rest has the at most 25 digits between the last place of `c` times the weight and the sign.
fn far_single(b: &mut Builder, range: Range, a: Value, c: Value) -> Value {
    let (mut rest, c) = (cvt(b, Num::F32, Num::F64, a), cvt(b, Num::F32, Num::F64, c));
    let one = num(b, F64, 1.0);
    let inverse = b.float(FloatBin::Div, F64, one, c);
    let pieces = if range == Range::Half { 1 } else { 6 };
    for place in (0..pieces).rev() {
        let weight = place * PIECE;
        let (divisor, inverse) = (scale(b, F64, c, exp2i(weight)), scale(b, F64, inverse, exp2i(-weight)));
        let quotient = b.float(FloatBin::Mul, F64, rest, inverse);
        rest = piece(b, F64, quotient, rest, divisor);
    }
    let rest = not_negative(b, F64, rest, c);
    cvt(b, Num::F64, Num::F32, rest)
}

/// Of `f64`, the quotient may have 2098 digits. The significands are taken as integers below 2⁵³, and in a loop the rest is multiplied by a
/// power of two and reduced, until it has the exponent of the divisor. Rests are integers of at most ¾ of the divisor, so that they are
/// exact, and so are their products with powers of two.
fn far_double(b: &mut Builder, a: Value, c: Value) -> Value {
    let ((significand, above), (divisor, below)) = (integer(b, a), integer(b, c));
    let one = num(b, F64, 1.0);
    let inverse = b.float(FloatBin::Div, F64, one, divisor);
    let digits = b.int(IntBin::Sub, above, below);
    let (open, carried) = b.begin_loop(&[significand, digits], &[Ty::B64]);
    let [rest, digits] = carried[..] else {
        b.fail("a loop with other values".to_owned());
        return a;
    };
    let most = b.i64(PIECE);
    let taken = b.int(IntBin::MinS, digits, most);
    let scaled = power_of_two(b, taken);
    let rest = b.float(FloatBin::Mul, F64, rest, scaled);
    let quotient = b.float(FloatBin::Mul, F64, rest, inverse);
    let rest = piece(b, F64, quotient, rest, divisor);
    let digits = b.int(IntBin::Sub, digits, taken);
    let none = b.i64(0);
    let done = b.cmp_s(Pred::Le, digits, none);
    let mut inner = b.begin_if(done, &[]);
    b.terminate(OpKind::Break(0), &[rest]);
    b.begin_else(&mut inner);
    b.terminate(OpKind::Yield, &[]);
    b.end(inner);
    b.terminate(OpKind::Continue(0), &[rest, digits]);
    let rest = b.end(open).first().copied().unwrap_or(a);
    let rest = not_negative(b, F64, rest, divisor);
    // Two factors, of which neither is beyond the range: the first product is a normal number, and the second is the exact remainder.
    let half = int_const(b, IntBin::ShrS, below, 1);
    let other = b.int(IntBin::Sub, below, half);
    let (first, second) = (power_of_two(b, half), power_of_two(b, other));
    let rest = b.float(FloatBin::Mul, F64, rest, first);
    b.float(FloatBin::Mul, F64, rest, second)
}

/// 2ⁿ for the exponents of normal numbers.
fn power_of_two(b: &mut Builder, n: Value) -> Value {
    let biased = int_const(b, IntBin::Add, n, 1023);
    int_const(b, IntBin::Shl, biased, 52)
}

/// A magnitude as an integer from 2⁵² to less than 2⁵³, as a float, times 2ⁿ. Zeros, infinities and NaN give any such numbers.
fn integer(b: &mut Builder, x: Value) -> (Value, Value) {
    let small = fcmp_const(b, Pred::Lt, F64, x, f64::MIN_POSITIVE);
    let (one, factor) = (num(b, F64, 1.0), num(b, F64, exp2i(54)));
    let factor = b.select(small, factor, one);
    let x = b.float(FloatBin::Mul, F64, x, factor);
    let exponent = int_const(b, IntBin::ShrU, x, 52);
    let digits = int_const(b, IntBin::And, x, (1 << 52) - 1);
    let significand = int_const(b, IntBin::Or, digits, (1023 + 52) << 52);
    let (bias, more) = (b.i64(1023 + 52), b.i64(1023 + 52 + 54));
    let bias = b.select(small, more, bias);
    (significand, b.int(IntBin::Sub, exponent, bias))
}
