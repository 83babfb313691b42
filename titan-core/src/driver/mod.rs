//! The driver: the complete compilation of a kernel to the variants of an artifact.
//!
//! ```text
//! verified kernel --[schedule: rings]--> verified kernel with rings --plan, lay out--> laid-out kernel
//!   --[schedule: order], expand, allocate, synchronize, verify--> barrier program --lower--> lanes --back end--> code
//! ```
//!
//! All decisions are in a [`Schedule`]. A simple rule chooses it, with the numbers of one [`table`], and this module applies it. A
//! [`Backend`] has the properties of a machine and prints lane IR as its code; it decides nothing. The macro, the runtime and the command
//! line use the same driver.
//!
//! Code is generated only from barrier programs that are proved to implement their kernels. If the proof fails, the kernel falls back to a
//! simpler schedule, with a note; if that fails too, the kernel is rejected.
//!
//! Deliberately absent: the search for good schedules; instructions.

mod accumulators;
mod ahead;
mod backend;
mod cluster;
mod crowded;
mod estimate;
mod fetched;
mod log;
mod loop_graph;
mod notes;
mod order;
mod overlap;
pub mod passes;
mod registers;
mod rings;
mod road;
mod roles;
mod rule;
mod schedule;
mod swing;
pub mod table;
mod variant;
mod why;
mod written;

pub use crate::pipeline::walk::{Cluster, Tiles, Walk};
pub use backend::{Backend, Code};
pub use estimate::Estimate;
pub use loop_graph::{Beside, LoopGraph, loop_graphs};
pub use road::{barrier_program, barrier_program_ahead};
pub use schedule::{Ahead, Arguments, Body, Roles, Schedule};
pub use written::stages_written;

use crate::artifact::Variant;
use crate::ir::{HostExpr, Kernel, Scheduler};
use crate::lane::{Func, MmaAtom};
use crate::lay_out::lay_out;
use crate::lower::{self, Lowered};
use crate::plan::{self, LowerError, MmaPlan, Plan};
use crate::target::Target;
use crate::verify::Verified;
use cluster::NoCluster;
use log::{Alternative, Log, Why};
use road::{InStages, Stop};
use rule::Filled;

/// For this repository's tests only, and no part of the stable interface: the passes with the facts that they need, give and invalidate.
#[doc(hidden)]
pub mod internals {
    pub use super::road::{Fact, Pass, ROAD, followed};
}

/// All stages of a kernel on the way to the code of a machine, for printing.
#[derive(Clone, Debug)]
pub struct Stages {
    /// The schedule: all decisions about the kernel.
    pub schedule: Schedule,
    /// The kernel with the rings, prefetch distances and roles that were chosen for the machine.
    pub rings: Verified,
    /// The same kernel with its tiles laid out over threads.
    pub laid_out: Kernel,
    /// The same with the schedules of its loops.
    pub scheduled: Kernel,
    /// The same with its loops in these stages and this order.
    pub loops: Kernel,
    /// The barrier program to which it was lowered.
    pub barriers: Kernel,
    /// The code of a thread, in lane IR.
    pub lanes: Func,
    /// The code for the machine.
    pub code: Code,
}

/// What is compiled of a kernel for a machine.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// The variants.
    pub variants: Vec<Variant>,
    /// For a machine with bulk copies, why there is no variant with these, or why some tiles of the first one are not copied in bulk: as
    /// [`why_not_bulk`] tells it.
    pub not_in_bulk: Vec<String>,
}

/// Compiles a kernel for a machine. Variants for aligned arguments come first, then one for aligned inputs and any outputs where launches may
/// need it, then those for arbitrary arguments; among these, variants for
/// devices that allow more shared memory come first. The last variant has no assumptions, except about the shared memory of the device if the
/// kernel needs more than every device allows.
///
/// For a machine with bulk copies there are only variants for aligned inputs that use bulk copies or MMAs of warpgroups, perhaps none at
/// all; such a machine also runs the code for older machines. A variant with clusters is followed by one without, for
/// launches with too few tiles.
///
/// `source` is the user's file and the line on which the kernel begins, for line information.
///
/// # Errors
/// Returns an error if the machine cannot run the kernel.
pub fn compile(
    kernel: &Verified,
    backend: &dyn Backend,
    source: Option<(&str, u32)>,
) -> Result<Vec<Variant>, LowerError> {
    explained(kernel, backend, source).map(|compiled| compiled.variants)
}

