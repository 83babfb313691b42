//! Rule 71: an MMA of warpgroups has the extents, and the operands in shared memory, of an existing instruction.
//! Source: PTX ISA, "wgmma.mma_async": "Matrix shapes", "Shared memory matrix layout", "Matrix descriptor format".
//!
//! Deliberately absent: which combinations of element types exist, which the tables of a machine contain.

use crate::diag::Code;
use crate::ir::{Elem, Kernel, NvOp, Op, OpKind, Swizzle, Value};
use crate::verify::Error;

/// The number of rows of an instruction.
const ROWS: u32 = 64;
/// The extent K of an instruction, in bits.
const DEPTH: u32 = 256;
/// The maximum number of columns of an instruction.
const COLUMNS: u32 = 256;
/// The number of warps of a warpgroup, which divide M.
const WARPS: u32 = 4;

/// Violations of rule 71.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    kernel.walk(&mut |_, op| {
        if let (OpKind::Nv(NvOp::Wgmma), [a, b, _]) = (&op.kind, &op.args[..]) {
            let operands = [operand(kernel, *a, ("A", 1)), operand(kernel, *b, ("B", 0))];
            let found = operands.into_iter().chain([shape(kernel, op, *a), panels(kernel, op, *b)]);
            let titles = found.flatten();
            errors.extend(titles.map(|title| Error::new(Code::GroupMma, op.loc, title)));
        }
    });
    errors
}

fn extents(kernel: &Kernel, value: Value) -> Vec<u32> {
    kernel.ty(value).tile_shape().map_or_else(Vec::new, Vec::from)
}

fn shape(kernel: &Kernel, op: &Op, a: Value) -> Option<String> {
    let (acc, elem) = (*op.results.first()?, kernel.ty(a).elem());
    let ([m, n], [_, k]) = (&extents(kernel, acc)[..], &extents(kernel, a)[..]) else {
        return Some("an MMA of warpgroups has no batch axis".to_owned());
    };
    let depth = DEPTH / elem.bits().max(1);
    if *k != depth {
        return Some(format!("an MMA of warpgroups of `{elem}` has a K of {depth}, not {k}"));
    }
    let layout = kernel.layout(acc)?;
    let along = |axis: usize| 1u32 << layout.warps_along(axis).len().min(31);
    let rows = m / along(0).div_ceil(WARPS);
    if !rows.is_multiple_of(ROWS) || rows == 0 {
        return Some(format!("an MMA of warpgroups has {ROWS} rows or a multiple for each of them, not {rows}"));
    }
    let (columns, width) = (n / along(1), width(kernel, op)?);
    let of_integers = kernel.ty(acc).elem() == Elem::I32;
    if width == 0 || !width.is_multiple_of(8) {
        return Some(format!("an MMA of warpgroups has a multiple of 8 columns for each of them, not {columns}"));
    }
    if of_integers && !width.is_multiple_of(16) && width != 8 && width != 24 {
        return Some(format!("an MMA of warpgroups of integers has 8, 24, or a multiple of 16 columns, not {width}"));
    }
    None
}

/// The number of columns of one instruction: those of a warpgroup, divided evenly between several instructions.
fn width(kernel: &Kernel, op: &Op) -> Option<u32> {
    let acc = *op.results.first()?;
    let along_n = kernel.layout(acc)?.warps_along(1).len().min(31);
    let columns = extents(kernel, acc).get(1)? >> along_n;
    Some(columns / columns.div_ceil(COLUMNS).max(1))
}

/// An instruction reads whole panels of an operand B whose rows in shared memory are along N, or a part of one.
fn panels(kernel: &Kernel, op: &Op, b: Value) -> Option<String> {
    let (encoding, width) = (kernel.encoding(b)?, width(kernel, op)?.max(1));
    let fits = encoding.fast_axis() == 0 || width.is_multiple_of(encoding.row) || encoding.row.is_multiple_of(width);
    (!fits).then(|| {
        format!(
            "the {width} columns of an MMA of warpgroups are neither whole panels of {} elements nor within one",
            encoding.row
        )
    })
}

/// The reason why an operand in shared memory is invalid, if it is; `k` is its axis of K.
fn operand(kernel: &Kernel, value: Value, (name, k): (&str, usize)) -> Option<String> {
    let encoding = kernel.encoding(value)?;
    let elem = kernel.ty(value).elem();
    if encoding.swizzle == Swizzle::None && !encoding.has_core_matrices() {
        return Some(format!(
            "operand {name} of an MMA of warpgroups has neither a swizzle of 32, 64 or 128 bytes nor panels of 16 bytes"
        ));
    }
    (encoding.fast_axis() != k && elem.bits() != 16).then(|| {
        format!("K is not the last axis of operand {name} in shared memory, as it must be for elements `{elem}`")
    })
}
