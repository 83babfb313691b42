//! Rule 49: copies fit their regions, read inputs, and write outputs that are exempt from the output rule, or tiles of outputs.
//!
//! A copy to or from a region states its bytes, and the first element of the tensor, but not how its bytes are arranged there. A copy to or
//! from a tile in shared memory is of all its elements, which the output rule follows (`outputs`). Bulk copies bypass the
//! ordinary caches: they read what the kernel may write too early or too late, so that they read inputs alone. Copies by threads
//! are ordinary reads, which several roles may not make of what one of them writes (rule 33).
//!
//! Deliberately absent: the order of copies, and which elements of an output they write.

use super::place::{error, part, placed};
use crate::analysis::forms::is_input;
use crate::analysis::number::{root, tensor_of};
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{BarrierTy, Kernel, NvOp, Op, OpKind, RegionOp, Stated, Ty, Value};
use crate::verify::Error;

/// The alignment in shared memory of a bulk copy of a tile (PTX ISA, "cp.async.bulk.tensor").
const BOX: u64 = 128;

/// Checks rule 49.
pub(super) fn copies(kernel: &Kernel, errors: &mut Vec<Error>) {
    kernel.walk(&mut |_, op| {
        let Stated::Copies { bytes, bulk } = op.kind.stated() else { return };
        if let Some(tile) = op.args.iter().copied().find(|v| matches!(kernel.ty(*v), Ty::Smem(..))) {
            return of_tile(kernel, op, (tile, u64::from(bytes)), errors);
        }
        let region = op.args.iter().copied().find(|v| kernel.ty(*v) == Ty::Barrier(BarrierTy::Region));
        let Some((offset, room, whole)) = region.and_then(|v| part(kernel, v)) else { return };
        let name = kernel.display_name(whole);
        if u64::from(bytes) > room {
            error(errors, Code::RegionMade, op.loc, format!("{bytes} bytes do not fit into the {room} bytes of `{name}`"));
        }
        // PTX ISA, "cp.async.bulk": sizes and addresses are multiples of 16.
        let whole_parts = placed(kernel, whole).is_none_or(|(_, all, parts)| all % parts.max(1) == 0);
        if bulk
            && whole_parts
            && (bytes % 16 != 0 || !offset.is_multiple_of(16) || !room.is_multiple_of(16) && region != Some(whole))
        {
            let title = format!(
                "a bulk copy of {bytes} bytes of `{name}`, at byte {offset}: sizes and addresses must be multiples of 16"
            );
            error(errors, Code::RegionMade, op.loc, title);
        }
        if let OpKind::Nv(NvOp::BulkLoad { multicast: 1.., .. }) = op.kind {
            let title = "the arrivals of a multicast copy at the barriers of other programs of the cluster could not be verified";
            errors.push(Error::new(Code::NotShown, op.loc, title).help("leave `multicast` out"));
        }
        tensor(kernel, op, matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. })), errors);
    });
}

fn tensor(kernel: &Kernel, op: &Op, stores: bool, errors: &mut Vec<Error>) {
    let Some(param) = op.args.first().and_then(|t| root(kernel, *t)) else { return };
    let name = kernel.display_name(kernel.param(param));
    if !stores && !is_input(kernel, param) {
        let title = format!("a copy from `{name}`, which the kernel may write while the copy is in flight");
        error(errors, Code::SourceWritten, op.loc, title);
    }
    let exempt = kernel.def_op(op.args[0]).is_some_and(|o| o.kind == OpKind::Shared);
    if stores && is_input(kernel, param) {
        error(errors, Code::StoreToInput, op.loc, format!("`{}` to `{name}`, which is an input", mnemonic(&op.kind)));
    } else if stores && !exempt {
        let title = format!("it is not known which part of `{name}` a bulk copy stores");
        errors.push(
            Error::new(Code::Overlap, op.loc, title).help(format!("`shared %{name}` takes it out of the output rule")),
        );
    }
}

/// A bulk copy of a tile in shared memory.
fn of_tile(kernel: &Kernel, op: &Op, (tile, bytes): (Value, u64), errors: &mut Vec<Error>) {
    let Some(encoding) = kernel.encoding(tile) else { return };
    let name = kernel.display_name(tile);
    let all = u64::from(encoding.bytes());
    if bytes != all {
        let title = format!("a bulk copy of {bytes} bytes of `{name}`, which has {all}");
        error(errors, Code::RegionMade, op.loc, title);
    }
    if let Some((first, step)) = address(kernel, tile).filter(|(first, step)| first % BOX != 0 || step % BOX != 0) {
        let parts = if step > 0 { format!(" in parts of {step} bytes") } else { String::new() };
        let title = format!("a bulk copy of `{name}`, at byte {first}{parts}: its address must be a multiple of {BOX}");
        error(errors, Code::RegionMade, op.loc, title);
    }
    let tensor = op.args.first().and_then(|source| tensor_of(kernel, *source));
    let Some(param) = tensor.and_then(|tensor| root(kernel, tensor)) else { return };
    let stores = matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. }));
    if !stores && !is_input(kernel, param) {
        let name = kernel.display_name(kernel.param(param));
        let title = format!("a bulk copy from `{name}`, which the kernel may write while the copy is in flight");
        error(errors, Code::SourceWritten, op.loc, title);
    }
}

/// The address of a tile in shared memory, and the distance between the parts of its region of which it is in one; 0 for no parts. A part
/// of a tile, or a tile of other extents in the same bytes, has the address of the tile.
fn address(kernel: &Kernel, tile: Value) -> Option<(u64, u64)> {
    let mut at = tile;
    loop {
        let op = kernel.def_op(at)?;
        let of = *op.args.first()?;
        if let OpKind::Region(RegionOp::Tile { offset, .. }) = op.kind {
            let (first, room, whole) = part(kernel, of)?;
            return Some((first + u64::from(offset), if of == whole { 0 } else { room }));
        }
        at = of;
    }
}
