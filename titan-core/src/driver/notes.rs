//! The notes about a compiled kernel, for the user: what was chosen, from its schedule, and what was not, from the [`super::log`].
//!
//! Deliberately absent: the warps and the instructions of MMAs, which the plan notes.

use super::Made;
use super::rings::{at_line, loaded_names, pipelined_loops};
use super::schedule::{Roles, Schedule};
use crate::collections::SortedSet;
use crate::diag::counted;
use crate::ir::{Kernel, NvOp, OpId, OpKind, Pipe};
use crate::pipeline::walk::Tiles;

/// All notes about a kernel.
pub(super) fn notes(kernel: &Kernel, made: &Made) -> Vec<String> {
    let chosen = chosen(kernel, &made.schedule, made.plan.target.name);
    [made.plan.notes.clone(), chosen, by_the_rule(made), made.log.told(), stores_waited(made)].concat()
}

/// The note about the loops that the rule has placed. The modulo scheduler says itself what it has placed, in the log.
fn by_the_rule(made: &Made) -> Vec<String> {
    let mut loops = 0;
    made.scheduled.walk(&mut |_, op| {
        let bodies = op.regions.iter().filter(|_| op.kind.is_loop());
        let mut ops = bodies.flat_map(|body| &made.scheduled.block(*body).ops);
        loops += usize::from(ops.any(|id| made.scheduled.op(*id).planned.is_some()));
    });
    if loops == 0 || made.log.is_by_swing() {
        return Vec::new();
    }
    let placed = if loops == 1 { "1 loop is placed".to_owned() } else { format!("{loops} loops are placed") };
    vec![format!("schedule(rule): {placed} by the rule")]
}

/// The choices of a schedule.
pub(super) fn chosen(kernel: &Kernel, schedule: &Schedule, target: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let loops = pipelined_loops(kernel);
    for ring in &schedule.loops {
        let how = match schedule.roles {
            Roles::Split { .. } => "copied by a role of its own".to_owned(),
            Roles::Kept | Roles::Fused { .. } => format!("copied {} ahead", counted(ring.distance, "iteration")),
        };
        let tiles = loaded_names(kernel, std::slice::from_ref(ring));
        notes.push(format!("pipelined: {tiles} in {}, {how}", counted(ring.slots, "slot")));
    }
    if schedule.loops.is_empty() && !loops.is_empty() {
        let multiplies = |looped: &OpId| {
            let mut any = false;
            kernel.op(*looped).regions.iter().for_each(|body| {
                kernel.walk_block(*body, &mut |_, op| any |= op.kind == OpKind::Mma);
            });
            any
        };
        if !loops.iter().any(multiplies) {
            notes.push("nothing is copied ahead: loops over `pipelined(..)` have no MMA".to_owned());
        } else if !schedule.arguments.aligned() {
            notes.push("nothing is copied ahead: this code is for rows of any alignment".to_owned());
        }
    }
    if schedule.unmasked {
        notes
            .push("iterations in which masks hold for every element have a loop of their own without masks".to_owned());
    }
    match schedule.walk.tiles {
        Tiles::Declared => {}
        Tiles::Persistent(_) => {
            notes.push("persistent: as many programs as the device runs at once compute the grid".to_owned());
        }
        Tiles::Grouped(_) => {
            notes.push("grouped: programs that run at the same time have tiles of few rows and few columns".to_owned());
        }
    }
    if let Some(dies) = schedule.walk.dies {
        notes.push(format!("each of {dies} dies computes adjacent tiles, which its second-level cache holds"));
    }
    if let Some(instances) = schedule.walk.instances {
        notes.push(format!(
            "{instances} instances compute tiles in turn: one stores its tile while the MMAs of the next one run"
        ));
    }
    if let Some(cluster) = schedule.walk.cluster {
        notes.push(format!("clusters of {} programs copy what they share once, for all", cluster.size));
    }
    if schedule.shifted {
        notes.push(
            "overlapped: the second MMA of a loop runs beside the work on the result of the next first one".to_owned(),
        );
    }
    if let Roles::Fused { distance, .. } = schedule.roles {
        notes.push(format!("roles fused: all warps copy {} ahead and compute", counted(distance, "iteration")));
    }
    let fewer = |(i, (pipe, slots)): (usize, (&crate::ir::PipeDecl, &u32))| {
        (*slots < pipe.slots)
            .then(|| format!("`{}` has {slots} of its {} slots", kernel.pipe_name(Pipe::new(i)), pipe.slots))
    };
    let rings: Vec<String> = kernel.pipes.iter().zip(&schedule.slots).enumerate().filter_map(fewer).collect();
    if !rings.is_empty() {
        notes.push(format!("the shared memory of {target} is short: {}", rings.join(", ")));
    }
    notes
}

/// The notes about stores for which a role waits, although it could compute the next tile while they are in flight.
fn stores_waited(made: &Made) -> Vec<String> {
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
    if made.schedule.stores_waited { notes.into_iter().collect() } else { Vec::new() }
}
