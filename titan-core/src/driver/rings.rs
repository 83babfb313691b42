//! Applies the part of a schedule that concerns rings: slots, roles, and loops with prefetching.

use super::ahead;
use super::log::Why;
use super::schedule::{Ahead, Roles, Schedule};
use crate::analysis::number::root;
use crate::ir::{ForKind, Kernel, Loc, OpId, OpKind, Value};
use crate::pipeline::fuse::{fuse, greatest_distance};
use crate::pipeline::implicit::{Candidate, pipeline};
use crate::pipeline::split::split;
use crate::pipeline::unmask::with_masks;
use crate::pipeline::walk::{NoWalk, Tiles};
use crate::target::Target;
use crate::verify::{Verified, verify};

/// The kernel with the rings of a schedule.
///
/// The result may have additional conditions on a launch only if there is another variant without them: a schedule for arbitrary arguments
/// adds none.
///
/// # Errors
/// Why the schedule cannot be applied, or that the result does not verify.
pub(super) fn with_rings(kernel: &Verified, target: &Target, schedule: &Schedule) -> Result<Verified, Why> {
    let mut made: Kernel = (**kernel).clone();
    if made.pipes.len() != schedule.slots.len() {
        return Err(Why::Depends);
    }
    let changes = schedule.roles != Roles::Kept
        || schedule.walk.tiles != Tiles::Declared
        || schedule.unmasked
        || made.roles.iter().any(|role| role.instances > 1)
        || !schedule.loops.is_empty()
        || made.pipes.iter().zip(&schedule.slots).any(|(pipe, slots)| pipe.slots != *slots);
    if !changes {
        return Ok(kernel.clone());
    }
    made.pipes.iter_mut().zip(&schedule.slots).for_each(|(pipe, slots)| pipe.slots = *slots);
    made = ahead_in_loops(made, target, schedule).ok_or(Why::Depends)?;
    set_instances(&mut made, schedule).ok_or(Why::NoWalk(NoWalk::Instances))?;
    made = schedule.walk.applied(made).map_err(Why::NoWalk)?;
    if schedule.unmasked && with_masks(&made).is_empty() {
        return Err(Why::NoMasks);
    }
    let made = verify(made.canonical()).map_err(|_| Why::Depends)?;
    let adds = made.sig.requires.len() != kernel.sig.requires.len();
    if adds && !schedule.arguments.aligned() { Err(Why::Depends) } else { Ok(made) }
}

/// The kernel with the roles of a schedule, and with the rings of its loops.
fn ahead_in_loops(mut made: Kernel, target: &Target, schedule: &Schedule) -> Option<Kernel> {
    if let Roles::Fused { distance, .. } = schedule.roles {
        // Behind the wait that shows that a slot was read, it can be filled again one iteration earlier.
        if distance > 0 && distance > greatest_distance(&made) + 1 {
            return None;
        }
        made = fuse(&made, !target.named_barriers).ok()?;
        let declared: Vec<_> = schedule.prefetched();
        let declared = declared.get(..schedule.slots.len()).unwrap_or_default();
        if !ahead::may_be_ahead(&made, declared) {
            return None;
        }
    }
    let loops = pipelined_loops(&made);
    let loops: Option<Vec<(Candidate, &Ahead)>> =
        schedule.loops.iter().map(|ahead| Some((candidate(&made, *loops.get(ahead.number)?, ahead)?, ahead))).collect();
    for (candidate, ahead) in loops? {
        if ahead.distance > ahead.slots {
            return None;
        }
        made = pipeline(&made, &candidate, ahead.slots)?;
    }
    if let Roles::Split { warps } = schedule.roles {
        made = split(&made, warps)?;
    }
    Some(made)
}

/// Sets the number of instances of the kernel's roles.
fn set_instances(kernel: &mut Kernel, schedule: &Schedule) -> Option<()> {
    match (schedule.walk.instances, schedule.roles) {
        (None, _) => kernel.roles.iter_mut().for_each(|role| role.instances = 1),
        // The role that computes is the last one.
        (Some(instances), Roles::Split { .. }) => kernel.roles.last_mut()?.instances = instances,
        (Some(_), Roles::Kept) => {}
        (Some(_), Roles::Fused { .. }) => return None,
    }
    Some(())
}

/// The loops over `pipelined(..)`, in program order.
pub(super) fn pipelined_loops(kernel: &Kernel) -> Vec<OpId> {
    let mut loops = Vec::new();
    kernel.walk(&mut |id, op| loops.extend((op.kind == OpKind::For(ForKind::Pipelined)).then_some(id)));
    loops
}

fn candidate(kernel: &Kernel, op: OpId, ahead: &Ahead) -> Option<Candidate> {
    let body = *kernel.op(op).regions.first()?;
    let ops = &kernel.block(body).ops;
    Some(Candidate { op, loads: ahead.loads.iter().map(|at| ops.get(*at).copied()).collect::<Option<_>>()? })
}

/// The name of a tile that is loaded, or else that of its tensor.
pub(super) fn loaded_name(kernel: &Kernel, tile: Value) -> String {
    let of = kernel.def_op(tile).and_then(|op| op.args.first().copied());
    match (&kernel.value(tile).name, of) {
        (None, Some(tensor)) => {
            // Views without a name have that of the parameter.
            let param = root(kernel, tensor).filter(|_| kernel.value(tensor).name.is_none());
            format!("the tile of {}", kernel.name_or_line(param.map_or(tensor, |param| kernel.param(param))))
        }
        (_, _) => kernel.name_or_line(tile),
    }
}

/// The names of the tiles of rings.
pub(super) fn loaded_names(kernel: &Kernel, rings: &[Ahead]) -> String {
    let loops = pipelined_loops(kernel);
    let tiles = rings.iter().flat_map(|Ahead { number, loads, .. }| {
        let body = loops.get(*number).and_then(|op| kernel.op(*op).regions.first());
        let ops = body.map(|body| &kernel.block(*body).ops);
        loads.iter().filter_map(move |at| kernel.op(*ops?.get(*at)?).results.first())
    });
    tiles.map(|tile| loaded_name(kernel, *tile)).collect::<Vec<_>>().join(", ")
}

/// The line of an operation as the end of a note, if it is known.
pub(super) fn at_line(loc: Loc) -> String {
    loc.of_kernel().map_or_else(String::new, |line| format!(" (line {line} of the kernel)"))
}