/// The variants of [`compile`], and why not all is copied in bulk.
///
/// # Errors
/// Those of [`compile`].
pub fn explained(
    kernel: &Verified,
    backend: &dyn Backend,
    source: Option<(&str, u32)>,
) -> Result<Compiled, LowerError> {
    let target = known(kernel, backend)?;
    if target.base.is_none() {
        return compile_for(kernel, (backend, &target), Arguments::Any, source);
    }
    match no_gain(kernel, &target) {
        // Arguments that are not aligned are left to the code for older machines, since none of their tiles can be copied in bulk.
        None => compile_for(kernel, (backend, &target), Arguments::AlignedInputs, source),
        Some(not_in_bulk) => Ok(Compiled { not_in_bulk, ..Compiled::default() }),
    }
}

/// What is compiled of a kernel for a target, for aligned arguments up to those that are `most`.
fn compile_for(
    kernel: &Verified,
    (backend, target): (&dyn Backend, &Target),
    most: Arguments,
    source: Option<(&str, u32)>,
) -> Result<Compiled, LowerError> {
    let mut all = Compiled::default();
    for arguments in Arguments::ALL.into_iter().take_while(|arguments| *arguments <= most) {
        let made = || for_devices(kernel, (backend, target), arguments, source);
        match arguments {
            Arguments::Aligned if plan::has_wide_accesses(kernel) => all = made()?,
            Arguments::AlignedInputs if plan::plan(kernel, target, true).gains_from_any_outputs(kernel) => {
                // Launches that it would serve have other code, so it may not fit.
                all.variants.extend(made().unwrap_or_default().variants);
            }
            // Equal to a variant that there is anyway.
            Arguments::Aligned | Arguments::AlignedInputs => {}
            Arguments::Any => all.variants.extend(made()?.variants),
        }
    }
    Ok(all)
}

/// The same, and if all variants have assumptions those without bulk copies and MMAs of warpgroups, of which the last one has no
/// assumptions: for kernels that have no code for older machines.
///
/// # Errors
/// Returns an error if the machine cannot run the kernel with all arguments.
pub fn compile_alone(
    kernel: &Verified,
    backend: &dyn Backend,
    source: Option<(&str, u32)>,
) -> Result<Compiled, LowerError> {
    let mut all = explained(kernel, backend, source)?;
    if !all.variants.last().is_some_and(Variant::takes_all_arguments) {
        let target = backend.target().like_its_base();
        all.variants.extend(compile_for(kernel, (backend, &target), Arguments::Any, source)?.variants);
    }
    Ok(all)
}

/// The variants for some arguments: one for the least shared memory in which the kernel fits, if possible what every device allows, and before
/// it one for each device that allows more, if its schedule is different. If only inputs are aligned there is one variant, for every device
/// and without a cluster.
fn for_devices(
    kernel: &Verified,
    (backend, target): (&dyn Backend, &Target),
    arguments: Arguments,
    source: Option<(&str, u32)>,
) -> Result<Compiled, LowerError> {
    let (granted, (mut wanted, first)) = in_least_memory(target, |target| {
        let prepared = prepared(kernel, target, arguments, None)?;
        Ok((prepared.filled.schedule.clone(), finished(kernel, target, prepared)?))
    })?;
    let least = target.shared_bytes.max(granted);
    let mut of_access = vec![(granted, first)];
    let classes = if arguments == Arguments::AlignedInputs { &[] } else { &target.shared_classes[..] };
    for bytes in classes.iter().copied().filter(|bytes| *bytes > least) {
        let (_, least) = &of_access[of_access.len() - 1];
        let target = Target { shared_bytes: bytes, ..target.clone() };
        if !rule::is_short_of_memory(kernel, &least.schedule) {
            break;
        }
        let Ok(more) = prepared(kernel, &target, arguments, None) else { break };
        // The code for equal schedules is equal, and is not made again to see that.
        if more.filled.schedule.is_but_for_memory(&wanted) {
            continue;
        }
        let next = more.filled.schedule.clone();
        let Ok(more) = finished(kernel, &target, more) else { break };
        if !more.schedule.is_but_for_memory(&least.schedule) {
            of_access.push((bytes, more));
            wanted = next;
        }
    }
    if granted > 0 {
        let (_, first) = &mut of_access[0];
        let bytes = first.lowered.func.shared_bytes;
        first.log.add(Alternative::Devices(granted), Why::Takes(bytes));
    }
    let not_in_bulk = of_access[0].1.not_in_bulk();
    let mut variants = Vec::new();
    for (bytes, done) in of_access.into_iter().rev().filter(|(_, done)| done.gains()) {
        for done in with_one_alone(kernel, target, arguments, done) {
            let (done, code) = done.emitted(kernel, backend, source)?;
            variants.push(variant::of(kernel, done, code, bytes));
        }
    }
    Ok(Compiled { variants, not_in_bulk })
}

