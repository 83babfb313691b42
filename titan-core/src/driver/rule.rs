//! The rule that chooses a schedule, instead of a search.
//!
//! * A role that copies and one that computes are fused if threads issue copies (`cp.async`): the copying warps can also
//!   compute. Combinations of slots and distances in which copies are prefetched are tried first, then the others; more slots before fewer.
//! * A loop over `pipelined(..)` gets as many slots as fit, at most [`AHEAD_SLOTS`]. It gets fewer if a multiprocessor can then run two
//!   programs instead of one, so that one computes while the other waits at a barrier.
//! * Fragments are loaded one step early, and copies are issued after the first MMA ([`super::order`]).
//!
//! What fits is estimated from layouts ([`super::estimate`]), without generating code.
//!
//! Deliberately absent: measurements.

use super::estimate::Estimate;
use super::not_chosen;
use super::rings::{at_line, loaded_name, pipelined_loops, with_rings};
use super::road;
use super::schedule::{Ahead, Arguments, Roles, Schedule};
use super::table::{AHEAD_SLOTS, PROGRAMS, ROLE_SLOTS};
use crate::diag::counted;
use crate::ir::{Block, Def, Kernel, OpId, OpKind, Pipe, Tails, Value};
use crate::pipeline::depth;
use crate::pipeline::implicit::{self, Candidate};
use crate::pipeline::shift;
use crate::plan::{self, LowerError, MmaPlan, Plan};
use crate::target::Target;
use crate::verify::Verified;

/// The minimum P for which a stage may be waited for one iteration early: its copies were issued in an earlier iteration.
const EARLY: u32 = 2;

/// Whether stages are waited for early. Copies of unaligned rows take too many registers in addition to the fragments.
const fn early(schedule: &Schedule, distance: u32) -> bool {
    schedule.arguments.aligned() && distance >= EARLY
}

/// A feasible schedule, and the kernel to which its part about rings was applied.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    pub(super) schedule: Schedule,
    pub(super) rings: Verified,
    pub(super) plan: Plan,
}

/// Chooses a schedule, except for the order of operations, which needs layouts.
///
/// # Errors
/// Returns an error if the kernel does not fit with any schedule.
pub(super) fn fill(kernel: &Verified, target: &Target, arguments: Arguments) -> Result<Filled, LowerError> {
    let written = Schedule {
        arguments,
        shared_bytes: target.shared_bytes,
        slots: kernel.pipes.iter().map(|p| p.slots).collect(),
        ..Schedule::default()
    };
    let filled = if !kernel.roles.is_empty() {
        with_roles(kernel, target, written)?
    } else if let Some(filled) = specialized(kernel, target, &written) {
        filled
    } else {
        pipelined(kernel, target, written)?
    };
    Ok(without_masks(kernel, target, filled))
}

/// The same with a separate loop for the iterations that need no masks, if there are such iterations and the kernel does not ask for one
/// loop.
fn without_masks(kernel: &Verified, target: &Target, filled: Filled) -> Filled {
    if !filled.schedule.arguments.aligned() || kernel.sig.tails == Some(Tails::ZeroFilled) {
        return filled;
    }
    let schedule = Schedule { unmasked: true, ..filled.schedule.clone() };
    tried(kernel, target, &schedule).map_or(filled, |(unmasked, _)| unmasked)
}

/// Whether a schedule with roles is worth the additional warps: the MMAs are of warpgroups, or, on a machine without these, one role copies
/// in bulk.
fn gains_from_roles(target: &Target, (filled, estimate): &(Filled, Estimate)) -> bool {
    if target.group_atoms.is_empty() { estimate.copies_in_bulk } else { filled.plan.uses_warpgroups() }
}

/// Whether stages are released one iteration late, in order of preference: only MMAs of warpgroups read them beyond their own iteration.
fn releases(target: &Target) -> impl Iterator<Item = bool> {
    [true, false].into_iter().filter(|late| !late || !target.group_atoms.is_empty())
}

