//! The registers of products of warpgroups: which fence is in front of an MMA, and which values are its operands.
//!
//! Deliberately absent: whether the loop before has the fences that it needs, and that operands are not written while MMAs read them, which the
//! verifier of barrier programs shows (rule 69).

use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Def, Kernel, LocalOp, NvOp, OpId, OpKind, TtgOp, Ty, Value};

/// The fences of the bodies of loops with schedules, by these fences and the MMAs that follow each.
///
/// MMAs read registers that threads have written only behind a fence that follows the writes. So the computation of operands, the fence behind it
/// and the MMAs behind that keep their order, and two products with their fences may change places.
///
/// Fences of a body in which an MMA may need one of another block, or of the iteration before, are not among them: any product may need these.
pub(super) fn fences(kernel: &Kernel, is_of_body: &dyn Fn(OpId) -> bool) -> SortedMap<OpId, OpId> {
    let mut found = SortedMap::new();
    for block in &kernel.blocks {
        if !block.ops.iter().any(|id| is_of_body(*id)) || !are_fenced(kernel, &block.ops) {
            continue;
        }
        let mut fence = None;
        for id in block.ops.iter().copied().filter(|id| is_of_body(*id)) {
            if kernel.op(id).kind == OpKind::Nv(NvOp::WgmmaFence) {
                fence = Some(id);
            }
            if matches!(kernel.op(id).kind, OpKind::Nv(NvOp::WgmmaFence | NvOp::Wgmma)) {
                found.extend(fence.map(|fence| (id, fence)));
            }
        }
    }
    found
}

/// Whether each MMA among these operations, and those nested in them, has a fence in front of it in its own block.
fn are_fenced(kernel: &Kernel, ops: &[OpId]) -> bool {
    let mut is_fenced = false;
    ops.iter().all(|id| {
        let op = kernel.op(*id);
        is_fenced |= op.kind == OpKind::Nv(NvOp::WgmmaFence);
        (is_fenced || op.kind != OpKind::Nv(NvOp::Wgmma))
            && op.regions.iter().all(|block| are_fenced(kernel, &kernel.block(*block).ops))
    })
}

/// An MMA whose product a loop passes on in flight to an iteration that does not continue it.
///
/// What a loop passes on is in the same registers in every iteration. A product that adds to the one that was passed on stays there; of any
/// other, the registers would have to be moved while the MMA still writes them.
///
/// ```text
/// for .. carry(%before) {                        right: the MMA writes the registers of %before
///     %d = mma %a, %b, %before
///     continue %d
/// }
/// for .. carry(%before) {                        wrong: %before is read by its wait, and %d is moved to its registers, in flight
///     %d = mma %a, %b, %zero
///     %y = wait %before
///     continue %d
/// }
/// ```
pub(super) fn moved_in_flight(kernel: &Kernel) -> Option<OpId> {
    let mut found = None;
    kernel.walk(&mut |_, op| {
        for body in op.regions.iter().filter(|_| op.kind.is_loop()).map(|body| kernel.block(*body)) {
            let counters = usize::from(op.kind != OpKind::Loop);
            let passed = body.ops.last().map_or(&[][..], |end| &kernel.op(*end).args);
            for (place, next) in passed.iter().enumerate() {
                let (mut at, mut last) = (*next, None);
                // A wait leaves its product in its registers. This ends: operands are defined before what uses them.
                while let Def::Result(id, _) = kernel.value(at).def {
                    match (&kernel.op(id).kind, &kernel.op(id).args[..]) {
                        (OpKind::Nv(NvOp::Wgmma), [.., sum]) => (at, last) = (*sum, last.or(Some(id))),
                        (OpKind::Ttg(TtgOp::ComputeWait), [product]) if last.is_some() => at = *product,
                        (_, _) => break,
                    }
                }
                if body.args.get(counters + place) != Some(&at) {
                    found = found.or(last);
                }
            }
        }
    });
    found
}

/// The operands of warpgroup MMAs that are tiles in registers, also where loops carry them; each with the fences in front of these MMAs.
///
/// `fence` is the fence in front of an MMA, if that is known.
pub(super) fn operands_in_registers(
    kernel: &Kernel,
    fence: &dyn Fn(OpId) -> Option<OpId>,
) -> SortedMap<Value, SortedSet<Option<OpId>>> {
    let mut open: Vec<(Value, Option<OpId>)> = Vec::new();
    kernel.walk(&mut |id, op| {
        if op.kind == OpKind::Nv(NvOp::Wgmma) {
            let tiles = op.args.iter().copied().filter(|v| matches!(kernel.ty(*v), Ty::Tile(..)));
            open.extend(tiles.map(|v| (v, fence(id))));
        }
    });
    let mut found: SortedMap<Value, SortedSet<Option<OpId>>> = SortedMap::new();
    // This ends: each value is looked at once for each fence.
    while let Some((value, fence)) = open.pop() {
        // A value in a carried place is the same register in all iterations, so what the loop is entered with and what
        // it passes on are operands in registers as well.
        if !found.entry(value).or_default().insert(fence) {
            continue;
        }
        // A part of a tile is in the registers of the tile.
        let part = kernel.def_op(value).filter(|op| matches!(op.kind, OpKind::Local(LocalOp::Slice { .. })));
        open.extend(part.and_then(|op| op.args.first()).map(|whole| (*whole, fence)));
        let Def::BlockArg(block, place) = kernel.value(value).def else { continue };
        for op in kernel.ops.iter().filter(|op| op.regions.contains(&block) && op.kind.is_loop()) {
            let counters = usize::from(op.kind != OpKind::Loop);
            let Some(carried) = place.checked_sub(counters) else { continue };
            let end = kernel.block(block).ops.last().map(|end| kernel.op(*end));
            let given = [op.args.get(3 * counters + carried), end.and_then(|end| end.args.get(carried))];
            open.extend(given.into_iter().flatten().map(|v| (*v, fence)));
        }
    }
    found
}
