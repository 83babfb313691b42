//! Rule 23: `Option<&Tensor>` is used only where a condition implies that it is present.
//!
//! Conditions are analysed through `&` and `!`: in an arm of an `if`, everything that its condition implies holds. The test whether a
//! tensor is present is always allowed.

use super::Error;
use crate::analysis::number::root;
use crate::diag::Code;
use crate::ir::{BinOp, Block, Kernel, OpKind, ParamKind, Ty, UnOp, Value};

/// Violations of rule 23.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let optional = |p: &crate::ir::Param| matches!(p.kind, ParamKind::Tensor { optional: true, .. });
    let absent: Vec<bool> = kernel.sig.params.iter().map(optional).collect();
    let mut errors = Vec::new();
    block(kernel, kernel.body, &absent, &mut errors);
    errors
}

/// Checks a block. `absent` is, for each parameter, whether it may be absent here.
fn block(kernel: &Kernel, at: Block, absent: &[bool], errors: &mut Vec<Error>) {
    for id in &kernel.block(at).ops {
        let op = kernel.op(*id);
        let tensors = op.args.iter().filter(|v| matches!(kernel.ty(**v), Ty::Tensor(..)));
        for (tensor, param) in tensors.filter_map(|v| Some((*v, root(kernel, *v)?))) {
            // For a view of a tensor that may be absent, the error is reported where the view is created.
            let direct = tensor.index() == param && op.kind != OpKind::Present;
            if direct && absent.get(param).copied().unwrap_or(false) {
                let name = kernel.display_name(kernel.param(param));
                let title = format!("`{name}` is optional and may be absent here");
                errors.push(
                    Error::new(Code::MaybeAbsent, op.loc, title)
                        .help(format!("`if let Some({name}) = {name} {{ .. }}`")),
                );
            }
        }
        for (i, region) in op.regions.iter().enumerate() {
            let mut inside = absent.to_vec();
            if let (OpKind::If, Some(condition)) = (&op.kind, op.args.first()) {
                learn(kernel, *condition, i == 0, &mut inside);
            }
            block(kernel, *region, &inside, errors);
        }
    }
}

/// Marks the parameters that are present if a condition has this truth value.
fn learn(kernel: &Kernel, condition: Value, truth: bool, absent: &mut [bool]) {
    let mut open = vec![(condition, truth)];
    while let Some((condition, truth)) = open.pop() {
        let Some(op) = kernel.def_op(condition) else { continue };
        match (&op.kind, op.args.as_slice()) {
            (OpKind::Present, [tensor]) if truth => {
                let slot = root(kernel, *tensor).and_then(|p| absent.get_mut(p));
                slot.into_iter().for_each(|s| *s = false);
            }
            (OpKind::Unary(UnOp::Not), [a]) => open.push((*a, !truth)),
            (OpKind::Binary(BinOp::And), [a, b]) if truth => open.extend([(*a, true), (*b, true)]),
            (OpKind::Binary(BinOp::Or), [a, b]) if !truth => open.extend([(*a, false), (*b, false)]),
            (_, _) => {}
        }
    }
}
