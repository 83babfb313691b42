//! The driver: the whole way of a kernel to the variants of an artifact.
//!
//! ```text
//! verified kernel --[schedule: rings]--> verified kernel with rings --plan, lay out--> laid-out kernel
//!   --[schedule: order], expand, allocate, synchronize, verify--> barrier program --lower--> lanes --back end--> code
//! ```
//!
//! What is decided is a [`Schedule`]; a simple rule fills it, with the numbers of one [`table`], and this module carries it out. A [`Backend`] has the tables of a machine and
//! spells lanes as its code; it decides nothing. The same driver serves the macro, the runtime and the command line.
//!
//! A barrier program that is not shown to do what its kernel asks is never made into code. The kernel then falls back to the
//! simplest schedule, with a note; only if that is not shown either, it is refused.
//!
//! Deliberately absent: the search for good schedules, instructions.

mod backend;
mod cluster;
mod estimate;
mod not_chosen;
mod order;
pub mod passes;
mod rings;
mod road;
mod rotate;
mod rule;
mod schedule;
pub mod table;
mod variant;
mod why;

pub use backend::{Backend, Code};
pub use estimate::Estimate;
pub use road::barrier_program;
pub use schedule::{Ahead, Body, Cluster, Roles, Schedule};

use crate::artifact::Variant;
use crate::ir::{HostExpr, Kernel};
use crate::lane::{Func, MmaAtom};
use crate::lay_out::lay_out;
use crate::lower::{self, Lowered};
use crate::plan::{self, LowerError, MmaPlan, Plan, Target};
use crate::verify::Verified;
use road::Stop;
use rule::Filled;

/// What a kernel is on its way to the code of a machine: every stage as it is printed.
#[derive(Clone, Debug)]
pub struct Stages {
    /// What was decided.
    pub schedule: Schedule,
    /// The kernel with the rings, distances and roles that were chosen for the machine.
    pub rings: Verified,
    /// The same, its tiles laid out over threads.
    pub laid_out: Kernel,
    /// The barrier program that its rings have become.
    pub barriers: Kernel,
    /// What a thread does.
    pub lanes: Func,
    /// The code.
    pub code: Code,
}

/// Compiles a kernel for a machine: the variants for aligned arguments first, then those for any; of each, the ones for devices
/// that grant more shared memory first. The last one assumes nothing.
///
/// For a machine with bulk copies there are only variants that have some, or MMAs of warpgroups, for aligned arguments; perhaps none at
/// all ([`why_not_bulk`]). Such a machine runs the code for older ones too. Behind a variant with clusters there is one without, for launches with
/// too few tiles.
///
/// `source` is the user's file and the line of it on which the kernel begins, for line information.
///
/// # Errors
/// If the machine cannot run the kernel.
pub fn compile(
    kernel: &Verified,
    backend: &dyn Backend,
    source: Option<(&str, u32)>,
) -> Result<Vec<Variant>, LowerError> {
    let target = known(kernel, backend)?;
    let mut variants = Vec::new();
    for aligned in [true, false] {
        // Code for older machines runs the arguments that are not aligned: none of their tiles is copied in bulk.
        if target.bulk_tensor && (!aligned || !may_be_new(kernel, &target)) {
            break;
        }
        if aligned && !plan::has_wide_accesses(kernel) {
            // Both variants would be one.
            continue;
        }
        // Where every device grants enough, first; a variant more for each device that grants more, if it is another one.
        let mut of_access = vec![(0, made(kernel, &target, aligned)?)];
        for bytes in target.shared_classes.iter().copied().filter(|bytes| *bytes > target.shared_bytes) {
            let (_, least) = &of_access[of_access.len() - 1];
            let target = Target { shared_bytes: bytes, ..target.clone() };
            if !rule::is_short_of_memory(kernel, &least.schedule) {
                break;
            }
            let Ok(more) = made(kernel, &target, aligned) else { break };
            if !more.schedule.is_but_for_memory(&least.schedule) {
                of_access.push((bytes, more));
            }
        }
        for (bytes, done) in of_access.into_iter().rev().filter(|(_, done)| done.is_new()) {
            for done in with_one_alone(kernel, &target, aligned, done) {
                let code = backend.emit(&done.lowered.func, source)?;
                variants.push(variant::of(kernel, done, code, bytes));
            }
        }
    }
    Ok(variants)
}

