//! The loads of a loop from which operands of its MMAs are computed: weights of 8 or 4 bits, for example, that are scaled and converted.
//!
//! ```text
//! %q = load_tile %w[%n, %k] : tile<64x64xi8>          ┐
//! %f = cast %q : tile<64x64xf16>                      │ %q and %s: %b is computed from them alone
//! %s = load_tile %scale[%n, %k] : tile<64x1xf16>      │
//! %b = mul %f, (broadcast %s)                         ┘
//! %y = mma %a, (permute %b), %x                         %a is not computed: only MMAs read it
//! ```
//!
//! Such tiles are copied ahead like those that only MMAs read, and threads read them from the stage.
//!
//! Deliberately absent: tiles that are combined with results of MMAs, such as biases, and those of loops without MMAs; rows of tiles that
//! indices select.

use crate::collections::SortedSet;
use crate::ir::{Block, Def, Effect, Kernel, OpId, OpKind, Ty, Value};

/// The least size of an asynchronous copy by a thread, in bits (PTX ISA, `cp.async`: `cp-size`).
const LEAST_COPY: u32 = 32;

/// The tiles of `Load` operations in the body of a loop from which operands of MMAs in it are computed by threads, and whose rows can be
/// copied asynchronously.
pub(crate) fn computed_from(kernel: &Kernel, looped: OpId) -> SortedSet<Value> {
    let mut found = SortedSet::new();
    let Some(body) = kernel.op(looped).regions.first() else { return found };
    let inside = super::implicit::inside(kernel, *body);
    kernel.walk_block(*body, &mut |_, op| {
        let (OpKind::Mma, [a, b, _]) = (&op.kind, &op.args[..]) else { return };
        for operand in [*a, *b] {
            let mut loads = SortedSet::new();
            if only_loads(kernel, &inside, operand, &mut loads) {
                found.extend(loads);
            }
        }
    });
    found.retain(|tile| !only_multiplied(kernel, *body, *tile) && has_copies(kernel, *tile));
    found
}

/// Whether only MMAs read a tile in a block, after transposes, and as an operand.
pub(crate) fn only_multiplied(kernel: &Kernel, body: Block, tile: Value) -> bool {
    only_read_by(kernel, body, tile, &|id, tile| {
        let op = kernel.op(id);
        op.kind == OpKind::Mma && op.args.get(2) != Some(&tile)
    })
}

/// Whether all operations of a block that read a tile, after transposes, are certain ones: `by` is given each and the tile that it reads.
pub(super) fn only_read_by(kernel: &Kernel, body: Block, tile: Value, by: &dyn Fn(OpId, Value) -> bool) -> bool {
    let mut only = true;
    kernel.walk_block(body, &mut |id, op| {
        if op.args.contains(&tile) {
            let turned = matches!(op.kind, OpKind::Permute(_));
            only &= by(id, tile) || turned && op.results.iter().all(|v| only_read_by(kernel, body, *v, by));
        }
    });
    only
}

/// Whether a tile is computed from loads of the loop, scalars and values from outside of it alone. Collects the loads.
fn only_loads(kernel: &Kernel, inside: &SortedSet<Value>, tile: Value, loads: &mut SortedSet<Value>) -> bool {
    // From results to operands, which were defined before: this ends.
    if !inside.contains(&tile) || matches!(kernel.ty(tile), Ty::Scalar(_)) || loads.contains(&tile) {
        return true;
    }
    let Def::Result(id, _) = kernel.value(tile).def else { return false };
    let op = kernel.op(id);
    if let OpKind::Load(..) = op.kind {
        loads.insert(tile);
        return true;
    }
    let pure = op.kind.effect() == Effect::Pure && op.regions.is_empty() && op.kind != OpKind::Mma;
    pure && op.args.iter().all(|arg| only_loads(kernel, inside, *arg, loads))
}

/// Whether each row of a tile is a whole number of the smallest asynchronous copies.
fn has_copies(kernel: &Kernel, tile: Value) -> bool {
    let ty = kernel.ty(tile);
    let shape = ty.tile_shape().filter(|shape| shape.rank() == 2);
    let columns = shape.and_then(|shape| shape.iter().last().and_then(|n| u32::try_from(*n).ok()));
    columns.is_some_and(|columns| (columns * ty.elem().bits()).is_multiple_of(LEAST_COPY))
}
