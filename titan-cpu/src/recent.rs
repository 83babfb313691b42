//! The last launches of a kernel whose arguments were checked: another launch with the same shapes, places and grid is valid for the same
//! reasons, and its arguments are compared instead of checked. Most launches repeat an earlier one with other memories or other numbers.

use crate::arguments::{ArgRef, RunError, Scalar};
use crate::plan::Plan;
use crate::runtime::launch::{Checked, Tensors};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of launches that are kept.
const KEPT: usize = 4;

/// The last launches that were checked, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<Vec<Known>>);

/// A launch that was checked: what the checks depend on.
#[derive(Debug)]
struct Known {
    grid: [u32; 3],
    args: Vec<Kind>,
    tensors: Arc<Checked>,
}

/// An argument as far as checks depend on it, beyond its place. A float is in no shape, grid or requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tensor,
    Absent,
    Int(i64),
    Float,
}

impl Kind {
    #[inline]
    fn of(arg: &ArgRef<'_>) -> Kind {
        match arg {
            ArgRef::Tensor { .. } => Kind::Tensor,
            ArgRef::Absent => Kind::Absent,
            ArgRef::Scalar(Scalar::Int(value)) => Kind::Int(*value),
            ArgRef::Scalar(Scalar::Float(_)) => Kind::Float,
        }
    }
}

impl Known {
    /// Whether the checks would find the same for these arguments, as far as they do not depend on places.
    fn is_like(&self, args: &[ArgRef<'_>], grid: [u32; 3]) -> bool {
        self.grid == grid && self.args.len() == args.len() && self.args.iter().zip(args).all(|(k, a)| *k == Kind::of(a))
    }
}

impl Recent {
    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tensors of a launch, if an equal one is known.
    pub(crate) fn lease(&self, plan: &Plan, args: &[ArgRef<'_>], grid: [u32; 3]) -> Option<Result<Tensors, RunError>> {
        self.lock()
            .iter()
            .rev()
            .find_map(|known| if known.is_like(args, grid) { lease(plan, &known.tensors, args) } else { None })
    }

    /// Keeps a launch that was checked, in place of the oldest one.
    pub(crate) fn keep(&self, args: &[ArgRef<'_>], grid: [u32; 3], tensors: Arc<Checked>) {
        let mut known = self.lock();
        if known.len() >= KEPT {
            known.remove(0);
        }
        known.push(Known { grid, args: args.iter().map(Kind::of).collect(), tensors });
    }
}

/// Leases the memories of arguments, if they are in the places that were checked.
pub(crate) fn lease(plan: &Plan, checked: &Arc<Checked>, args: &[ArgRef<'_>]) -> Option<Result<Tensors, RunError>> {
    let leased = checked.lease(|i| args.get(i)?.place())?;
    let name = |i: usize| plan.params.get(i).map_or_else(String::new, |param| param.name.clone());
    Some(leased.map_err(|in_use| RunError::InUse(name(in_use))))
}
