//! Applies an overlay of tentative changes to a kernel.

use super::super::edit::Edit;
use super::place::Around;
use crate::analysis::proxy::{Overlay, threads};
use crate::collections::SortedMap;
use crate::ir::{
    BarrierTy, Block, Class, FenceSpace, Kernel, NvGroup, NvOp, OpId, OpKind, Proxy, Scope, TtgOp, Ty, Value,
};

/// Temporary token numbers of new groups, greater than all numbers in a text, until all tokens are renumbered.
const NEW: u32 = u32::MAX / 2;

pub(super) fn fence_op((scope, space): (Scope, FenceSpace)) -> OpKind {
    OpKind::Ttg(TtgOp::Fence { from: Proxy::Generic, to: Proxy::Async, scope, space })
}

/// The kernel with these changes.
pub(super) fn apply(kernel: Kernel, overlay: &Overlay) -> Kernel {
    if *overlay == Overlay::default() {
        return kernel;
    }
    let around = Around::new(&kernel);
    let mut edit = Edit::new(kernel);
    let mut new = NEW;
    for at in &around.order {
        let Some(block) = around.block.get(at).copied() else { continue };
        edit.loc = edit.kernel.op(*at).loc;
        // The fence comes last, immediately before the operation that needs it.
        if let Some(n) = overlay.waits.get(at) {
            edit.raw(
                OpKind::Nv(NvOp::WaitGroup { group: NvGroup::BulkStore, n: *n, read: true }),
                &[],
                &[],
                Vec::new(),
            );
        }
        if let Some(fence) = overlay.fences.get(at) {
            edit.raw(fence_op(*fence), &[], &[], Vec::new());
        }
        // All at once, so that their order is that in which they were made.
        edit.put_before(block, *at);
        if overlay.commits.contains(at) {
            let ty = Ty::Barrier(BarrierTy::Vtok(Class::BulkStore, new));
            edit.raw(OpKind::Nv(NvOp::Commit { group: NvGroup::BulkStore, n: new }), &[], &[ty], Vec::new());
            edit.put_after(block, *at);
            new = new.saturating_add(1);
        }
        if overlay.gone.contains(at) {
            edit.take_out(block, *at);
        }
    }
    let mut kernel = edit.kernel;
    if !overlay.commits.is_empty() {
        for block in threads(&kernel) {
            number(&mut kernel, block);
        }
    }
    kernel.canonical()
}

/// Numbers the tokens of bulk stores of a role in program order.
fn number(kernel: &mut Kernel, block: Block) {
    let mut numbers: SortedMap<u32, u32> = SortedMap::new();
    let mut commits: Vec<OpId> = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    kernel.walk_block(block, &mut |id, op| {
        if let OpKind::Nv(NvOp::Commit { group: NvGroup::BulkStore, n }) = op.kind {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            // Tokens are numbered by their first commit in the order of the program, new ones and old ones alike, so
            // that running the pass again changes no number.
            numbers.entry(n).or_insert(next);
            commits.push(id);
        }
        values.extend(&op.results);
        op.regions.iter().for_each(|r| values.extend(&kernel.block(*r).args));
    });
    for id in commits {
        if let Some(OpKind::Nv(NvOp::Commit { n, .. })) = kernel.ops.get_mut(id.index()).map(|o| &mut o.kind) {
            *n = numbers.get(n).copied().unwrap_or(*n);
        }
    }
    for value in values {
        if let Some(Ty::Barrier(BarrierTy::Vtok(Class::BulkStore, n))) =
            kernel.values.get_mut(value.index()).map(|v| &mut v.ty)
        {
            *n = numbers.get(n).copied().unwrap_or(*n);
        }
    }
}
