//! Grids with fewer programs than an output has parts, and grids without any: right where there is nothing to do or where the
//! kernel says so, a mistake where outputs wait for it.

use super::env::{Place, text};
use super::{ArgInfo, BindError, bind_arguments};
use crate::ir::{GridSpec, Need, Signature};

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
    let Some(axis) = grid.iter().position(|n| *n == 0).filter(|_| !sig.partial) else { return Ok(()) };
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

/// Refuses a grid that has fewer programs than an output has parts, unless the kernel lets it. `given` says that the caller gave
/// the grid in place of the kernel's own.
///
/// # Errors
/// [`BindError::Short`] with the first such output.
pub fn refuse_short(
    sig: &Signature,
    needs: &[Need],
    args: &[ArgInfo<'_>],
    grid: [u32; 3],
    given: bool,
) -> Result<(), BindError> {
    if sig.partial || needs.is_empty() {
        return Ok(());
    }
    let env = bind_arguments(sig, args)?;
    for need in needs {
        let axis = usize::from(need.axis);
        let Some(extents) = env.extents(need.param).filter(|e| !e.contains(&0)) else { continue };
        let found = grid.get(axis).copied().unwrap_or(1);
        // What has no value, as an extent of an absent tensor, is not compared.
        let Ok(wanted) = env.eval(&need.programs, &Place::Grid { axis }) else { continue };
        if i64::from(found) >= wanted {
            continue;
        }
        let declared = match &sig.grid {
            GridSpec::Extents(all) if !given => all.get(axis),
            GridSpec::Extents(_) | GridSpec::Persistent => None,
        };
        return Err(BindError::Short {
            axis,
            declared: declared.map(|e| env.text(e)),
            found,
            wanted,
            values: declared.map(|e| env.values(e)).unwrap_or_default(),
            output: sig.params.get(need.param).map(|p| p.name.clone()).unwrap_or_default(),
            extents: extents.to_vec(),
            parts: need.text(),
            programs: env.text(&need.programs),
        });
    }
    Ok(())
}
