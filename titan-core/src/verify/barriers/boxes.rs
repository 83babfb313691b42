//! Rule 70: a bulk copy of a tile is one that a tensor map can describe. [`crate::analysis::boxes`] decides which are; this module creates
//! the errors.
//!
//! In a program whose tiles are not laid out, copies state bytes instead of boxes; there, some box of the tensor must have as many.

use crate::analysis::boxes::{Boxed, NoBox, Part, extents_of, never, of_op};
use crate::diag::Code;
use crate::ir::{Elem, Encoding, Kernel, NvOp, Op, OpKind, Strided, Ty, Value};
use crate::verify::Error;

/// Violations of rule 70.
pub(in crate::verify) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    kernel.walk(&mut |_, op| {
        if let OpKind::Nv(NvOp::BulkLoad { tensor: true, .. } | NvOp::BulkStore { tensor: true, .. }) = op.kind
            && let Some(why) = wrong(kernel, op)
        {
            errors.push(error(kernel, op, &why));
        }
    });
    errors
}

fn wrong(kernel: &Kernel, op: &Op) -> Option<NoBox> {
    let [what, rest @ ..] = &op.args[..] else { return Some(NoBox::NoTensor) };
    if let Ty::Tensor(elem, rank) = kernel.ty(*what) {
        return never(kernel, *what).or_else(|| no_extents(op, elem, rank.into()));
    }
    let (Some(named), Some(tile)) = (kernel.def_op(*what), rest.first()) else { return Some(NoBox::NoTensor) };
    let all = vec![true; kernel.sig.params.len()];
    let aligned = kernel.laid_out.as_deref().map_or(&all, |laid| &laid.aligned);
    let found = match kernel.encoding(*tile) {
        Some(encoding) => of_op(kernel, named, encoding, aligned),
        None => of_op(kernel, named, &plain(kernel, *tile)?, aligned),
    };
    let shared = matches!(op.kind, OpKind::Nv(NvOp::BulkLoad { multicast: 1.., .. }));
    match found {
        Ok(Boxed { part: Part::Along(_) | Part::Ending(_), .. }) if shared => Some(NoBox::PartShared),
        Ok(_) => None,
        Err(why) => Some(why),
    }
}

/// A copy of which only the bytes are stated: some box of the tensor has as many. One with element strides states its box (rule 79).
fn no_extents(op: &Op, elem: Elem, axes: usize) -> Option<NoBox> {
    let OpKind::Nv(NvOp::BulkLoad { bytes, strided: Strided::NONE, .. } | NvOp::BulkStore { bytes, .. }) = op.kind
    else {
        return None;
    };
    // `copies` asks for multiples of 16 bytes.
    let whole = bytes > 0 && bytes.is_multiple_of(16);
    (whole && extents_of(bytes, elem, axes).is_empty()).then_some(NoBox::Bytes { bytes, axes })
}

/// The encoding of a tile in a program that states none.
fn plain(kernel: &Kernel, tile: Value) -> Option<Encoding> {
    let extents: Vec<u32> = kernel.ty(tile).tile_shape()?.into();
    let order: Vec<usize> = (0..extents.len()).collect();
    Some(Encoding::swizzled(&extents, kernel.ty(tile).elem().bits().max(8), &order))
}

fn error(kernel: &Kernel, op: &Op, why: &NoBox) -> Error {
    let tensor = op.args.first().map(|v| match kernel.def_op(*v) {
        Some(source) if !matches!(kernel.ty(*v), Ty::Tensor(..)) => source.args.first().copied().unwrap_or(*v),
        Some(_) | None => *v,
    });
    let name = tensor.map_or_else(String::new, |v| format!(" of `{}`", kernel.display_name(v)));
    let title = format!("no tensor map describes the bulk copy of a tile{name}: {why}");
    Error::new(Code::NoTensorMap, op.loc, title)
        .help("copy it by threads: `ttg.local.copy_async`, or `ttg.nv.cp_async`")
}
