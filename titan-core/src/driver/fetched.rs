//! Code of kernels that fetch tiles for later iterations: whether there are enough registers, only the back end knows.
//!
//! Deliberately absent: which loops fetch, which the rule chooses by an estimate of registers.

use super::backend::{Backend, Code};
use super::log::{Alternative, Why};
use super::road::Stop;
use super::schedule::{Roles, Schedule};
use super::{Made, carried_out, order, rule};
use crate::lay_out::lay_out;
use crate::plan::LowerError;
use crate::verify::Verified;

impl Made {
    /// The code of the machine; if it has too few registers for what is fetched, that of the same kernel without that.
    ///
    /// # Errors
    /// The error of the back end.
    pub(super) fn emitted(
        self,
        kernel: &Verified,
        backend: &dyn Backend,
        source: Option<(&str, u32)>,
    ) -> Result<(Made, Code), LowerError> {
        let error = match backend.emit(&self.lowered.func, source) {
            Ok(code) => return Ok((self, code)),
            Err(error) => error,
        };
        if self.plan.fetched.is_empty() {
            return Err(error);
        }
        let Ok(mut made) = without_fetches(kernel, &self) else { return Err(error) };
        let Ok(code) = backend.emit(&made.lowered.func, source) else { return Err(error) };
        made.log.extend(self.log);
        made.log.add(Alternative::Fetched, Why::Refused(error));
        Ok((Made { pays: self.pays, ..made }, code))
    }
}

/// Compiles the kernel by the same schedule, but for what is fetched ahead.
fn without_fetches(kernel: &Verified, made: &Made) -> Result<Made, LowerError> {
    let target = &made.plan.target;
    let roles = match made.schedule.roles {
        Roles::Fused { .. } => Roles::Fused { distance: 0, carried: false },
        kept @ (Roles::Kept | Roles::Split { .. }) => kept,
    };
    let schedule = Schedule { loops: Vec::new(), bodies: Vec::new(), roles, ..made.schedule.clone() };
    let mut filled = rule::follow(kernel, target, &schedule)?;
    let laid_out = lay_out(&filled.rings, &filled.plan)?;
    filled.schedule.bodies = order::choose(&laid_out, &[], target);
    carried_out(filled, laid_out, None).map_err(Stop::error)
}
