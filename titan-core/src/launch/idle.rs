//! Grids with fewer programs than an output has parts, and grids without programs. They are correct if there is nothing to do or if the
//! kernel allows them, and an error if an output would not be written.

use super::env::Place;
use super::{Arguments, BindError};
use crate::ir::{GridSpec, HostExpr, HostNames as _, Need};

/// An output of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// The index of the parameter.
    pub param: usize,
    /// Whether it is only scattered to or updated atomically, so that it is correct without programs.
    pub only_updated: bool,
}

impl Arguments<'_> {
    /// Rejects a grid without programs if an output has elements.
    ///
    /// Such an output would silently keep its contents: `grid(N / 128)` for 100 elements. An output that is only updated is correct if
    /// there is no input, that is, if some tensor of the launch is empty. `given` says that the caller stated the grid instead of the
    /// kernel.
    ///
    /// # Errors
    /// [`BindError::Idle`] for the first such output.
    pub fn refuse_idle(
        &self,
        mut outputs: impl Iterator<Item = Output>,
        grid: [u32; 3],
        given: bool,
    ) -> Result<(), BindError> {
        let Some(axis) = grid.iter().position(|n| *n == 0).filter(|_| !self.sig.partial) else { return Ok(()) };
        let is_empty = |extents: &[i64]| extents.contains(&0);
        let nothing_comes_in = (0..self.args.len()).filter_map(|p| self.extents(p)).any(is_empty);
        let waits = outputs.find_map(|Output { param, only_updated }| {
            let is_done = |e: &[i64]| is_empty(e) || only_updated && nothing_comes_in;
            self.extents(param).filter(|e| !is_done(e)).map(|e| (param, e))
        });
        let Some((param, extents)) = waits else { return Ok(()) };
        let declared = self.declared(axis, given);
        Err(BindError::Idle {
            axis,
            declared: declared.map(|e| self.text(e)),
            values: declared.map(|e| self.values(e)).unwrap_or_default(),
            output: self.sig.param(param),
            extents: extents.to_vec(),
        })
    }

    /// Rejects a grid with fewer programs than an output has parts, unless the kernel allows it. `given` says that the caller stated the
    /// grid instead of the kernel.
    ///
    /// # Errors
    /// [`BindError::Short`] for the first such output.
    pub fn refuse_short(&self, needs: &[Need], grid: [u32; 3], given: bool) -> Result<(), BindError> {
        for need in needs.iter().filter(|_| !self.sig.partial) {
            let axis = usize::from(need.axis);
            let Some(extents) = self.extents(need.param).filter(|e| !e.contains(&0)) else { continue };
            let found = grid.get(axis).copied().unwrap_or(1);
            // A requirement without a value, because of an absent tensor, is not compared.
            let Ok(wanted) = self.eval(&need.programs, &Place::Grid { axis }) else { continue };
            if i64::from(found) >= wanted {
                continue;
            }
            let declared = self.declared(axis, given);
            return Err(BindError::Short {
                axis,
                declared: declared.map(|e| self.text(e)),
                found,
                wanted,
                values: declared.map(|e| self.values(e)).unwrap_or_default(),
                output: self.sig.param(need.param),
                extents: extents.to_vec(),
                parts: need.text(),
                programs: self.text(&need.programs),
            });
        }
        Ok(())
    }

    /// The declared extent of an axis of the grid, unless the caller stated the grid.
    fn declared(&self, axis: usize, given: bool) -> Option<&HostExpr> {
        match &self.sig.grid {
            GridSpec::Extents(all) if !given => all.get(axis),
            GridSpec::Extents(_) | GridSpec::Persistent => None,
        }
    }
}
