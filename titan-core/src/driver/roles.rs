//! The rule for roles: whether a kernel is split into a role that copies and one that computes, and whether roles that it declares keep their
//! own warps.
//!
//! * On a machine with bulk copies, one thread of a role starts them, and the other role computes: a kernel is split if that gains anything.
//! * A role that copies and one that computes are fused if threads issue copies (`cp.async`): the copying warps can also
//!   compute. So they are where only all warps of a program together can wait for each other; roles that cannot be fused are an error there.
//!   Combinations of slots and distances in which copies are prefetched are tried first, then the others; more slots before fewer.
//!
//! Deliberately absent: kernels without roles whose threads copy (`rule.rs`).

use super::estimate::Estimate;
use super::log::{Alternative, Log, Why};
use super::rings::{loaded_names, with_rings};
use super::rule::{Filled, early, first, fitted, in_groups, ring, tried};
use super::schedule::{Ahead, Roles, Schedule};
use super::table::{FETCH_SLOTS, INSTANCES, RASTER_ROWS, ROLE_SLOTS};
use super::why;
use crate::ir::{Kernel, OpId, OpKind, TtgOp, Value};
use crate::pipeline::fuse::fuse;
use crate::pipeline::walk::{NoWalk, Tiles, Walk};
use crate::pipeline::{apart, implicit};
use crate::plan::{self, LowerError, Plan};
use crate::target::Target;
use crate::verify::Verified;
use std::cell::RefCell;
use std::ops::RangeInclusive;

/// A schedule with roles if it is worth the additional warps: the MMAs are of warpgroups, or, on a machine without these, one role copies in
/// bulk.
fn gaining(target: &Target, (filled, estimate): (Filled, Estimate)) -> Result<(Filled, Estimate), Why> {
    let gains = if target.group_atoms.is_empty() { estimate.copies_in_bulk } else { filled.plan.uses_warpgroups() };
    if gains { Ok((filled, estimate)) } else { Err(Why::NoGain) }
}

/// Whether stages are released one iteration late, in order of preference: only MMAs of warpgroups read them beyond their own iteration.
fn releases(target: &Target) -> impl Iterator<Item = bool> {
    [true, false].into_iter().filter(|late| !late || !target.group_atoms.is_empty())
}

/// Splits a kernel without roles, on a machine with bulk copies, into a role that copies and a role that computes.
///
/// # Errors
/// Why it is not split.
pub(super) fn specialized(kernel: &Verified, target: &Target, written: &Schedule) -> Result<Filled, Log> {
    if target.box_copies().is_none() || !written.arguments.aligned() {
        return Err(Log::default());
    }
    let plan = plan::plan(kernel, target, true);
    let not_split = |why: Why| why::not_in_bulk(kernel, &plan, Some(why));
    let LoopsToSplit { together, apart } = loops_to_split(kernel, &plan).ok_or_else(|| not_split(Why::InRegisters))?;
    let warps = plan.warps.next_multiple_of(target.role_warps.max(1));
    let with = |loops: &[Ahead], slots: u32, instances: Option<u32>, [peeled, shifted]: [bool; 2]| {
        let loops: Vec<Ahead> = loops.iter().map(|ahead| Ahead { slots, ..ahead.clone() }).collect();
        let roles = Roles::Split { warps };
        let walk = Walk { instances, ..written.walk };
        let schedule = Schedule { roles, loops, peeled, shifted, walk, ..written.clone() };
        walking(kernel, target, &schedule).and_then(|found| gaining(target, found))
    };
    let mut log = Log::default();
    // Overlapping MMAs are preferred to more slots.
    let overlapped = apart
        .filter(|_| !target.group_atoms.is_empty())
        .map(|apart| first((1..=ROLE_SLOTS).rev(), |n| with(&apart, n, None, [true, true])))
        .transpose()
        .unwrap_or_else(|why| {
            log.add(Alternative::Overlap, why);
            None
        });
    let of = |slots: RangeInclusive<u32>, instances: Option<u32>| {
        first(slots.rev(), |n| Ok(first(releases(target), |late| with(&together, n, instances, [late, false]))?.1))
    };
    // While warps compute from the only slot, the next tile cannot be copied to it. MMAs of warpgroups are worth a role even so.
    let least = if target.group_atoms.is_empty() { 2 } else { 1 };
    let without = |why: Why| not_split(if together.is_empty() { Why::InRegisters } else { why });
    let in_turn = || instances_of(warps, target).and_then(|n| of(2 * n..=ROLE_SLOTS, Some(n)));
    let (found, one) = match overlapped {
        Some(found) => (found, Some(Why::Overlapped)),
        None => match in_turn() {
            Ok(found) => (found, None),
            Err(why) => (of(least..=ROLE_SLOTS, None).map_err(without)?, Some(why)),
        },
    };
    let (_, (mut filled, _), more) = found;
    log.extend(why::not_loaded_in_bulk(kernel, &plan, &filled.schedule.loops));
    log.extend(why::not_filled_in_bulk(&filled.rings, &filled.plan));
    if let Some((slots, why)) = more {
        log.add(Alternative::Slots(slots, loaded_names(kernel, &filled.schedule.loops)), why);
    }
    if let Some(why) = one {
        // Instances take tiles in turn, of which there is one if programs do not walk.
        let once = matches!(why, Why::NoWalk(no) if !matches!(no, NoWalk::OwnGrid | NoWalk::Instances));
        filled.log.add(Alternative::Instances, if once { Why::NoWalk(NoWalk::OneTile) } else { why });
    }
    Ok(filled.after(log))
}

