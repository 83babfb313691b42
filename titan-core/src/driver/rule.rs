//! The rule that chooses a schedule, instead of a search.
//!
//! * A loop over `pipelined(..)` gets as many slots as fit, at most [`AHEAD_SLOTS`]. It gets fewer if a multiprocessor can then run two
//!   programs instead of one, so that one computes while the other waits at a barrier.
//! * Roles are declared, or split off ([`super::roles`]).
//! * Fragments are loaded one step early, and copies are issued after the first MMA ([`super::order`]).
//!
//! What fits is estimated from layouts ([`super::estimate`]), without generating code. What is rejected is written to the [`Log`], with the
//! reason.
//!
//! Deliberately absent: measurements.

use super::estimate::Estimate;
use super::log::{Alternative, Log, Why};
use super::rings::{loaded_name, loaded_names, pipelined_loops, with_rings};
use super::road;
use super::roles::{specialized, with_roles};
use super::schedule::{Ahead, Arguments, Prefetched, Roles, Schedule};
use super::table::{AHEAD_SLOTS, FETCH_SLOTS, PROGRAMS, RASTER_ROWS, ROLE_SLOTS};
use crate::ir::{Block, Def, Kernel, OpId, OpKind, Tails, Value};
use crate::pipeline::implicit::{self, Candidate};
use crate::pipeline::walk::{Tiles, Walk};
use crate::plan::{self, LowerError, MmaPlan, Plan};
use crate::target::Target;
use crate::verify::Verified;

/// The minimum P for which a stage may be waited for one iteration early: its copies were issued in an earlier iteration.
const EARLY: u32 = 2;

/// Whether stages are waited for early. Copies of unaligned rows take too many registers in addition to the fragments.
pub(super) const fn early(schedule: &Schedule, distance: u32) -> bool {
    schedule.arguments.aligned() && distance >= EARLY
}

/// A feasible schedule, and the kernel to which its part about rings was applied.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    pub(super) schedule: Schedule,
    pub(super) rings: Verified,
    pub(super) plan: Plan,
    /// What was rejected for it.
    pub(super) log: Log,
}

impl Filled {
    /// The same, beside which these were rejected before.
    pub(super) fn after(mut self, log: Log) -> Filled {
        let own = std::mem::replace(&mut self.log, log);
        self.log.extend(own);
        self
    }

    /// The same under another schedule, if that is feasible.
    fn or_better(mut self, (kernel, target): (&Verified, &Target), schedule: &Schedule, what: Alternative) -> Filled {
        match tried(kernel, target, schedule) {
            Ok((better, _)) => return better.after(self.log),
            // What has no masks, or no tiles to share, has no alternative.
            Err(why) if matches!(why, Why::Refused(_)) => self.log.add(what, why),
            Err(_) => {}
        }
        self
    }
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
    let mut log = Log::default();
    for load in pipelined_loops(kernel).into_iter().flat_map(|looped| implicit::changing_rows(kernel, looped)) {
        let op = kernel.op(load);
        let name = op.results.first().map_or_else(String::new, |tile| loaded_name(kernel, *tile));
        log.add(Alternative::Ahead(name, op.loc), Why::Changing);
    }
    let filled = if kernel.roles.is_empty() {
        specialized(kernel, target, &written).or_else(|log| pipelined(kernel, target, (written, log)))?
    } else {
        with_roles(kernel, target, written)?
    };
    Ok(without_masks(kernel, target, filled.after(log)))
}

/// The same with a separate loop for the iterations that need no masks, if there are such iterations and the kernel does not ask for one
/// loop.
fn without_masks(kernel: &Verified, target: &Target, filled: Filled) -> Filled {
    if !filled.schedule.arguments.aligned() || kernel.sig.tails == Some(Tails::ZeroFilled) {
        return filled;
    }
    let schedule = Schedule { unmasked: true, ..filled.schedule.clone() };
    filled.or_better((kernel, target), &schedule, Alternative::Unmasked)
}

/// What was found first, and the one before it with the reason why it is not feasible.
pub(super) type First<T, R> = (T, R, Option<(T, Why)>);

/// The first of these that is feasible, and the one before it with the reason why it is not.
///
/// # Errors
/// Why the last one is not.
pub(super) fn first<T: Copy, R>(
    all: impl IntoIterator<Item = T>,
    feasible: impl Fn(T) -> Result<R, Why>,
) -> Result<First<T, R>, Why> {
    let mut before = None;
    for one in all {
        match feasible(one) {
            Ok(found) => return Ok((one, found, before)),
            Err(why) => before = Some((one, why)),
        }
    }
    Err(before.map_or(Why::SlotsAlone, |(_, why)| why))
}

/// A ring of one slot for these loads of a loop.
pub(super) fn ring(kernel: &Kernel, looped: OpId, loads: &[OpId]) -> Option<Ahead> {
    let number = pipelined_loops(kernel).iter().position(|op| *op == looped)?;
    let ops = &kernel.block(*kernel.op(looped).regions.first()?).ops;
    let loads = loads.iter().map(|load| ops.iter().position(|id| id == load)).collect::<Option<_>>()?;
    Some(Ahead { number, loads, slots: 1, distance: 0, carried: false })
}

