//! Why a kernel with code of its own for a machine with bulk copies does without some of what such code can have: programs that walk over
//! the grid, several instances of a role, clusters. Notes in the user's words.
//!
//! The reasons are those of the decisions themselves: of [`crate::pipeline::persist`], of [`super::cluster`], and of [`instances_of`], which the rule
//! asks too. Why a loop is not split into roles is said by [`super::why`].
//!
//! Deliberately absent: what depends on the arguments of a launch, which the launch says.

use super::Made;
use super::cluster::NoCluster;
use super::schedule::{Roles, Schedule};
use super::table::{INSTANCES, RASTER_ROWS};
use crate::pipeline::persist::{NoWalk, persistent};
use crate::plan::Target;
use std::fmt;

/// Why the programs of a kernel do not walk over its grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotPersistent {
    /// They cannot.
    NoWalk(NoWalk),
    /// The MMAs of one tile overlap, which is not combined with it.
    Overlapped,
    /// The kernel with such programs does not fit, or was not shown to be right.
    DoesNotFit,
}

impl fmt::Display for NotPersistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotPersistent::NoWalk(why) => why.fmt(f),
            NotPersistent::Overlapped => f.write_str("the MMAs of a tile overlap instead"),
            NotPersistent::DoesNotFit => f.write_str("it would not fit"),
        }
    }
}

/// Why the role that computes has one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OneInstance {
    /// The MMAs of one tile overlap, which is not combined with it.
    Overlapped,
    /// The machine has no MMAs of warpgroups: the warps of one instance take turns.
    NoWarpgroups,
    /// The role has more warps than a warpgroup.
    Warps(u32),
    /// Programs have one tile each.
    OneTile,
    /// Two slots for each instance do not fit.
    DoesNotFit,
}

impl fmt::Display for OneInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OneInstance::Overlapped => f.write_str("the MMAs of a tile overlap instead"),
            OneInstance::NoWarpgroups => f.write_str("its MMAs are not those of warpgroups"),
            OneInstance::Warps(warps) => write!(f, "a tile takes {warps} warps, and an instance has one warpgroup"),
            OneInstance::OneTile => f.write_str("each program has one tile"),
            OneInstance::DoesNotFit => f.write_str("two slots for each do not fit in shared memory"),
        }
    }
}

/// The instances of a role of so many warps that computes, if programs have several tiles and the slots fit.
///
/// # Errors
/// Why there is one.
pub(super) fn instances_of(warps: u32, target: &Target) -> Result<u32, OneInstance> {
    if target.group_atoms.is_empty() {
        return Err(OneInstance::NoWarpgroups);
    }
    if warps == target.role_warps { Ok(INSTANCES) } else { Err(OneInstance::Warps(warps)) }
}

/// The notes about what was not chosen.
pub(super) fn notes(made: &Made, no_cluster: Option<NoCluster>) -> Vec<String> {
    let walk = not_persistent(made).map(|why| format!("not persistent: {why}"));
    let one = one_instance(&made.schedule, &made.plan.target).map(|why| format!("one instance: {why}"));
    let alone = no_cluster.map(|why| format!("no cluster: {why}"));
    walk.into_iter().chain(one).chain(alone).collect()
}

fn not_persistent(made: &Made) -> Option<NotPersistent> {
    if made.schedule.persistent {
        return None;
    }
    match persistent(&made.rings, RASTER_ROWS) {
        Err(NoWalk::OwnGrid) => None,
        Err(why) => Some(NotPersistent::NoWalk(why)),
        Ok(_) if made.schedule.shifted => Some(NotPersistent::Overlapped),
        Ok(_) => Some(NotPersistent::DoesNotFit),
    }
}

/// Why a role that the compiler made has one instance. Of others the kernel says how many they have.
fn one_instance(schedule: &Schedule, target: &Target) -> Option<OneInstance> {
    match (schedule.roles, schedule.instances) {
        (Roles::Split { .. }, None) if schedule.shifted => Some(OneInstance::Overlapped),
        (Roles::Split { warps }, None) => match instances_of(warps, target) {
            Err(why) => Some(why),
            Ok(_) if schedule.persistent => Some(OneInstance::DoesNotFit),
            Ok(_) => Some(OneInstance::OneTile),
        },
        (Roles::Kept | Roles::Fused { .. }, _) | (Roles::Split { .. }, Some(_)) => None,
    }
}