/// Splits a kernel without roles, on a machine with bulk copies, into a role that copies and a role that computes.
fn specialized(kernel: &Verified, target: &Target, written: &Schedule) -> Option<Filled> {
    if target.box_copies().is_none() || !written.arguments.aligned() {
        return None;
    }
    let plan = plan::plan(kernel, target, true);
    let LoopsToSplit { together, apart } = loops_to_split(kernel, &plan)?;
    let warps = plan.warps.next_multiple_of(target.role_warps.max(1));
    let with = |loops: &[Ahead], slots: u32, instances: Option<u32>, [peeled, shifted]: [bool; 2]| {
        let loops: Vec<Ahead> = loops.iter().map(|ahead| Ahead { slots, ..ahead.clone() }).collect();
        let roles = Roles::Split { warps };
        let schedule = Schedule { roles, loops, peeled, shifted, ..written.clone() };
        // Persistent programs copy for the next tile while they store the current one.
        let walking = Schedule { persistent: true, instances, ..schedule.clone() };
        let walking = if shifted { None } else { tried(kernel, target, &walking) };
        let alone = || if instances.is_none() { tried(kernel, target, &schedule) } else { None };
        let tried = walking.or_else(alone)?;
        gains_from_roles(target, &tried).then_some(tried.0)
    };
    // Overlapping MMAs are preferred to more slots.
    let overlapped = apart
        .filter(|_| !target.group_atoms.is_empty())
        .and_then(|apart| (1..=ROLE_SLOTS).rev().find_map(|n| with(&apart, n, None, [true, true])));
    let in_turn = || {
        let instances = not_chosen::instances_of(warps, target).ok()?;
        let mut slots = (2 * instances..=ROLE_SLOTS).rev();
        slots.find_map(|n| releases(target).find_map(|late| with(&together, n, Some(instances), [late, false])))
    };
    overlapped.or_else(in_turn).or_else(|| {
        let mut slots = (1..=ROLE_SLOTS).rev();
        slots.find_map(|n| releases(target).find_map(|late| with(&together, n, None, [late, false])))
    })
}

/// The loops whose loads are copied by a separate role, with one slot each.
pub(super) struct LoopsToSplit {
    /// With one ring for all loads of a loop.
    pub(super) together: Vec<Ahead>,
    /// With one ring for the loads of each MMA, if a loop has two.
    apart: Option<Vec<Ahead>>,
}

/// The loops to split; `None` if one of them cannot be lowered to a ring.
pub(super) fn loops_to_split(kernel: &Verified, plan: &Plan) -> Option<LoopsToSplit> {
    let staged = |value: Value| plan.is_resident(value);
    let numbers = pipelined_loops(kernel);
    let (mut together, mut apart, mut any_apart) = (Vec::new(), Vec::new(), false);
    for candidate in implicit::candidates(kernel, &staged) {
        let ops = &kernel.block(*kernel.op(candidate.op).regions.first()?).ops;
        let number = numbers.iter().position(|op| *op == candidate.op)?;
        let ring = |loads: &[OpId]| {
            let loads = loads.iter().map(|load| ops.iter().position(|id| id == load)).collect::<Option<_>>()?;
            Some(Ahead { number, loads, slots: 1, distance: 0, carried: false })
        };
        let whole = ring(&candidate.loads)?;
        match shift::loads_apart(kernel, candidate.op, &candidate.loads) {
            Some([first, second]) => {
                any_apart = true;
                apart.extend([ring(&first)?, ring(&second)?]);
            }
            None => apart.push(whole.clone()),
        }
        together.push(whole);
    }
    Some(LoopsToSplit { together, apart: any_apart.then_some(apart) })
}

/// Applies a schedule to the kernel; `None` if that is infeasible or does not fit.
fn tried(kernel: &Verified, target: &Target, schedule: &Schedule) -> Option<(Filled, Estimate)> {
    if !loops_fit(kernel, target, schedule) {
        return None;
    }
    let rings = with_rings(kernel, schedule)?;
    let (filled, estimate) = fitted(rings, target, schedule).ok()?;
    // MMAs of a peeled loop are in flight until the next iteration.
    (!schedule.peeled || !writes_operands(&filled)).then_some((filled, estimate))
}

