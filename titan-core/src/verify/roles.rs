//! The roles of a kernel: the blocks that run concurrently, and the operations before them.

use crate::ir::{Block, Kernel, OpId, OpKind, TtgOp};

/// The operation `ttg.roles`, if there is one.
pub(in crate::verify) fn roles_op(kernel: &Kernel) -> Option<OpId> {
    let top = &kernel.block(kernel.body).ops;
    top.iter().copied().find(|id| kernel.op(*id).kind == OpKind::Ttg(TtgOp::Roles))
}

/// The blocks that run concurrently: the regions of the roles with their names, or the whole kernel.
pub(in crate::verify) fn threads(kernel: &Kernel) -> Vec<(String, Block)> {
    match roles_op(kernel) {
        Some(op) => {
            let names = kernel.roles.iter().map(|r| format!("`{}`", r.name));
            names.zip(kernel.op(op).regions.iter().copied()).collect()
        }
        None => vec![("the kernel".to_owned(), kernel.body)],
    }
}

/// The operations before the roles, where barriers are initialised.
pub(in crate::verify) fn beginning(kernel: &Kernel) -> &[OpId] {
    let top = &kernel.block(kernel.body).ops;
    let end = roles_op(kernel).and_then(|r| top.iter().position(|o| *o == r)).unwrap_or(top.len());
    &top[..end]
}