/// A kernel that was compiled, and behind it, if it has a cluster that does not pay in all launches, the same without one.
fn with_one_alone(kernel: &Verified, target: &Target, aligned: bool, done: Made) -> Vec<Made> {
    let target = Target { shared_bytes: done.schedule.shared_bytes, ..target.clone() };
    let alone = done.pays.as_ref().and_then(|_| made_for(kernel, &target, aligned, false).ok()).filter(Made::is_new);
    // Without another one it has to take all launches.
    let pays = done.pays.clone().filter(|_| alone.is_some());
    [Some(Made { pays, ..done }), alone].into_iter().flatten().collect()
}

/// Why a kernel has no variant for a machine with bulk copies ([`compile`]), or why not all tiles of its rings are copied in bulk; in the
/// user's names, one sentence each without stops. Empty: all are.
///
/// # Errors
/// As [`compile`].
pub fn why_not_bulk(kernel: &Verified, backend: &dyn Backend) -> Result<Vec<String>, LowerError> {
    let target = known(kernel, backend)?;
    if !target.bulk_tensor {
        return Ok(vec![format!("{} has no bulk copies of tiles", target.name)]);
    }
    if may_be_new(kernel, &target) && plan::has_wide_accesses(kernel) {
        let made = made(kernel, &target, true)?;
        if made.is_new() {
            return Ok(why::copied_by_threads(&made));
        }
    }
    Ok(why::nothing_new(kernel, &target))
}

/// Whether code of a kernel may have bulk copies or MMAs of warpgroups. This is asked before anything is tried.
fn may_be_new(kernel: &Verified, target: &Target) -> bool {
    if target.group_atoms.is_empty() {
        return !kernel.roles.is_empty() || !rings::pipelined_loops(kernel).is_empty();
    }
    let of_groups = |mma: &MmaPlan| {
        let ([m, n, k], (a, b)) = (mma.extents, mma.staged);
        let fits =
            |t: &MmaAtom| (t.a, t.b) == (a, b) && m.is_multiple_of(t.m) && n.is_multiple_of(8) && k.is_multiple_of(t.k);
        target.group_atoms.iter().any(fits)
    };
    !kernel.roles.is_empty() || plan::plan(kernel, target, true).mmas.values().any(of_groups)
}

/// The stages of a kernel on the way to one variant: for aligned arguments, or for any; for devices that grant a program at least so
/// many bytes of shared memory, or for all.
///
/// # Errors
/// As [`compile`].
pub fn stages(
    kernel: &Verified,
    backend: &dyn Backend,
    aligned: bool,
    shared_bytes: Option<u32>,
) -> Result<Stages, LowerError> {
    let target = known(kernel, backend)?;
    let target = Target { shared_bytes: shared_bytes.unwrap_or(target.shared_bytes), ..target };
    made(kernel, &target, aligned)?.stages(backend)
}

/// The stages of a kernel under a schedule that is given, whoever made it.
///
/// # Errors
/// If the schedule cannot be carried out for this kernel and machine; as [`compile`].
pub fn follow(kernel: &Verified, backend: &dyn Backend, schedule: &Schedule) -> Result<Stages, LowerError> {
    let target = known(kernel, backend)?;
    given(kernel, &target, schedule).map_err(Stop::error)?.stages(backend)
}

/// What a thread does for a kernel and a plan, by way of its barrier program.
///
/// # Errors
/// As [`barrier_program`].
pub fn lower(kernel: &Verified, plan: &Plan) -> Result<Lowered, LowerError> {
    lower::lower(&barrier_program(kernel, plan)?, &plan.target)
}

fn known(kernel: &Verified, backend: &dyn Backend) -> Result<Target, LowerError> {
    let target = backend.target();
    if backend.generates_code() { Ok(target) } else { Err(LowerError::no_code_generator(kernel, target.name)) }
}