/// A schedule with roles, if possible with programs that walk over the grid: they copy for the next tile while they store the current one.
/// Instances that the compiler makes take tiles in turn, and need such programs.
fn walking(kernel: &Verified, target: &Target, schedule: &Schedule) -> Result<(Filled, Estimate), Why> {
    let walk = Walk { tiles: Tiles::Persistent(RASTER_ROWS), ..schedule.walk };
    let walking = Schedule { walk, ..schedule.clone() };
    let why = if schedule.shifted {
        Why::Overlapped
    } else {
        match tried(kernel, target, &walking) {
            Ok(found) => return Ok(found),
            Err(why) => why,
        }
    };
    if schedule.walk.instances.is_some() && schedule.roles != Roles::Kept {
        return Err(why);
    }
    let (mut filled, estimate) = tried(kernel, target, schedule)?;
    // Where programs could not walk anyway, this is the reason.
    let could = || walk.applied((*filled.rings).clone()).err().map(Why::NoWalk);
    let why = if schedule.shifted { could().unwrap_or(why) } else { why };
    // Programs of such a kernel walk over the grid, as it says itself.
    if why != Why::NoWalk(NoWalk::OwnGrid) {
        filled.log.add(Alternative::Walk, why);
    }
    Ok((filled, estimate))
}

/// The number of instances of a computing role with this number of warps, if programs compute several tiles and the slots fit.
///
/// # Errors
/// The reason why there is only one.
fn instances_of(warps: u32, target: &Target) -> Result<u32, Why> {
    if target.group_atoms.is_empty() {
        return Err(Why::NoWarpgroups);
    }
    if warps == target.role_warps { Ok(INSTANCES) } else { Err(Why::Warps(warps)) }
}

/// The loops whose loads are copied by a separate role, with one slot each.
struct LoopsToSplit {
    /// With one ring for all loads of a loop.
    together: Vec<Ahead>,
    /// With one ring for the loads of each MMA, if a loop has two.
    apart: Option<Vec<Ahead>>,
}

