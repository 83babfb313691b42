//! How far results may be from the exact value: the table of `docs/semantics.md`, once more.
//!
//! A bound is in units in the last place of `f32`, of `f64` for `f64`, counted at the exact value, before one rounding to the
//! element type. Sums are bounded by what they add up: one rounding for each addition.

use titan_core::ir::{Elem, UnOp};

/// The bounds of functions of one operand. What is not here is exact.
const FUNCTIONS: [(UnOp, f64); 13] = [
    (UnOp::Sqrt, 0.5),
    (UnOp::Recip, 0.5),
    (UnOp::Rsqrt, 2.0),
    (UnOp::Exp, 2.6),
    (UnOp::Exp2, 2.0),
    (UnOp::Ln, 2.0),
    (UnOp::Log2, 2.0),
    (UnOp::Sin, 2.0),
    (UnOp::Cos, 2.0),
    (UnOp::Tanh, 4.0),
    (UnOp::Sigmoid, 4.0),
    (UnOp::Erf, 4.0),
    // Exact; listed for completeness.
    (UnOp::Neg, 0.0),
];

/// What an operation may be off by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bound {
    /// In last places of the exact value.
    pub(crate) ulps: f64,
    /// An additional absolute error.
    pub(crate) absolute: f64,
    /// Whether a zero may have either sign.
    pub(crate) any_zero: bool,
}

impl Bound {
    /// The exact value, rounded once to the type.
    pub(crate) const EXACT: Bound = Bound { ulps: 0.0, absolute: 0.0, any_zero: false };
}

/// The bound of a function, and of the reference that it is compared with.
pub(crate) fn function(op: UnOp, elem: Elem, x: f64) -> Bound {
    let ulps = FUNCTIONS.iter().find(|(f, _)| *f == op).map_or(0.0, |(_, ulps)| *ulps);
    let double = elem == Elem::F64;
    // The reference is computed in `f64`, within one place of it.
    let ulps = match (op, elem) {
        (UnOp::Exp, Elem::F16) => 20.0,
        (UnOp::Exp, Elem::Bf16) => 70.0,
        _ if double && (2.0..=2.6).contains(&ulps) => 4.0,
        _ => ulps,
    };
    let exact = matches!(op, UnOp::Sqrt | UnOp::Recip) || ulps == 0.0;
    let reference = if double && !exact { 1.0 } else { 0.0 };
    // One rounding to the type is allowed to everybody.
    let ulps = if exact { 0.0 } else { ulps + reference };
    let small = if double { 2f64.powi(-51) } else { 2f64.powi(-22) };
    let absolute = match op {
        UnOp::Ln | UnOp::Log2 if (x - 1.0).abs() < 0.5 => small,
        UnOp::Sin | UnOp::Cos if x.abs() > 65536.0 => small,
        UnOp::Exp2 if x < -125.0 && !double => 2f64.powi(-125),
        UnOp::Exp if x < -86.0 && elem == Elem::Bf16 => 2f64.powi(-125),
        _ => 0.0,
    };
    Bound { ulps, absolute, any_zero: false }
}

/// The bound of a power.
pub(crate) fn power(elem: Elem, value: f64) -> Bound {
    let ulps = match elem {
        // The reference is within one place of `f64`.
        Elem::F64 => 2.0 + 1.0,
        Elem::F16 => 30.0,
        Elem::Bf16 => 150.0,
        _ => 1.0,
    };
    let absolute = if elem == Elem::Bf16 && value.abs() < 2f64.powi(-125) { 2f64.powi(-125) } else { 0.0 };
    Bound { ulps, absolute, any_zero: false }
}

/// The bound of a sum of `n` terms whose magnitudes add up to `magnitude`, in any order, accumulated in `f32` or `f64`.
pub(crate) fn sum(elem: Elem, n: usize, magnitude: f64) -> Bound {
    let unit = if elem == Elem::F64 { 2f64.powi(-53) } else { 2f64.powi(-24) };
    Bound { ulps: 0.0, absolute: n as f64 * unit * magnitude * 1.01, any_zero: false }
}

/// The error bound of a product of `n` factors, in any order.
pub(crate) fn product(elem: Elem, n: usize, value: f64) -> Bound {
    let (unit, tiny) = if elem == Elem::F64 { (2f64.powi(-53), 0.0) } else { (2f64.powi(-24), 2f64.powi(-126)) };
    Bound { ulps: 0.0, absolute: n as f64 * (unit * value.abs() * 1.01 + tiny), any_zero: false }
}