/// Whether threads write, in each iteration of a loop, a tile in shared memory that MMAs of warpgroups of the same iteration read: there is
/// one buffer for it, which the MMAs of the iteration before must have read.
fn writes_operands(Filled { rings, plan, .. }: &Filled) -> bool {
    // Without the loops inside of it.
    fn ops_of(kernel: &Kernel, block: Block, found: &mut Vec<OpId>) {
        for id in &kernel.block(block).ops {
            found.push(*id);
            let op = kernel.op(*id);
            if !op.kind.is_loop() {
                op.regions.iter().for_each(|region| ops_of(kernel, *region, found));
            }
        }
    }
    // The operation that computes a tile, before transposes.
    let made_by = |mut value: Value| {
        while let Some(OpKind::Permute(_)) = rings.def_op(value).map(|op| &op.kind) {
            value = rings.def_op(value)?.args.first().copied()?;
        }
        if let Def::Result(op, _) = rings.value(value).def { Some(op) } else { None }
    };
    let of_groups = |id: &OpId| plan.mmas.get(id).is_some_and(MmaPlan::is_of_groups);
    let written = |id: &OpId| rings.op(*id).results.iter().any(|v| plan.is_resident(*v));
    // Operands in shared memory that this iteration computes, and threads write there.
    let computed = |ops: &[OpId], id: &OpId| {
        let Some((mma, [a, b, _])) = plan.mmas.get(id).zip(plan::operands(rings.op(*id))) else { return false };
        let in_shared = [(a, &mma.a_source), (b, &mma.b_source)]
            .into_iter()
            .filter(|(value, source)| matches!(source, plan::Source::Shared(_)) && rings.ty(*value).is_in_registers());
        in_shared.filter_map(|(value, _)| made_by(value)).any(|op| ops.contains(&op))
    };
    let mut any = false;
    rings.walk(&mut |_, op| {
        if op.kind.is_loop() {
            let mut ops = Vec::new();
            op.regions.iter().for_each(|region| ops_of(rings, *region, &mut ops));
            let of_groups = |id: &&OpId| of_groups(id);
            any |= ops.iter().filter(of_groups).any(|id| ops.iter().any(written) || computed(&ops, id));
        }
    });
    any
}

/// Completes a kernel with rings under a schedule; an error if it does not fit. If it fits only with stores that are waited for, the
/// schedule of the result has these.
pub(super) fn fitted(rings: Verified, target: &Target, schedule: &Schedule) -> Result<(Filled, Estimate), LowerError> {
    let mut plan = plan::with_warps(&rings, target, schedule.arguments.aligned(), schedule.warps);
    plan.stores_waited = schedule.stores_waited;
    if schedule.arguments == Arguments::AlignedInputs {
        plan.leave_outputs(&rings);
    }
    let estimate = road::estimate(&rings, &mut plan, &schedule.prefetched())?;
    let warps = rings.roles.is_empty().then_some(plan.warps);
    let schedule = Schedule { warps, stores_waited: plan.stores_waited, ..schedule.clone() };
    Ok((Filled { schedule, rings, plan }, estimate))
}

/// Schedules a kernel without roles: its loops become rings one by one, as long as they fit.
fn pipelined(kernel: &Verified, target: &Target, written: Schedule) -> Result<Filled, LowerError> {
    let plan = plan::plan(kernel, target, written.arguments.aligned());
    let mut best = None;
    if written.arguments.aligned() && target.lane_copies().is_some() {
        let staged = |value: Value| plan.is_resident(value);
        let loops = pipelined_loops(kernel);
        for candidate in implicit::candidates(kernel, &staged) {
            let Some(number) = loops.iter().position(|op| *op == candidate.op) else { continue };
            let so_far = best.as_ref().map_or(&written, |f: &Filled| &f.schedule);
            best = deepest(kernel, &plan, so_far, (number, &candidate)).or(best);
        }
    }
    match best {
        Some(filled) => Ok(in_groups(kernel, target, filled)),
        None => Ok(fitted(kernel.clone(), target, &written)?.0),
    }
}

