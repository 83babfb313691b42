//! Outputs of which the iterations of a loop over tiles write different elements, in bulk.
//!
//! A bulk store may write until the launch ends, so that a later one to the same elements would be unordered. That the tiles of different
//! iterations have different elements is the proof of the output rule for the parts of one program ([`crate::analysis::turns`]). It is used for
//! an output if bulk stores of tiles are all accesses to it, all those of a role are in one loop over tiles, and that loop is executed once: it is in
//! no other one.
//!
//! ```text
//! for %i = 0 to %n step 1 distributed {       a program takes each number at most once
//!     %m, %k = unflatten_grouped %i ..        so that tile (m, k) is another one in each iteration
//!     ..
//!     ttg.nv.cp_async_bulk_tensor.store       of tile (m, k) of %c: does not conflict with those of earlier iterations
//! }
//! ```

use crate::analysis::number::{root, tensor_of};
use crate::analysis::turns::Turns;
use crate::analysis::uses::Tree;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{ForKind, Kernel, NvOp, Op, OpId, OpKind, TtgOp, Ty, Value};
use crate::verify::roles::threads;

/// For each loop over tiles, the outputs of which its iterations write different elements.
pub(super) fn divided(kernel: &Kernel) -> SortedMap<OpId, SortedSet<usize>> {
    let is_store = |op: &Op| matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. }));
    let mut divided: SortedMap<OpId, SortedSet<usize>> = SortedMap::new();
    if !kernel.ops.iter().any(is_store) {
        return divided;
    }
    let tree = Tree::new(kernel);
    let (mut loops, mut other) = (SortedMap::<usize, SortedSet<(usize, OpId)>>::new(), SortedSet::new());
    let turns = Turns::new(kernel);
    let mut inside: SortedSet<OpId> = SortedSet::new();
    for (role, (_, block)) in threads(kernel).iter().enumerate() {
        kernel.walk_block(*block, &mut |id, op| {
            // The outermost loop must be the one over tiles: inside of another loop it would be executed again, with
            // the same numbers.
            let outermost = tree.around(id).filter(|o| kernel.op(*o).kind.is_loop()).last();
            let looped = outermost.filter(|o| is_over_tiles(kernel, &turns, *o));
            let stored = op.args.first().filter(|to| is_store(op) && matches!(kernel.ty(**to), Ty::Source(..)));
            let stored = stored.and_then(|to| output(kernel, *to));
            if let (Some(output), Some(looped)) = (stored.filter(|_| turns.knows(id)), looped) {
                loops.entry(output).or_default().insert((role, looped));
                inside.insert(id);
            }
        });
    }
    kernel.walk(&mut |id, op| {
        if !inside.contains(&id) {
            // One other access, of whatever kind, and iterations are not comparable by their tiles alone.
            other.extend(accessed(op).iter().filter_map(|v| output(kernel, *v)));
        }
    });
    for (output, own) in loops {
        // Two loops of one role over all tiles would write each tile twice.
        let one_each = own.iter().all(|a| own.iter().all(|b| a.0 != b.0 || a.1 == b.1));
        if one_each && !other.contains(&output) && turns.divides(output) {
            for (_, looped) in &own {
                divided.entry(*looped).or_default().insert(output);
            }
        }
    }
    divided
}

/// Whether a loop takes the numbers of tiles, from 0 by 1.
fn is_over_tiles(kernel: &Kernel, turns: &Turns<'_>, looped: OpId) -> bool {
    let op = kernel.op(looped);
    let index = op.regions.first().and_then(|body| kernel.block(*body).args.first());
    op.kind == OpKind::For(ForKind::Distributed) && index.is_some_and(|index| turns.is_iteration(*index))
}

/// The operands whose elements an operation may access: not those of which it names a part or an extent.
fn accessed(op: &Op) -> &[Value] {
    let names = matches!(
        op.kind,
        OpKind::Dim(_)
            | OpKind::Index(_)
            | OpKind::Slice(_)
            | OpKind::Segment
            | OpKind::RaggedCount { .. }
            | OpKind::RaggedTile { .. }
            | OpKind::Ttg(TtgOp::Source(..))
    );
    if names { op.args.get(1..).unwrap_or_default() } else { &op.args }
}

/// The parameter of a tensor, or of the tensor of which a source names a tile.
fn output(kernel: &Kernel, value: Value) -> Option<usize> {
    let of_tensor = matches!(kernel.ty(value), Ty::Tensor(..) | Ty::Source(..));
    root(kernel, tensor_of(kernel, value).filter(|_| of_tensor)?)
}
