//! Grids without programs: legal where there is nothing to do, a mistake where outputs wait for it.

use super::env::text;
use super::{ArgInfo, BindError, bind_arguments};
use crate::analysis::partition::{Class, Partition};
use crate::ir::{GridSpec, Signature};

/// Refuses a grid that has no programs although an output has elements.
///
/// Such an output would keep what it held before, without a word: `grid(N / 128)` of 100 elements. An output that is only
/// scattered to or updated atomically is as it should be if nothing comes in, that is, if some tensor of the launch is empty.
/// `given` says that the caller gave the grid in place of the kernel's own.
///
/// # Errors
/// [`BindError::Idle`] with the first such output.
pub fn refuse_idle(
    sig: &Signature,
    partition: &Partition,
    args: &[ArgInfo<'_>],
    grid: [u32; 3],
    given: bool,
) -> Result<(), BindError> {
    let Some(axis) = grid.iter().position(|n| *n == 0) else { return Ok(()) };
    let extents = |param: usize| match args.get(param) {
        Some(ArgInfo::Tensor { extents, .. }) => Some(*extents),
        Some(ArgInfo::Absent | ArgInfo::Scalar(_)) | None => None,
    };
    let is_empty = |extents: &[i64]| extents.contains(&0);
    let nothing_comes_in = (0..args.len()).filter_map(extents).any(is_empty);
    let waits = partition.outputs.iter().find_map(|(param, class)| {
        let left_alone = nothing_comes_in && matches!(class, Class::Scattered | Class::Atomic);
        extents(*param).filter(|e| !is_empty(e) && !left_alone).map(|e| (*param, e))
    });
    let Some((param, extents)) = waits else { return Ok(()) };
    let declared = match &sig.grid {
        GridSpec::Extents(all) if !given => all.get(axis),
        GridSpec::Extents(_) | GridSpec::Persistent => None,
    };
    let values = match declared {
        Some(expr) => bind_arguments(sig, args)?.values(expr),
        None => Vec::new(),
    };
    Err(BindError::Idle {
        axis,
        declared: declared.map(|expr| text(expr, sig)),
        values,
        output: sig.params.get(param).map(|p| p.name.clone()).unwrap_or_default(),
        extents: extents.to_vec(),
    })
}