/// What is made for the least shared memory of the target's devices in which it fits; and that size, or 0 if all of them have it.
///
/// # Errors
/// The error for the devices that allow most, if it needs more, and any other error at once.
fn in_least_memory<T>(
    target: &Target,
    make: impl Fn(&Target) -> Result<T, LowerError>,
) -> Result<(u32, T), LowerError> {
    let mut made = make(target).map(|made| (0, made));
    for bytes in target.shared_classes.iter().copied().filter(|bytes| *bytes > target.shared_bytes) {
        if !made.as_ref().is_err_and(|error| error.of_memory) {
            break;
        }
        made = make(&Target { shared_bytes: bytes, ..target.clone() }).map(|made| (bytes, made));
    }
    made
}

/// A compiled kernel; and after it, if it has a cluster that does not pay off in all launches, the same kernel compiled without a cluster.
fn with_one_alone(kernel: &Verified, target: &Target, arguments: Arguments, done: Made) -> Vec<Made> {
    let target = Target { shared_bytes: done.schedule.shared_bytes, ..target.clone() };
    let alone = done
        .pays
        .as_ref()
        .and_then(|_| made_for(kernel, &target, arguments, Some(NoCluster::DoesNotPay)).ok())
        .filter(Made::gains);
    // If there is no variant without clusters, this one must serve all launches.
    let pays = done.pays.clone().filter(|_| alone.is_some());
    [Some(Made { pays, ..done }), alone].into_iter().flatten().collect()
}

/// The reasons why a kernel has no variant for a machine with bulk copies ([`compile`]), or why some tiles of its rings are not copied in
/// bulk: sentences without full stops, with the user's names. Empty if all tiles are copied in bulk.
///
/// # Errors
/// The errors of [`compile`].
pub fn why_not_bulk(kernel: &Verified, backend: &dyn Backend) -> Result<Vec<String>, LowerError> {
    let target = known(kernel, backend)?;
    if target.base.is_none() {
        return Ok(vec![format!("{} has no bulk copies of tiles", target.name)]);
    }
    match no_gain(kernel, &target) {
        Some(why) => Ok(why),
        None => Ok(in_least_memory(&target, |target| made(kernel, target, Arguments::Aligned))?.1.not_in_bulk()),
    }
}

/// Why the code of a kernel has neither bulk copies nor MMAs of warpgroups, which the base of a machine lacks; `None` if it may have. A cheap
/// test, before anything is compiled.
fn no_gain(kernel: &Verified, target: &Target) -> Option<Vec<String>> {
    if !plan::has_wide_accesses(kernel) {
        return Some(vec![Why::Elements.to_string()]);
    }
    let plan = plan::plan(kernel, target, true);
    let of_groups = |mma: &MmaPlan| {
        let ([m, n, k], (a, b)) = (mma.extents, mma.staged);
        let fits =
            |t: MmaAtom| (t.a, t.b) == (a, b) && m.is_multiple_of(t.m) && n.is_multiple_of(8) && k.is_multiple_of(t.k);
        target.group_atoms.iter().any(|atom| fits(atom.mma))
    };
    let may_gain = if target.group_atoms.is_empty() {
        !rings::pipelined_loops(kernel).is_empty()
    } else {
        plan.mmas.values().any(of_groups)
    };
    if may_gain || !kernel.roles.is_empty() { None } else { Some(why::not_in_bulk(kernel, &plan, None).without_bulk()) }
}

/// The stages of a kernel on the way to one variant; for devices that allow this much shared memory, or else for as many as possible.
///
/// # Errors
/// The errors of [`compile`].
pub fn stages(
    kernel: &Verified,
    backend: &dyn Backend,
    arguments: impl Into<Arguments>,
    shared_bytes: Option<u32>,
) -> Result<Stages, LowerError> {
    let arguments = arguments.into();
    stages_of(kernel, backend, shared_bytes, |target| made(kernel, target, arguments))
}

/// The stages of what is made for devices that allow so much shared memory, or else for as many devices as possible.
fn stages_of(
    kernel: &Verified,
    backend: &dyn Backend,
    shared_bytes: Option<u32>,
    make: impl Fn(&Target) -> Result<Made, LowerError>,
) -> Result<Stages, LowerError> {
    let target = known(kernel, backend)?;
    let made = match shared_bytes {
        Some(shared_bytes) => make(&Target { shared_bytes, ..target })?,
        None => in_least_memory(&target, make)?.1,
    };
    made.stages(kernel, backend)
}