/// A kernel that was compiled, up to its lanes.
struct Made {
    schedule: Schedule,
    rings: Verified,
    plan: Plan,
    laid_out: Kernel,
    barriers: Kernel,
    lowered: Lowered,
    notes: Vec<String>,
    /// In which launches its cluster pays, if it has one and that depends on the launch.
    pays: Option<HostExpr>,
}

impl Made {
    /// Whether the code for older machines does not do the same.
    fn is_new(&self) -> bool {
        !self.plan.target.bulk_tensor || self.plan.uses_warpgroups() || !self.lowered.func.maps.is_empty()
    }

    fn stages(self, backend: &dyn Backend) -> Result<Stages, LowerError> {
        let Made { schedule, rings, laid_out, barriers, lowered, .. } = self;
        let code = backend.emit(&lowered.func, None)?;
        Ok(Stages { schedule, rings, laid_out, barriers, lanes: lowered.func, code })
    }
}

fn made(kernel: &Verified, target: &Target, aligned: bool) -> Result<Made, LowerError> {
    made_for(kernel, target, aligned, true)
}

/// The same, with or without a cluster.
fn made_for(kernel: &Verified, target: &Target, aligned: bool, clusters: bool) -> Result<Made, LowerError> {
    let mut filled = rule::fill(kernel, target, aligned)?;
    let laid_out = lay_out(&filled.rings, &filled.plan)?;
    let chosen = cluster::choose(&laid_out, target, clusters);
    filled.schedule.cluster = chosen.ok();
    let pays = filled.schedule.cluster.and_then(|chosen| cluster::pays(&laid_out, chosen));
    let laid_out = with_cluster(kernel, laid_out, &filled.schedule)?;
    filled.schedule.bodies = order::choose(&laid_out);
    let simpler = filled.schedule.simpler();
    let why = match carried_out(kernel, filled, laid_out) {
        Ok(mut made) => {
            if made.is_new() && target.bulk_tensor {
                made.notes.extend(not_chosen::notes(&made, chosen.err()));
            }
            return Ok(Made { pays, ..made });
        }
        Err(Stop::Refused(error)) => return Err(error),
        Err(Stop::Unproven(error)) => error,
    };
    let fallen = simpler.iter().find_map(|schedule| given(kernel, target, schedule).ok());
    let Some(mut made) = fallen else { return Err(why) };
    made.notes.push(format!("{FALLBACK}: {}", why.message));
    Ok(made)
}

/// How the note begins of a kernel whose barriers were not shown to be right under the schedule that was chosen first.
pub const FALLBACK: &str = "a simpler schedule was taken";

/// The kernel under a schedule that is given.
fn given(kernel: &Verified, target: &Target, schedule: &Schedule) -> Result<Made, Stop> {
    let target = Target { shared_bytes: schedule.shared_bytes, ..target.clone() };
    let filled = rule::follow(kernel, &target, schedule)?;
    let laid_out = lay_out(&filled.rings, &filled.plan)?;
    let laid_out = with_cluster(kernel, laid_out, schedule)?;
    carried_out(kernel, filled, laid_out)
}

fn with_cluster(kernel: &Verified, laid_out: Kernel, schedule: &Schedule) -> Result<Kernel, LowerError> {
    let why =
        || LowerError::of_kernel(&kernel.sig.full_name(), "the schedule has a cluster that it cannot have".to_owned());
    cluster::apply(laid_out, schedule.cluster).ok_or_else(why)
}

/// The kernel as a schedule wants it, up to its lanes.
fn carried_out(kernel: &Verified, filled: Filled, laid_out: Kernel) -> Result<Made, Stop> {
    let Filled { schedule, rings, plan } = filled;
    let barriers = road::barriers(&rings, &plan, laid_out.clone(), &schedule.bodies)?;
    let lowered = lower::lower(&barriers, &plan.target)?;
    let notes = rule::notes(kernel, &schedule, plan.target.name);
    let mut made = Made { schedule, rings, plan, laid_out, barriers, lowered, notes, pays: None };
    if made.is_new() && made.plan.target.bulk_tensor {
        made.notes.extend(why::copied_by_threads(&made));
    }
    Ok(made)
}