/// The same with programs numbered in groups of rows, if they share tiles along two axes of the grid.
fn in_groups(kernel: &Verified, target: &Target, filled: Filled) -> Filled {
    let schedule = Schedule { grouped: true, warps: None, ..filled.schedule.clone() };
    let grouped = if filled.schedule.arguments.aligned() { tried(kernel, target, &schedule) } else { None };
    grouped.map_or(filled, |(grouped, _)| grouped)
}

/// Adds a loop with the slots and the distance that the rule chooses, given the loops scheduled before.
fn deepest(
    kernel: &Verified,
    plan: &Plan,
    schedule: &Schedule,
    (number, candidate): (usize, &Candidate),
) -> Option<Filled> {
    let looped = kernel.op(candidate.op);
    let ops = &kernel.block(*looped.regions.first()?).ops;
    let loads = candidate.loads.iter().map(|load| ops.iter().position(|id| id == load)).collect::<Option<Vec<_>>>()?;
    let bytes = |load: &OpId| {
        let tile = *kernel.op(*load).results.first()?;
        let encoding = plan.smem_resident.get(tile.index()).and_then(Option::as_ref);
        encoding.map_or_else(|| tile_bytes(kernel, tile), |e| Some(e.bytes().next_multiple_of(e.align()).into()))
    };
    let stage = candidate.loads.iter().filter_map(bytes).sum();
    let bound = |i: usize| looped.args.get(i).and_then(|v| kernel.int_constant(*v));
    let trips = bound(0).zip(bound(1)).map(|(lo, hi)| hi.saturating_sub(lo));
    let fits = |depth: &depth::Depth| {
        let (slots, distance) = (depth.slots, depth.distance());
        let with = |carried: bool| {
            let mut next = schedule.clone();
            next.loops.push(Ahead { number, loads: loads.clone(), slots, distance, carried });
            tried(kernel, &plan.target, &next)
        };
        let early = if early(schedule, distance) { with(true) } else { None };
        let (filled, estimate) = early.or_else(|| with(false))?;
        Some((filled, estimate.programs(&plan.target)))
    };
    let depths = depth::depths(stage, plan.target.shared_bytes.into(), trips, AHEAD_SLOTS);
    let mut fitting = depths.iter().filter_map(|depth| Some((depth.distance(), fits(depth)?)));
    let (_, (most, programs)) = fitting.next()?;
    if programs >= PROGRAMS {
        return Some(most);
    }
    // A distance of two iterations hides most of the latency that three hide.
    let beside = fitting.take_while(|(distance, _)| *distance >= 2).find(|(_, (_, programs))| *programs >= PROGRAMS);
    Some(beside.map_or(most, |(_, (fewer, _))| fewer))
}