/// The loops to split; `None` if one of them cannot be lowered to a ring.
fn loops_to_split(kernel: &Verified, plan: &Plan) -> Option<LoopsToSplit> {
    let staged = |value: Value| plan.is_resident(value);
    let (mut together, mut apart, mut any_apart) = (Vec::new(), Vec::new(), false);
    for candidate in implicit::candidates(kernel, &staged) {
        let ring = |loads: &[OpId]| ring(kernel, candidate.op, loads);
        let whole = ring(&candidate.loads)?;
        match apart::loads_apart(kernel, candidate.op, &candidate.loads) {
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

/// Schedules a kernel with roles: they are fused if possible, otherwise each role keeps its own warps.
///
/// Prefetching is preferred to more slots: combinations of slots and distances with prefetching are tried first, then the others.
pub(super) fn with_roles(kernel: &Verified, target: &Target, written: Schedule) -> Result<Filled, LowerError> {
    let most = written.slots.iter().copied().max().unwrap_or(1);
    let fewer = |less: u32| Schedule {
        slots: written.slots.iter().map(|slots| slots.saturating_sub(less).max(1)).collect(),
        ..written.clone()
    };
    let mut fitting: Vec<Schedule> = (0..most).map(fewer).filter(|s| rings_fit(kernel, s)).collect();
    let mut log = Log::default();
    if target.box_copies().is_some() {
        match with_own_warps(kernel, target, &fitting) {
            Ok(filled) => return Ok(filled),
            Err(why) => log = not_apart(kernel, target, &fitting, why)?,
        }
    }
    let fused = |schedule: &Schedule, distance: u32| {
        let fused = |carried: bool| {
            let roles = Roles::Fused { distance, carried };
            let tried = tried(kernel, target, &Schedule { roles, warps: None, ..schedule.clone() });
            tried.ok().map(|(filled, _)| filled)
        };
        let early = if early(schedule, distance) { fused(true) } else { None };
        if target.lane_copies().is_some() || target.fetches || !target.named_barriers {
            early.or_else(|| fused(false))
        } else {
            None
        }
    };
    if target.fetches && written.arguments.aligned() {
        fitting.splice(0..0, few_slots(&written));
    }
    let ahead = fitting.iter().find_map(|schedule| {
        if target.fetches {
            let possible = schedule.arguments.aligned() && is_fusible(kernel, target, schedule);
            return fused(schedule, 1).filter(|_| possible);
        }
        let greatest = schedule.slots.iter().map(|slots| slots.saturating_sub(1)).min().unwrap_or(0);
        // If prefetching is impossible at a distance of one iteration, it is impossible at larger ones.
        let possible = greatest > 0 && is_fusible(kernel, target, schedule);
        (1..=greatest).rev().filter(|_| possible).find_map(|distance| fused(schedule, distance))
    });
    let kept = || {
        let apart = |schedule: &Schedule| tried(kernel, target, schedule).ok().filter(|_| target.named_barriers);
        fitting.iter().find_map(|schedule| fused(schedule, 0).or_else(|| Some(apart(schedule)?.0)))
    };
    let filled = match ahead.or_else(kept) {
        Some(filled) if filled.rings.roles.is_empty() => in_groups(kernel, target, filled),
        Some(filled) => filled,
        None if target.named_barriers => fitted(kernel.clone(), target, &written)?.0,
        None => return Err(not_fused(kernel, target, &written)),
    };
    if kernel.roles.iter().any(|role| role.instances > 1) {
        let fused = matches!(filled.schedule.roles, Roles::Fused { .. });
        log.add(Alternative::Declared(target.name), if fused { Why::Fused } else { Why::FewSlots });
    }
    Ok(filled.after(log))
}

/// Schedules with as many slots as are of use where threads hold the tiles of the next iteration in registers.
fn few_slots(written: &Schedule) -> Vec<Schedule> {
    let at_most =
        |most: u32| Schedule { slots: written.slots.iter().map(|n| (*n).min(most)).collect(), ..written.clone() };
    (1..=FETCH_SLOTS).rev().map(at_most).collect()
}

/// Why the roles of a kernel cannot be fused on a machine where they must be.
fn not_fused(kernel: &Verified, target: &Target, written: &Schedule) -> LowerError {
    let together = |op: Option<OpId>, why: &dyn std::fmt::Display| {
        let message = format!(
            "{} has no barriers for some of a program's threads, so that all of them execute every role; these roles cannot be executed \
             together: {why}",
            target.name
        );
        LowerError::refused(
            kernel,
            op,
            message,
            "write one role that copies and one that computes, with the same loops",
        )
    };
    let roles =
        kernel.block(kernel.body).ops.iter().copied().find(|id| kernel.op(*id).kind == OpKind::Ttg(TtgOp::Roles));
    if let Err(why) = fuse(kernel, true) {
        return together(Some(why.op), &why.obstacle);
    }
    // One slot takes the least memory, and those that are declared are enough for the stages that are read together.
    let least = Schedule {
        roles: Roles::Fused { distance: 0, carried: false },
        slots: vec![1; written.slots.len()],
        warps: None,
        ..written.clone()
    };
    let declared = Schedule { slots: written.slots.clone(), ..least.clone() };
    match tried(kernel, target, &least).or_else(|_| tried(kernel, target, &declared)) {
        Err(Why::Refused(error)) => error,
        Err(why) => together(roles, &why),
        // Nothing is in the way: this is asked for where all of this failed.
        Ok(_) => together(roles, &Why::Depends),
    }
}

/// A kernel with roles on a machine with bulk copies: each role keeps its own warps. One thread starts bulk copies, so that fusing the role
/// with the computing warps would gain nothing.
///
/// # Errors
/// Why they do not.
fn with_own_warps(kernel: &Verified, target: &Target, fitting: &[Schedule]) -> Result<Filled, Why> {
    // Several instances are preferred to more slots.
    let declared = kernel.roles.iter().map(|role| role.instances).max().filter(|n| *n > 1);
    // What a pass refuses tells more than that fewer slots are too few.
    let refused = RefCell::new(None);
    let with = |instances: Option<u32>| {
        let with = |s: &Schedule, peeled: bool| {
            let walk = Walk { instances, ..s.walk };
            let found = walking(kernel, target, &Schedule { peeled, walk, ..s.clone() });
            if let Err(why @ Why::Refused(_)) = &found {
                refused.replace(Some(why.clone()));
            }
            found
        };
        Ok(first(fitting, |s| Ok(first(releases(target), |late| with(s, late))?.1))?.1)
    };
    let found = first(declared.map(Some).into_iter().chain([None]), with);
    let (_, found, fewer) = found.map_err(|why| refused.take().unwrap_or(why))?;
    let (mut filled, _) = gaining(target, found)?;
    filled.log.extend(why::not_filled_in_bulk(&filled.rings, &filled.plan));
    if let Some((_, why)) = fewer {
        filled.log.add(Alternative::Declared(target.name), why);
    }
    Ok(filled)
}

/// What is rejected with the roles of a kernel on a machine with bulk copies.
///
/// # Errors
/// Fused roles would have other warps than the kernel gives them: the accumulators of warpgroups that are too few are an error.
fn not_apart(kernel: &Verified, target: &Target, fitting: &[Schedule], why: Why) -> Result<Log, LowerError> {
    let plan = plan::plan(kernel, target, true);
    if plan.uses_warpgroups() {
        let refused =
            |s: &Schedule| fitted(with_rings(kernel, target, s).ok()?, target, s).err().filter(|e| e.of_registers);
        if let Some(error) = fitting.iter().find_map(refused) {
            return Err(error);
        }
    }
    Ok(why::not_in_bulk(kernel, &plan, Some(why)))
}

/// Whether the roles can be fused with prefetching.
fn is_fusible(kernel: &Verified, target: &Target, schedule: &Schedule) -> bool {
    with_rings(kernel, target, &Schedule { roles: Roles::Fused { distance: 1, carried: false }, ..schedule.clone() })
        .is_ok()
}

/// Whether the slots of all rings alone fit in shared memory.
fn rings_fit(kernel: &Kernel, schedule: &Schedule) -> bool {
    let rings = kernel.pipes.iter().zip(&schedule.slots);
    let bytes = rings.map(|(p, slots)| p.bytes().saturating_mul(u64::from(*slots))).fold(0, u64::saturating_add);
    bytes <= schedule.shared_bytes.into()
}
