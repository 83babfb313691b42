//! The reasons why a kernel with code for a machine with bulk copies does not use some features of it: persistent programs, several
//! instances of a role, clusters, stores that are in flight while the next tile is computed. They are notes for the user.
//!
//! The reasons come from the decisions themselves: [`crate::pipeline::persist`], [`super::cluster`], and [`instances_of`], which the rule
//! uses too. [`super::why`] has the reasons why a loop is not split into roles.
//!
//! Deliberately absent: reasons that depend on the arguments of a launch, which the launch reports.

use super::Made;
use super::cluster::NoCluster;
use super::rings::at_line;
use super::schedule::{Roles, Schedule};
use super::table::{INSTANCES, RASTER_ROWS};
use crate::collections::SortedSet;
use crate::diag::counted;
use crate::ir::{GridSpec, NvOp, OpKind};
use crate::pipeline::persist::{NoWalk, persistent};
use crate::target::Target;
use std::fmt;

/// The reason why the programs of a kernel are not persistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotPersistent {
    /// The kernel does not allow it.
    NoWalk(NoWalk),
    /// The two MMAs of a loop overlap, which is not combined with persistent programs.
    Overlapped,
    /// The kernel with persistent programs exceeds the resources, or could not be verified.
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

/// The reason why the role that computes has one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OneInstance {
    /// The two MMAs of a loop overlap, which is not combined with instances.
    Overlapped,
    /// The machine has no MMAs of warpgroups: the scheduler already alternates between the warps of one instance.
    NoWarpgroups,
    /// The role has more warps than one warpgroup.
    Warps(u32),
    /// Each program computes one tile only.
    OneTile,
    /// The kernel itself loops over tiles, which are not distributed to instances.
    OwnGrid,
    /// The slots of the rings, two for each instance, exceed the resources.
    DoesNotFit,
}

impl fmt::Display for OneInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OneInstance::Overlapped => f.write_str("the MMAs of a tile overlap instead"),
            OneInstance::NoWarpgroups => f.write_str("its MMAs are not those of warpgroups"),
            OneInstance::Warps(warps) => {
                write!(f, "a tile takes {}, and an instance has one warpgroup", counted(*warps, "warp"))
            }
            OneInstance::OneTile => f.write_str("each program has one tile"),
            OneInstance::OwnGrid => NoWalk::OwnGrid.fmt(f),
            OneInstance::DoesNotFit => f.write_str("two slots for each do not fit in shared memory"),
        }
    }
}

/// The number of instances of a computing role with this number of warps, if programs compute several tiles and the slots fit.
///
/// # Errors
/// The reason why there is only one.
pub(super) fn instances_of(warps: u32, target: &Target) -> Result<u32, OneInstance> {
    if target.group_atoms.is_empty() {
        return Err(OneInstance::NoWarpgroups);
    }
    if warps == target.role_warps { Ok(INSTANCES) } else { Err(OneInstance::Warps(warps)) }
}

/// The notes about features that were not chosen.
pub(super) fn notes(made: &Made, no_cluster: Option<NoCluster>) -> Vec<String> {
    let walk = not_persistent(made).map(|why| format!("not persistent: {why}"));
    let own = made.rings.sig.grid == GridSpec::Persistent && !made.schedule.persistent;
    let one = one_instance(&made.schedule, &made.plan.target, own).map(|why| format!("one instance: {why}"));
    let alone = no_cluster.map(|why| format!("no cluster: {why}"));
    walk.into_iter().chain(one).chain(alone).chain(stores_waited(made)).collect()
}

/// The notes about stores for which a role waits, although it could compute the next tile while they are in flight.
fn stores_waited(made: &Made) -> SortedSet<String> {
    let mut notes = SortedSet::new();
    made.barriers.walk(&mut |_, op| {
        let (OpKind::Nv(NvOp::BulkStore { .. }), Some(to)) = (&op.kind, op.args.first()) else { return };
        let Some(tensor) = made.barriers.def_op(*to).and_then(|source| source.args.first()) else { return };
        let at = at_line(op.loc);
        notes.insert(format!(
            "the next tile begins when {} is stored: the buffers of the store and those of the tile would not fit in shared memory \
             together{at}",
            made.barriers.name_or_line(*tensor)
        ));
    });
    if !made.schedule.stores_waited {
        notes.clear();
    }
    notes
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

/// The reason why the role that the compiler split off has one instance. For declared roles, the kernel states the number. `own`: the
/// kernel itself loops over tiles.
fn one_instance(schedule: &Schedule, target: &Target, own: bool) -> Option<OneInstance> {
    match (schedule.roles, schedule.instances) {
        (Roles::Split { .. }, None) if schedule.shifted => Some(OneInstance::Overlapped),
        (Roles::Split { warps }, None) => match instances_of(warps, target) {
            Err(why) => Some(why),
            Ok(_) if schedule.persistent => Some(OneInstance::DoesNotFit),
            Ok(_) if own => Some(OneInstance::OwnGrid),
            Ok(_) => Some(OneInstance::OneTile),
        },
        (Roles::Kept | Roles::Fused { .. }, _) | (Roles::Split { .. }, Some(_)) => None,
    }
}
