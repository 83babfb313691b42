//! Floats: computed in `f64`, rounded once to the element.
//!
//! For `+ - * /` and `sqrt` of types with at most 24 significant bits that is the correctly rounded result (`f64` has more
//! than twice as many, and two more). A fused multiply-add is summed with the sticky bit kept, for the same reason.

use titan_core::ir::{BinOp, Elem, UnOp};
use titan_core::num::{Format, fma, tf32_from_f64};

/// `x` rounded to the element type.
pub(in crate::sim) fn round(elem: Elem, x: f64) -> f64 {
    let through = |format: Format| format.to_f64(format.from_f64(x));
    match elem {
        #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
        Elem::F32 => f64::from(x as f32),
        Elem::F16 => through(Format::F16),
        Elem::Bf16 => through(Format::BF16),
        Elem::Tf32 => f64::from(tf32_from_f64(x)),
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
        | Elem::Bool => x,
    }
}

/// Applies a binary operation.
pub(super) fn binary(op: BinOp, elem: Elem, a: f64, b: f64) -> f64 {
    let exact = match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div => a / b,
        BinOp::Min => return min(a, b),
        BinOp::Max => return -min(-a, -b),
        // Exact, and so a number of every type that has the operands.
        BinOp::Rem => a % b,
        BinOp::Powf => a.powf(b),
        // The verifier admits these operations on integers only.
        BinOp::MulHi | BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr => f64::NAN,
    };
    round(elem, exact)
}

/// The smaller number; if one is NaN, the other. −0 is less than +0.
fn min(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a < b || (a == b && a.is_sign_negative()) {
        a
    } else {
        b
    }
}

/// `a · b + c`, rounded once.
pub(in crate::sim) fn mul_add(elem: Elem, a: f64, b: f64, c: f64) -> f64 {
    if elem == Elem::F64 {
        return fma(a, b, c);
    }
    // The product is exact in `f64`: it has at most 48 significant bits.
    let product = a * b;
    let sum = product + c;
    if !sum.is_finite() {
        return round(elem, sum);
    }
    // The part that the sum lost (Knuth's TwoSum) becomes a sticky last bit: round to odd.
    let part = sum - product;
    let lost = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits();
    let odd = if lost == 0.0 || bits & 1 == 1 {
        sum
    } else if (lost > 0.0) == (sum > 0.0) {
        f64::from_bits(bits | 1)
    } else {
        f64::from_bits(bits - 1)
    };
    round(elem, odd)
}

/// Applies a unary operation.
pub(super) fn unary(op: UnOp, elem: Elem, x: f64) -> f64 {
    let exact = match op {
        UnOp::Neg => return -x,
        UnOp::Abs => return x.abs(),
        UnOp::Exp => x.exp(),
        UnOp::Exp2 => x.exp2(),
        UnOp::Ln => x.ln(),
        UnOp::Log2 => x.log2(),
        UnOp::Sqrt => x.sqrt(),
        UnOp::Rsqrt => 1.0 / x.sqrt(),
        UnOp::Recip => 1.0 / x,
        UnOp::Sin => x.sin(),
        UnOp::Cos => x.cos(),
        UnOp::Tanh => x.tanh(),
        UnOp::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        UnOp::Erf => erf(x),
        UnOp::Floor => x.floor(),
        UnOp::Ceil => x.ceil(),
        UnOp::Trunc => x.trunc(),
        UnOp::Round => x.round(),
        UnOp::RoundTiesEven => x.round_ties_even(),
        UnOp::Not | UnOp::IsNan | UnOp::CountOnes | UnOp::LeadingZeros => f64::NAN,
    };
    round(elem, exact)
}

/// The error function: its power series near zero, the continued fraction of its complement elsewhere (Abramowitz, Stegun,
/// 7.1.5 and 7.1.14).
fn erf(x: f64) -> f64 {
    let (a, two_over_root_pi) = (x.abs(), std::f64::consts::FRAC_2_SQRT_PI);
    if x.is_nan() || a > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    if a < 2.5 {
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term.abs() > 1e-18 * sum.abs() && n < 200.0 {
            n += 1.0;
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        return two_over_root_pi * sum;
    }
    let mut fraction = 0.0;
    for n in (1..=60).rev() {
        fraction = f64::from(n) / 2.0 / (a + fraction);
    }
    let complement = (-a * a).exp() / (a + fraction) * two_over_root_pi / 2.0;
    (1.0 - complement).copysign(x)
}
