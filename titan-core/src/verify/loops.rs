//! Properties of loops as written: the number of iterations, and how values change from one iteration to the next.

use crate::analysis::uses::Tree;
use crate::ir::{BinOp, Def, Kernel, OpId, OpKind, Value};

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
