//! Properties of loops as written: the number of iterations, and how values change from one iteration to the next.

use crate::analysis::forms::Forms;
use crate::analysis::grid::{bound, is_number};
use crate::analysis::uses::Tree;
use crate::ir::{BinOp, Def, HostExpr, HostOp, Kernel, OpId, OpKind, ParamKind, Value};

/// Whether the bounds of a loop show that it executes at most one iteration.
pub(in crate::verify) fn once(kernel: &Kernel, looped: OpId) -> bool {
    let op = kernel.op(looped);
    let bound = |i: usize| op.args.get(i).and_then(|v| kernel.int_constant(*v));
    match (&op.kind, bound(0), bound(1), bound(2)) {
        (OpKind::For(_), Some(lo), Some(hi), Some(step)) => step > 0 && hi.saturating_sub(lo) <= step,
        (_, _, _, _) => false,
    }
}

/// Whether a value may differ between iterations of a loop.
pub(in crate::verify) fn changes(kernel: &Kernel, tree: &Tree, looped: OpId, value: Value) -> bool {
    let within = |op: OpId| tree.around(op).any(|o| o == looped);
    match kernel.value(value).def {
        Def::Param(_) => false,
        Def::Result(op, _) => within(op),
        Def::BlockArg(block, _) => tree.owner(block).is_some_and(|op| op == looped || within(op)),
    }
}

/// The increase of a value when the index of a loop increases by one, modulo 2³²; `None` if it depends on anything else in the loop.
pub(in crate::verify) fn step_of(kernel: &Kernel, tree: &Tree, looped: OpId, value: Value) -> Option<i64> {
    let body = kernel.op(looped).regions.first().filter(|_| matches!(kernel.op(looped).kind, OpKind::For(_)));
    if body.is_some_and(|b| kernel.block(*b).args.first() == Some(&value)) {
        return Some(1);
    }
    let of = |v: &Value| step_of(kernel, tree, looped, *v);
    match kernel.def_op(value).map(|op| (&op.kind, &op.args[..])) {
        Some((OpKind::Const(_), _)) => Some(0),
        Some((OpKind::Binary(BinOp::Add), [a, b])) => of(a)?.checked_add(of(b)?),
        Some((OpKind::Binary(BinOp::Sub), [a, b])) => of(a)?.checked_sub(of(b)?),
        Some((OpKind::Binary(BinOp::Mul), [a, b])) => match (kernel.int_constant(*a), kernel.int_constant(*b)) {
            (Some(k), _) => of(b)?.checked_mul(k),
            (_, Some(k)) => of(a)?.checked_mul(k),
            (None, None) => (of(a)? == 0 && of(b)? == 0).then_some(0),
        },
        Some(_) | None => (!changes(kernel, tree, looped, value)).then_some(0),
    }
}

/// Whether every launch and every iteration around a loop gives its step a positive value: by its range, or because the launch requires it.
pub(in crate::verify) fn is_positive(kernel: &Kernel, forms: &Forms, step: Value) -> bool {
    forms.range(step).lo > 0 || kernel.sig.requires.iter().any(|condition| requires_positive(kernel, condition, step))
}

/// Whether a value is positive if a condition on a launch holds.
fn requires_positive(kernel: &Kernel, condition: &HostExpr, value: Value) -> bool {
    let HostExpr::Binary(op, a, b) = condition else { return false };
    let at_least = |side: &HostExpr, other: &HostExpr, least: i64| {
        is_given_by(kernel, side, value) && bound(&kernel.sig, other).lo >= least
    };
    match op {
        HostOp::And => requires_positive(kernel, a, value) || requires_positive(kernel, b, value),
        HostOp::Gt => at_least(a, b, 0),
        HostOp::Ge => at_least(a, b, 1),
        HostOp::Lt => at_least(b, a, 0),
        HostOp::Le => at_least(b, a, 1),
        HostOp::Eq => at_least(a, b, 1) || at_least(b, a, 1),
        HostOp::Ne
        | HostOp::Or
        | HostOp::Add
        | HostOp::Sub
        | HostOp::Mul
        | HostOp::Div
        | HostOp::Rem
        | HostOp::Cdiv
        | HostOp::Min
        | HostOp::Max => false,
    }
}

/// Whether a value is the argument, or the extent, that an expression of a launch names.
fn is_given_by(kernel: &Kernel, expr: &HostExpr, value: Value) -> bool {
    match (expr, &kernel.value(value).def) {
        (HostExpr::Scalar(named), Def::Param(param)) => {
            named == param && matches!(kernel.sig.params.get(*param).map(|p| &p.kind), Some(ParamKind::Scalar(_)))
        }
        (HostExpr::Symbol(_) | HostExpr::Dim(..), Def::Result(..)) => is_number(kernel, expr, value),
        (
            HostExpr::Const(_)
            | HostExpr::Not(_)
            | HostExpr::Binary(..)
            | HostExpr::Scalar(_)
            | HostExpr::Symbol(_)
            | HostExpr::Dim(..),
            Def::Param(_) | Def::Result(..) | Def::BlockArg(..),
        ) => false,
    }
}