/// Schedules a kernel with roles: they are fused if possible, otherwise each role keeps its own warps.
///
/// Prefetching is preferred to more slots: combinations of slots and distances with prefetching are tried first, then the others.
fn with_roles(kernel: &Verified, target: &Target, written: Schedule) -> Result<Filled, LowerError> {
    let most = written.slots.iter().copied().max().unwrap_or(1);
    let fewer = |less: u32| Schedule {
        slots: written.slots.iter().map(|slots| slots.saturating_sub(less).max(1)).collect(),
        ..written.clone()
    };
    let fitting: Vec<Schedule> = (0..most).map(fewer).filter(|s| rings_fit(kernel, s)).collect();
    if target.box_copies().is_some() {
        // One thread starts bulk copies, so that fusing the role with the computing warps would gain nothing.
        let with = |s: &Schedule, instances: Option<u32>, peeled: bool| {
            let schedule = Schedule { peeled, instances, ..s.clone() };
            let walking = Schedule { persistent: true, ..schedule.clone() };
            tried(kernel, target, &walking).or_else(|| tried(kernel, target, &schedule))
        };
        // Several instances are preferred to more slots.
        let declared = kernel.roles.iter().map(|role| role.instances).max().filter(|n| *n > 1);
        let kept = declared.map(Some).into_iter().chain([None]).find_map(|instances| {
            fitting.iter().find_map(|s| releases(target).find_map(|late| with(s, instances, late)))
        });
        if let Some((filled, _)) = kept.filter(|tried| gains_from_roles(target, tried)) {
            return Ok(filled);
        }
        // Fused roles would have other warps than the kernel gives them: the accumulators of warpgroups that are too few are an error.
        let refused = |s: &Schedule| fitted(with_rings(kernel, s)?, target, s).err().filter(|error| error.of_registers);
        let of_groups = plan::plan(kernel, target, true).uses_warpgroups();
        if let Some(error) = fitting.iter().filter(|_| of_groups).find_map(refused) {
            return Err(error);
        }
    }
    let fused = |schedule: &Schedule, distance: u32| {
        let fused = |carried: bool| {
            let roles = Roles::Fused { distance, carried };
            tried(kernel, target, &Schedule { roles, warps: None, ..schedule.clone() }).map(|(filled, _)| filled)
        };
        let early = if early(schedule, distance) { fused(true) } else { None };
        if target.lane_copies().is_some() { early.or_else(|| fused(false)) } else { None }
    };
    let ahead = fitting.iter().find_map(|schedule| {
        let greatest = schedule.slots.iter().map(|slots| slots.saturating_sub(1)).min().unwrap_or(0);
        // If prefetching is impossible at a distance of one iteration, it is impossible at larger ones.
        let possible = greatest > 0 && is_fusible(kernel, schedule);
        (1..=greatest).rev().filter(|_| possible).find_map(|distance| fused(schedule, distance))
    });
    let kept = || {
        fitting.iter().find_map(|schedule| {
            fused(schedule, 0).or_else(|| tried(kernel, target, schedule).map(|(filled, _)| filled))
        })
    };
    match ahead.or_else(kept) {
        Some(filled) if filled.rings.roles.is_empty() => Ok(in_groups(kernel, target, filled)),
        Some(filled) => Ok(filled),
        None => Ok(fitted(kernel.clone(), target, &written)?.0),
    }
}

/// Whether the roles can be fused with prefetching.
fn is_fusible(kernel: &Verified, schedule: &Schedule) -> bool {
    with_rings(kernel, &Schedule { roles: Roles::Fused { distance: 1, carried: false }, ..schedule.clone() }).is_some()
}

/// Whether the slots of all rings alone fit in shared memory.
fn rings_fit(kernel: &Kernel, schedule: &Schedule) -> bool {
    let rings = kernel.pipes.iter().zip(&schedule.slots);
    let bytes = rings.map(|(p, slots)| p.bytes().saturating_mul(u64::from(*slots))).fold(0, u64::saturating_add);
    bytes <= schedule.shared_bytes.into()
}

/// Whether the slots of each loop's ring alone may fit in shared memory, which is known without making the ring. Tiles take at least the
/// bytes of their elements.
fn loops_fit(kernel: &Kernel, target: &Target, schedule: &Schedule) -> bool {
    let loops = pipelined_loops(kernel);
    schedule.loops.iter().all(|ahead| {
        let body = loops.get(ahead.number).and_then(|op| kernel.op(*op).regions.first());
        let ops = body.map_or(&[][..], |body| &kernel.block(*body).ops);
        let loads = ahead.loads.iter().filter_map(|at| kernel.op(*ops.get(*at)?).results.first());
        let stage: u64 = loads.filter_map(|tile| tile_bytes(kernel, *tile)).sum();
        stage.saturating_mul(ahead.slots.into()) <= target.shared_bytes.into()
    })
}

/// The bytes of the elements of a tile.
fn tile_bytes(kernel: &Kernel, tile: Value) -> Option<u64> {
    let ty = kernel.ty(tile);
    Some((ty.tile_shape()?.len() as u64 * u64::from(ty.elem().bits())).div_ceil(8))
}

