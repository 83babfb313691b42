//! Maxima of shape names and arguments that follow from what every launch checks: extents that are declared as expressions, which are those
//! of tensors and so at most 2³¹ − 1, and requirements.
//!
//! ```text
//! %y: mut tensor<f32>[G * 2, N]     G is at most 2³⁰ − 1
//! require(%n * 4 <= M)              n is at most 2²⁹ − 1
//! ```
//!
//! Deliberately absent: minima, and requirements between two unknowns that are neither a bound of one of them.

use super::{Range, bound_by};
use crate::analysis::affine::I32;
use crate::ir::{DimSpec, HostExpr, HostOp, ParamKind, Signature};

/// The maximum of a leaf of host expressions; `i64::MAX` if nothing is checked about it.
pub(super) fn most(sig: &Signature, leaf: &HostExpr) -> i64 {
    let mut most = i64::MAX;
    let mut at_most = |expr: &HostExpr, limit: i64| {
        if let Some(limit) = inverse(sig, expr, leaf, limit) {
            most = most.min(limit);
        }
    };
    for param in &sig.params {
        // The extents of an optional tensor are not checked where it is absent.
        if let ParamKind::Tensor { shape, optional: false, .. } = &param.kind {
            for dim in shape {
                match dim {
                    DimSpec::Equals(expr) => at_most(expr, I32.hi),
                    DimSpec::Bind(_) | DimSpec::Any => {}
                }
            }
        }
    }
    sig.requires.iter().for_each(|condition| required(sig, condition, &mut at_most));
    most
}

/// The upper bounds of expressions that a condition states.
fn required(sig: &Signature, condition: &HostExpr, at_most: &mut dyn FnMut(&HostExpr, i64)) {
    let HostExpr::Binary(op, a, b) = condition else { return };
    let highest = |expr: &HostExpr| plain(sig, expr).hi;
    match op {
        HostOp::And => {
            required(sig, a, at_most);
            required(sig, b, at_most);
        }
        HostOp::Eq => {
            at_most(a, highest(b));
            at_most(b, highest(a));
        }
        HostOp::Le => at_most(a, highest(b)),
        HostOp::Lt => at_most(a, highest(b).saturating_sub(1)),
        HostOp::Ge => at_most(b, highest(a)),
        HostOp::Gt => at_most(b, highest(a).saturating_sub(1)),
        HostOp::Ne
        | HostOp::Or
        | HostOp::Add
        | HostOp::Sub
        | HostOp::Mul
        | HostOp::Div
        | HostOp::Rem
        | HostOp::Cdiv
        | HostOp::Min
        | HostOp::Max => {}
    }
}

/// The range of an expression, without what is checked about its leaves.
fn plain(sig: &Signature, expr: &HostExpr) -> Range {
    bound_by(sig, expr, &|_| i64::MAX)
}

/// The maximum of a leaf if an expression of it has a maximum.
fn inverse(sig: &Signature, expr: &HostExpr, leaf: &HostExpr, limit: i64) -> Option<i64> {
    if expr == leaf {
        return Some(limit);
    }
    let HostExpr::Binary(op, a, b) = expr else { return None };
    let of = |expr: &HostExpr, limit: Option<i64>| inverse(sig, expr, leaf, limit?);
    let least = |expr: &HostExpr| plain(sig, expr).lo;
    let positive = |expr: &HostExpr| match expr {
        HostExpr::Const(c) if *c > 0 => Some(*c),
        HostExpr::Const(_)
        | HostExpr::Symbol(_)
        | HostExpr::Scalar(_)
        | HostExpr::Dim(..)
        | HostExpr::Not(_)
        | HostExpr::Binary(..) => None,
    };
    match op {
        // a ≤ limit − b, for the least b.
        HostOp::Add => of(a, limit.checked_sub(least(b))).or_else(|| of(b, limit.checked_sub(least(a)))),
        HostOp::Sub => of(a, limit.checked_add(plain(sig, b).hi)),
        HostOp::Mul => match (positive(a), positive(b)) {
            (_, Some(by)) => of(a, Some(limit.div_euclid(by))),
            (Some(by), None) => of(b, Some(limit.div_euclid(by))),
            (None, None) => None,
        },
        // ⌈a / by⌉ ≤ limit if and only if a ≤ limit · by.
        HostOp::Cdiv => of(a, limit.checked_mul(positive(b)?)),
        // ⌊a / by⌋ ≤ limit if and only if a < (limit + 1) · by; a quotient that is truncated is not less than ⌊a / by⌋.
        HostOp::Div => {
            let by = positive(b)?;
            of(a, limit.checked_add(1)?.checked_mul(by)?.checked_sub(1))
        }
        HostOp::Rem
        | HostOp::Min
        | HostOp::Max
        | HostOp::Eq
        | HostOp::Ne
        | HostOp::Lt
        | HostOp::Le
        | HostOp::Gt
        | HostOp::Ge
        | HostOp::And
        | HostOp::Or => None,
    }
}
