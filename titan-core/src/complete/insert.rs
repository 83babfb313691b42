//! Inserts commits and waits into a kernel.

use super::walk::{Before, Found, Wait};
use crate::analysis::uses::Tree;
use crate::collections::SortedMap;
use crate::ir::{BarrierTy, Kernel, LocalOp, NvGroup, NvOp, OpKind, Ty};
use crate::pipeline::edit::Edit;

/// The kernel with these commits and waits. What it waited for by other names is gone.
pub(super) fn insert(kernel: &Kernel, found: &Found) -> Kernel {
    let tree = Tree::new(kernel);
    let mut edit = Edit::new(kernel.clone());
    // The groups of a class are numbered in program order.
    let mut numbers = SortedMap::new();
    let mut order = Vec::new();
    kernel.walk(&mut |id, _| order.push(id));
    for id in order {
        // In program order, so that groups are numbered in it.
        let Some(block) = tree.block_of(id) else { continue };
        edit.loc = kernel.op(id).loc;
        if let Some(Before { commit, waits }) = found.before.get(&id) {
            if *commit {
                commit_group(&mut edit, &mut numbers, NvGroup::CpAsync);
            }
            for (group, Wait { n, read }) in waits {
                let read = *read && *group == NvGroup::BulkStore;
                edit.raw(OpKind::Nv(NvOp::WaitGroup { group: *group, n: *n, read }), &[], &[], Vec::new());
            }
            edit.put_before(block, id);
        }
        if let Some(group) = found.commits.get(&id) {
            commit_group(&mut edit, &mut numbers, *group);
            edit.put_after(block, id);
        }
        if let Some(n) = found.products.get(&id) {
            edit.kernel.ops[id.index()].kind =
                OpKind::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, n: *n, read: false });
        }
        if matches!(kernel.op(id).kind, OpKind::Local(LocalOp::Settle { .. })) {
            edit.take_out(block, id);
        }
    }
    edit.kernel.canonical()
}

/// Adds the commit of the open group of a class.
fn commit_group(edit: &mut Edit, numbers: &mut SortedMap<NvGroup, u32>, group: NvGroup) {
    let number = numbers.entry(group).or_insert(0);
    let ty = Ty::Barrier(BarrierTy::Vtok(group.class(), *number));
    edit.raw(OpKind::Nv(NvOp::Commit { group, n: *number }), &[], &[ty], Vec::new());
    *number += 1;
}