/// The stages of a kernel under a given schedule, from any source.
///
/// # Errors
/// Returns an error if the schedule cannot be applied to this kernel and machine; and the errors of [`compile`].
pub fn follow(kernel: &Verified, backend: &dyn Backend, schedule: &Schedule) -> Result<Stages, LowerError> {
    let target = known(kernel, backend)?;
    given(kernel, &target, schedule).map_err(Stop::error)?.stages(kernel, backend)
}

/// Lowers a kernel with a plan to lane IR, through its barrier program.
///
/// # Errors
/// The errors of [`barrier_program`].
pub fn lower(kernel: &Verified, plan: &Plan) -> Result<Lowered, LowerError> {
    lower::lower(&barrier_program(kernel, plan)?, &plan.target)
}

fn known(kernel: &Verified, backend: &dyn Backend) -> Result<Target, LowerError> {
    let target = backend.target();
    if backend.generates_code() { Ok(target) } else { Err(LowerError::no_code_generator(kernel, target.name)) }
}

/// A kernel compiled to lane IR.
struct Made {
    schedule: Schedule,
    rings: Verified,
    plan: Plan,
    laid_out: Kernel,
    scheduled: Kernel,
    loops: Kernel,
    barriers: Kernel,
    lowered: Lowered,
    /// What was rejected for it.
    log: Log,
    /// The condition on a launch under which its cluster pays off, if it has one and that depends on the launch.
    pays: Option<HostExpr>,
}

impl Made {
    /// Whether the machine gains from code of its own: it runs no code for an older machine, or this code has what that lacks.
    fn gains(&self) -> bool {
        self.plan.target.base.is_none() || self.plan.uses_warpgroups() || !self.lowered.func.maps.is_empty()
    }

    /// Why it has no bulk copies, or why some of its tiles are not copied in bulk.
    fn not_in_bulk(&self) -> Vec<String> {
        let why = self.log.without_bulk();
        if why.is_empty() && !self.gains() { vec![Why::NoBulk.to_string()] } else { why }
    }

    fn stages(self, kernel: &Verified, backend: &dyn Backend) -> Result<Stages, LowerError> {
        let (made, code) = self.emitted(kernel, backend, None)?;
        let Made { schedule, rings, laid_out, scheduled, loops, barriers, lowered, .. } = made;
        Ok(Stages { schedule, rings, laid_out, scheduled, loops, barriers, lanes: lowered.func, code })
    }
}

fn made(kernel: &Verified, target: &Target, arguments: Arguments) -> Result<Made, LowerError> {
    made_for(kernel, target, arguments, None)
}

/// The same, without clusters if there is a reason.
fn made_for(
    kernel: &Verified,
    target: &Target,
    arguments: Arguments,
    without: Option<NoCluster>,
) -> Result<Made, LowerError> {
    finished(kernel, target, prepared(kernel, target, arguments, without)?)
}

/// A kernel whose schedule is chosen.
struct Prepared {
    filled: Filled,
    laid_out: Kernel,
    /// The same with its loops expanded, where the schedule was tried.
    loops: Option<InStages>,
    /// As [`Made::pays`].
    pays: Option<HostExpr>,
}

/// Chooses the schedule of a kernel.
fn prepared(
    kernel: &Verified,
    target: &Target,
    arguments: Arguments,
    without: Option<NoCluster>,
) -> Result<Prepared, LowerError> {
    let mut filled = rule::fill(kernel, target, arguments)?;
    let laid_out = lay_out(&filled.rings, &filled.plan)?;
    let without = without.or_else(|| (arguments == Arguments::AlignedInputs).then_some(NoCluster::AnyOutputs));
    let chosen = cluster::choose(&laid_out, target, without);
    filled.schedule.walk.cluster = chosen.as_ref().ok().copied();
    let pays = filled.schedule.walk.cluster.and_then(|chosen| cluster::pays(&laid_out, chosen));
    if let (Err(why), Some(_)) = (chosen, target.box_copies()) {
        filled.log.add(Alternative::Cluster, Why::NoCluster(why));
    }
    let laid_out = with_cluster(kernel, laid_out, &filled.schedule)?;
    filled.schedule.bodies = overlap::with_overlapped(&laid_out, &filled, |k, ahead| order::choose(k, ahead, target));
    let loops = match kernel.sig.scheduler.unwrap_or_else(|| default_scheduler(target, filled.schedule.roles)) {
        Scheduler::Swing => swing::place(&laid_out, target, &mut filled, kernel.sig.scheduler.is_some()),
        Scheduler::Rule => None,
    };
    Ok(Prepared { filled, laid_out, loops, pays })
}