/// Applies a schedule to the kernel.
///
/// # Errors
/// Why that is infeasible.
pub(super) fn tried(kernel: &Verified, target: &Target, schedule: &Schedule) -> Result<(Filled, Estimate), Why> {
    if !loops_fit(kernel, target, schedule) {
        return Err(Why::SlotsAlone);
    }
    let rings = with_rings(kernel, target, schedule)?;
    let (filled, estimate) = fitted(rings, target, schedule).map_err(Why::Refused)?;
    // Filling a stage ahead gains nothing where it is not in two parts.
    let fetches = |ring: &Prefetched| filled.plan.fetched.contains(&ring.pipe);
    if target.fetches && !schedule.prefetched().iter().all(fetches) {
        return Err(Why::NotFetched);
    }
    if schedule.shifted && !filled.schedule.shifted {
        return Err(Why::Depends);
    }
    // MMAs of a peeled loop are in flight until the next iteration.
    if filled.schedule.peeled && writes_operands(&filled) { Err(Why::Written) } else { Ok((filled, estimate)) }
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
    if target.fetches {
        plan.fetched = schedule.prefetched().iter().map(|ring| ring.pipe).collect();
    }
    if schedule.arguments == Arguments::AlignedInputs {
        plan.leave_outputs(&rings);
    }
    let (estimate, late) = road::estimate(&rings, &mut plan, schedule)?;
    let warps = rings.roles.is_empty().then_some(plan.warps);
    let (peeled, shifted) = (late.released, late.second);
    let schedule = Schedule { warps, stores_waited: plan.stores_waited, peeled, shifted, ..schedule.clone() };
    Ok((Filled { schedule, rings, plan, log: Log::default() }, estimate))
}

/// Schedules a kernel without roles: its loops become rings one by one, as long as they fit.
fn pipelined(kernel: &Verified, target: &Target, (written, mut log): (Schedule, Log)) -> Result<Filled, LowerError> {
    let plan = plan::plan(kernel, target, written.arguments.aligned());
    let mut best = None;
    if written.arguments.aligned() && (target.lane_copies().is_some() || target.fetches) {
        let staged = |value: Value| plan.is_resident(value);
        for candidate in implicit::candidates(kernel, &staged) {
            let so_far = best.as_ref().map_or(&written, |f: &Filled| &f.schedule);
            best = deepest(kernel, &plan, (so_far, &mut log), &candidate).or(best);
        }
    }
    let filled = match best {
        Some(filled) => in_groups(kernel, target, filled),
        None => fitted(kernel.clone(), target, &written)?.0,
    };
    Ok(filled.after(log))
}

/// The same with programs numbered in groups of rows, if they share tiles along two axes of the grid.
pub(super) fn in_groups(kernel: &Verified, target: &Target, filled: Filled) -> Filled {
    if !filled.schedule.arguments.aligned() {
        return filled;
    }
    let dies = (target.dies > 1).then_some(target.dies);
    let walk = Walk { tiles: Tiles::Grouped(RASTER_ROWS), dies, ..filled.schedule.walk };
    let schedule = Schedule { walk, warps: None, ..filled.schedule.clone() };
    filled.or_better((kernel, target), &schedule, Alternative::Grouped)
}

/// Adds a loop with the slots and the distance that the rule chooses, given the loops scheduled before.
fn deepest(
    kernel: &Verified,
    plan: &Plan,
    (schedule, log): (&Schedule, &mut Log),
    candidate: &Candidate,
) -> Option<Filled> {
    let args = &kernel.op(candidate.op).args;
    let ring = ring(kernel, candidate.op, &candidate.loads)?;
    let fetches = plan.target.fetches;
    let fits = |slots: u32| {
        // So that a slot is free when it is needed. What is fetched waits in registers until one is.
        let distance = if fetches { 1 } else { slots - 1 };
        let with = |carried: bool| {
            let mut next = schedule.clone();
            next.loops.push(Ahead { slots, distance, carried, ..ring.clone() });
            tried(kernel, &plan.target, &next)
        };
        let early = if early(schedule, distance) { with(true).ok() } else { None };
        let (filled, estimate) = early.map_or_else(|| with(false), Ok)?;
        Ok((filled, estimate.programs(&plan.target)))
    };
    let bound = |i: usize| args.get(i).and_then(|v| kernel.int_constant(*v));
    let trips = bound(0).zip(bound(1)).map(|(lo, hi)| hi.saturating_sub(lo));
    if trips.is_some_and(|trips| trips < 2) {
        return None;
    }
    let (least, most) = if fetches { (1, FETCH_SLOTS) } else { (2, AHEAD_SLOTS) };
    let useful = (least..=most).rev().filter(|slots| trips.is_none_or(|trips| i64::from(*slots) <= trips));
    let mut not = |slots: u32, why: Why| {
        log.add(Alternative::Slots(slots, loaded_names(kernel, std::slice::from_ref(&ring))), why)
    };
    let found = first(useful, fits).map_err(|why| not(least, why));
    let (most, (filled, programs), more) = found.ok()?;
    // A distance of two iterations hides most of the latency that three hide.
    let fewest = if fetches { least } else { 3 };
    let beside = |slots: u32| fits(slots).ok().filter(|(_, programs)| *programs >= PROGRAMS);
    let beside = if programs < PROGRAMS { (fewest..most).rev().find_map(beside) } else { None };
    let (filled, rejected) = match beside {
        Some((fewer, _)) => (fewer, Some((most, Why::Programs(programs)))),
        None => (filled, more),
    };
    if let Some((slots, why)) = rejected {
        not(slots, why);
    }
    Some(filled)
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
    let rings = with_rings(kernel, target, schedule)
        .map_err(|_| LowerError::of_kernel(&name, "the schedule is not one of this kernel".to_owned()))?;
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
