//! Values that may be in the same registers as another one.
//!
//! ```text
//! %d = ttg.nv.wgmma.mma_async ..                    in the registers of %d
//! %s = ttg.compute.wait %d                          in the same ones
//! %a = ttg.local.slice %s[0]                        may be in the same ones
//! %y = ttg.nv.wgmma.mma_async %a, %b, %x            reads them until it is waited for
//! ```
//!
//! Deliberately absent: tiles that loops and branches pass on, which are copied.

use crate::collections::SortedSet;
use crate::ir::{Block, Def, Kernel, LocalOp, NvOp, OpId, OpKind, TtgOp, Ty, Value};

/// The values that may be in the registers of an operand: itself, what it is a part or another arrangement of, and the first of the MMAs that
/// computed it; none if it is in shared memory.
pub(crate) fn of(kernel: &Kernel, operand: Value) -> Vec<Value> {
    let (mut found, mut open) = (Vec::new(), vec![operand]);
    // This ends: operands are defined before what uses them.
    while let Some(value) = open.pop() {
        if matches!(kernel.ty(value), Ty::Compute(..)) {
            found.push(home(kernel, value));
        }
        if !matches!(kernel.ty(value), Ty::Tile(..)) {
            continue;
        }
        found.push(value);
        if let Def::Result(id, _) = kernel.value(value).def
            && rearranges(&kernel.op(id).kind)
        {
            open.extend(&kernel.op(id).args);
        }
    }
    found
}

/// Those of some operations that write registers of which MMAs read their operands until they are waited for.
pub(crate) fn writers(kernel: &Kernel, mmas: impl Iterator<Item = OpId>, ops: &[OpId]) -> Vec<OpId> {
    let operands = mmas.flat_map(|id| kernel.op(id).args.iter().take(2));
    let read: SortedSet<Value> = operands.flat_map(|v| of(kernel, *v)).collect();
    let writes = |v: &Value| read.contains(v) || read.contains(&home(kernel, *v));
    ops.iter().copied().filter(|id| kernel.op(*id).results.iter().any(writes)).collect()
}

/// Whether an operation only takes a part of a tile or of a buffer, or arranges a tile for an operand.
pub(crate) fn takes_part(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Local(LocalOp::Slice { .. } | LocalOp::Convert))
}

/// Whether the results of an operation may be in the registers of its operands.
fn rearranges(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Local(LocalOp::Slice { .. } | LocalOp::Convert | LocalOp::Reshape(_) | LocalOp::Stack)
            | OpKind::Reshape(_)
            | OpKind::Permute(_)
            | OpKind::Broadcast { .. }
            | OpKind::Interleave
            | OpKind::Split
            | OpKind::Ttg(TtgOp::ComputeWait)
    )
}

/// The first MMA's result in the registers of a result in flight. What loops and branches pass on in flight is not copied; the verifier of
/// barrier programs shows that all paths agree (rule 69).
pub(crate) fn home(kernel: &Kernel, in_flight: Value) -> Value {
    let mut at = in_flight;
    loop {
        let before = match kernel.value(at).def {
            Def::Param(_) => None,
            Def::BlockArg(block, place) => entered(kernel, block, place),
            Def::Result(id, place) => passed(kernel, id, place),
        };
        // This ends: what an MMA adds to, what a loop is entered with and what an arm of a branch gives are defined before it.
        match before.filter(|before| matches!(kernel.ty(*before), Ty::Compute(..))) {
            Some(before) => at = before,
            None => return at,
        }
    }
}

/// What a loop is entered with at a place that it carries.
fn entered(kernel: &Kernel, body: Block, place: usize) -> Option<Value> {
    let op = kernel.ops.iter().find(|op| op.kind.is_loop() && op.regions.contains(&body))?;
    let counters = usize::from(op.kind != OpKind::Loop);
    op.args.get(3 * counters + place.checked_sub(counters)?).copied()
}

/// What an operation adds to, or passes on, as this result.
fn passed(kernel: &Kernel, id: OpId, place: usize) -> Option<Value> {
    let op = kernel.op(id);
    if op.kind == OpKind::Nv(NvOp::Wgmma) {
        return op.args.get(2).copied();
    }
    if matches!(op.kind, OpKind::For(_)) {
        return op.args.get(3 + place).copied();
    }
    // What a loop without a count gives is named where it is left, in its body.
    let arm = op.regions.first().filter(|_| op.kind == OpKind::If)?;
    let end = kernel.op(*kernel.block(*arm).ops.last()?);
    end.args.get(place).copied().filter(|_| end.kind == OpKind::Yield)
}