/// The scheduler of kernels that name none: the modulo scheduler for loops over `pipelined(..)` on machines whose threads copy tiles and issue MMAs
/// of warps, where the measured loops are as good by it: the same cycles in the mean, and fewer stalls (docs/scheduling.md).
///
/// Loops of fused roles are not shorter by it, and it leaves fewer registers for what is around them: a product of 128 × 128 × 64 in a loop over
/// tiles has spills. Where MMAs are of warpgroups, products get the rule's code from it, and attention with small tiles gets longer loops.
fn default_scheduler(target: &Target, roles: Roles) -> Scheduler {
    let issued_by_threads = target.lane_copies().is_some() && target.box_copies().is_none();
    if issued_by_threads && target.group_atoms.is_empty() && roles == Roles::Kept {
        Scheduler::Swing
    } else {
        Scheduler::Rule
    }
}

/// Compiles a kernel by the schedule that was chosen for it; if its barrier program cannot be verified, by the first simpler one whose
/// program can.
fn finished(kernel: &Verified, target: &Target, prepared: Prepared) -> Result<Made, LowerError> {
    let Prepared { filled, laid_out, loops, pays } = prepared;
    let simpler = filled.schedule.simpler();
    let why = match carried_out(filled, laid_out, loops) {
        Ok(made) => return Ok(Made { pays, ..made }),
        Err(Stop::Refused(error)) => return Err(error),
        Err(Stop::Unproven(error)) => error,
    };
    let fallen = simpler.iter().find_map(|schedule| given(kernel, target, schedule).ok());
    let Some(mut made) = fallen else { return Err(why) };
    made.log.add(Alternative::First, Why::Refused(why));
    Ok(made)
}

/// The beginning of the note that verification of the barrier program failed for the schedule that was chosen first, and a simpler one was
/// used.
pub const FALLBACK: &str = "a simpler schedule was taken";

/// Compiles the kernel under a given schedule.
fn given(kernel: &Verified, target: &Target, schedule: &Schedule) -> Result<Made, Stop> {
    let target = Target { shared_bytes: schedule.shared_bytes, ..target.clone() };
    let mut filled = rule::follow(kernel, &target, schedule)?;
    let laid_out = lay_out(&filled.rings, &filled.plan)?;
    let laid_out = with_cluster(kernel, laid_out, schedule)?;
    if filled.schedule.bodies.is_empty() {
        filled.schedule.bodies = overlap::with_overlapped(&laid_out, &filled, |k, a| order::staged(k, a, &target));
    }
    if !ahead::agrees(&laid_out, &filled.schedule) {
        let message = "the schedule is not one of this kernel: its stages fill rings as far ahead as it does not say";
        return Err(LowerError::of_kernel(&kernel.sig.full_name(), message.to_owned()).into());
    }
    carried_out(filled, laid_out, None)
}

fn with_cluster(kernel: &Verified, laid_out: Kernel, schedule: &Schedule) -> Result<Kernel, LowerError> {
    let message = |why| format!("the schedule has a cluster that it cannot have: {why}");
    schedule.walk.to_clusters(laid_out).map_err(|why| LowerError::of_kernel(&kernel.sig.full_name(), message(why)))
}

/// Compiles the laid-out kernel to lane IR, as the schedule says; `loops` is what the schedule makes of it, if that is known.
fn carried_out(filled: Filled, laid_out: Kernel, loops: Option<InStages>) -> Result<Made, Stop> {
    let Filled { schedule, rings, plan, mut log } = filled;
    let loops = loops.map_or_else(|| InStages::of(&laid_out, &schedule.bodies), Ok)?;
    let [scheduled, loops] = loops.kernels(schedule.unmasked)?;
    let (barriers, held) = road::barriers(&rings, &plan, (&laid_out, &schedule.bodies), &loops, &mut |_, _, _| ())?;
    let lowered = lower::lower(&barriers, &schedule.on_dies(&plan.target))?;
    crowded::say(&mut log, (&schedule, &plan), [&laid_out, &barriers], &held);
    Ok(Made { schedule, rings, plan, laid_out, scheduled, loops, barriers, lowered, log, pays: None })
}
