//! Grids without programs: legal where there is nothing to do, a mistake where outputs wait for it.

use super::env::text;
use super::{ArgInfo, BindError, bind_arguments};
use crate::ir::{GridSpec, Signature};

/// A tensor that the kernel writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// The parameter.
    pub param: usize,
    /// Whether it is only scattered to or updated atomically: without programs it is as it should be.
    pub only_updated: bool,
}

/// Refuses a grid that has no programs although an output has elements.
///
/// Such an output would keep what it held before, without a word: `grid(N / 128)` of 100 elements. One that is only updated is
/// as it should be if nothing comes in, that is, if some tensor of the launch is empty. `given` says that the caller gave the
/// grid in place of the kernel's own.
///
/// # Errors
/// [`BindError::Idle`] with the first such output.
pub fn refuse_idle(
    sig: &Signature,
    mut outputs: impl Iterator<Item = Output>,
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
    let waits = outputs.find_map(|Output { param, only_updated }| {
        let is_done = |e: &[i64]| is_empty(e) || only_updated && nothing_comes_in;
        extents(param).filter(|e| !is_done(e)).map(|e| (param, e))
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