/// Whether more shared memory could lead to another schedule, because a ring has fewer slots than desired.
pub(super) fn is_short_of_memory(kernel: &Kernel, schedule: &Schedule) -> bool {
    let loops = pipelined_loops(kernel);
    let desired = match schedule.roles {
        Roles::Split { .. } => ROLE_SLOTS,
        Roles::Kept | Roles::Fused { .. } => AHEAD_SLOTS,
    };
    schedule.loops.len() < loops.len()
        || schedule.stores_waited
        || schedule.loops.iter().any(|ahead| ahead.slots < desired)
        || kernel.pipes.iter().zip(&schedule.slots).any(|(pipe, slots)| *slots < pipe.slots)
}

/// The kernel under a given schedule.
///
/// # Errors
/// Returns an error if it is infeasible, or does not fit.
pub(super) fn follow(kernel: &Verified, target: &Target, schedule: &Schedule) -> Result<Filled, LowerError> {
    let name = kernel.sig.full_name();
    let Some(rings) = with_rings(kernel, schedule) else {
        return Err(LowerError::of_kernel(&name, "the schedule is not one of this kernel".to_owned()));
    };
    if schedule.warps.is_some_and(|warps| !warps.is_power_of_two() || warps > target.max_warps) {
        return Err(LowerError::of_kernel(&name, format!("no program has {} warps", schedule.warps.unwrap_or(0))));
    }
    let (filled, _) = fitted(rings, target, schedule)?;
    if filled.schedule.stores_waited != schedule.stores_waited {
        let message = "its stores fit only if they are complete before the next tile begins".to_owned();
        return Err(LowerError::of_kernel(&name, message));
    }
    Ok(filled)
}

/// The choices and their reasons, for the user.
pub(super) fn notes(kernel: &Verified, schedule: &Schedule, target: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let loops = pipelined_loops(kernel);
    for Ahead { number, loads, slots, distance, .. } in &schedule.loops {
        let body = loops.get(*number).and_then(|op| kernel.op(*op).regions.first());
        let ops = body.map(|body| &kernel.block(*body).ops);
        let loaded = loads.iter().filter_map(|at| kernel.op(*ops?.get(*at)?).results.first());
        let names: Vec<String> = loaded.map(|v| loaded_name(kernel, *v)).collect();
        let how = match schedule.roles {
            Roles::Split { .. } => "copied by a role of its own".to_owned(),
            Roles::Kept | Roles::Fused { .. } => format!("copied {} ahead", counted(*distance, "iteration")),
        };
        notes.push(format!("pipelined: {} in {}, {how}", names.join(", "), counted(*slots, "slot")));
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
    for load in loops.iter().flat_map(|looped| implicit::changing_rows(kernel, *looped)) {
        let op = kernel.op(load);
        let name = op.results.first().map_or_else(String::new, |tile| loaded_name(kernel, *tile));
        let at = at_line(op.loc);
        notes.push(format!("{name} is not copied ahead: the indices of its rows change in the loop{at}"));
    }
    if schedule.persistent {
        notes.push("persistent: as many programs as the device runs at once compute the grid".to_owned());
    }
    if schedule.unmasked {
        notes
            .push("iterations in which masks hold for every element have a loop of their own without masks".to_owned());
    }
    if schedule.grouped {
        notes.push("grouped: programs that run at the same time have tiles of few rows and few columns".to_owned());
    }
    if let Some(instances) = schedule.instances {
        notes.push(format!(
            "{instances} instances compute tiles in turn: one stores its tile while the MMAs of the next one run"
        ));
    } else if kernel.roles.iter().any(|role| role.instances > 1) {
        let why = match schedule.roles {
            Roles::Kept => {
                "several would need more slots than stages that each holds, and all must fit in shared memory"
            }
            Roles::Fused { .. } => "all warps copy and compute",
            Roles::Split { .. } => "the compiler made the roles",
        };
        notes.push(format!("roles have one instance each on {target}: {why}"));
    }
    if let Some(cluster) = schedule.cluster {
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
