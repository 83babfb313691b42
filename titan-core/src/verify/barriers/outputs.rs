//! Rule 78: no two programs write the same elements of an output.
//!
//! The verifier has proved this for the kernel from which a program was lowered, by forms of its coordinates ([`Partition`]). The proof is
//! not passed on: it is repeated for the program, whose stores may have become bulk stores, whose tiles may have been distributed to
//! clusters, and which may have been written by hand. Programs of different clusters are distinguished here, those of one cluster by rule
//! 72.
//!
//! Deliberately absent: how the parts are determined ([`crate::analysis::partition`]).

use super::wrong;
use crate::analysis::access::Accesses;
use crate::analysis::forms::{Forms, is_input};
use crate::analysis::number::root;
use crate::analysis::partition::Partition;
use crate::analysis::uses::Tree;
use crate::ir::{Effect, Kernel, NvOp, Op, OpKind, Ty, Value};
use crate::verify::Error;

/// Violations of rule 78.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let forms = Forms::new(kernel, true);
    let known = Accesses::new(kernel, &forms, &Tree::new(kernel));
    let mut errors = Vec::new();
    kernel.walk(&mut |id, op| {
        let of_bytes = is_bulk_store_of_bytes(kernel, op);
        if may_write(kernel, op) && !known.list.iter().any(|access| access.op == id && (access.shared || !of_bytes)) {
            errors.push(wrong(op.loc, "the elements of an output that are written here could not be determined"));
        }
    });
    errors.extend(Partition::of(kernel).err().unwrap_or_default());
    errors
}

/// Whether an operation may write to an output: an operand is an output, or a part of one, and the operation does not only name or read it.
fn may_write(kernel: &Kernel, op: &Op) -> bool {
    match op.kind.effect() {
        Effect::Pure | Effect::Read | Effect::Control => false,
        Effect::Write | Effect::Atomic => true,
        Effect::Trap | Effect::Print | Effect::Pipeline => op.args.iter().any(|arg| is_of_output(kernel, *arg)),
    }
}

/// Whether a bulk store does not name the tile that it writes, so that it is unspecified which elements its bytes are.
fn is_bulk_store_of_bytes(kernel: &Kernel, op: &Op) -> bool {
    let named = op.args.first().is_some_and(|to| matches!(kernel.ty(*to), Ty::Source(..)));
    matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. })) && !named
}

fn is_of_output(kernel: &Kernel, value: Value) -> bool {
    matches!(kernel.ty(value), Ty::Tensor(..)) && !root(kernel, value).is_some_and(|param| is_input(kernel, param))
}
