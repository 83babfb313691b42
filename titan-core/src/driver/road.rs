//! The pass pipeline from a kernel with rings to a barrier program: the passes, their preconditions, and the facts they invalidate.
//!
//! | pass | input | output |
//! |---|---|---|
//! | lay out | tiles and rings | tiles in layouts, loads of fragments, scratch memory |
//! | expand loops | the same, with the schedules of loops | the same, loops in the stages and the order of their schedules: [`InStages`] |
//! | complete | the same | the groups of asynchronous operations, and how many of them each wait leaves in flight |
//! | expand | rings | barriers, counters |
//! | allocate | regions | regions with offsets |
//! | synchronize | | barriers between the warps of a role |
//! | fence | | fences between proxies |
//! | verify | | the same, proved to implement the kernel's rings, and to have the stores of the kernel with expanded loops |
//!
//! The result of the last pass is lowered to lane IR. Builds with debug assertions check after each pass that the kernel is
//! well-formed, and before each that its preconditions hold.

use super::estimate::Estimate;
use super::overlap::{Late, overlapped};
use super::registers::Held;
use super::schedule::{Body, Prefetched, Schedule};
use super::table::REGISTERS;
use super::{accumulators, ahead, order};
use crate::ir::{Kernel, NvGroup, NvOp, OpId, OpKind, Pipe, TtgOp, Ty};
use crate::pipeline::fence::fenced;
use crate::pipeline::modulo::{self, Violation};
use crate::pipeline::unmask::{unmask, with_masks};
use crate::plan::{LowerError, Plan};
use crate::verify::{self, Verified};
use crate::{allocate, complete, expand, lay_out, synchronize};

/// A fact about a kernel in the pass pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// Its tiles have layouts.
    LaidOut,
    /// The groups of its asynchronous operations are counted.
    Counted,
    /// Its rings are lowered to barriers.
    Barriers,
    /// Its regions are allocated.
    Placed,
    /// Barriers synchronize its warps.
    Synchronized,
    /// Its fences between proxies are complete.
    Fenced,
    /// It is proved to implement the rings of its kernel.
    Proven,
}

/// The reason why compilation of a kernel stops.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// The target does not support an operation, or lacks resources.
    Refused(LowerError),
    /// Verification of the barrier program failed, which is a defect of TITAN.
    Unproven(LowerError),
}

impl From<LowerError> for Stop {
    fn from(error: LowerError) -> Self {
        Stop::Refused(error)
    }
}

impl Stop {
    pub(super) fn error(self) -> LowerError {
        match self {
            Stop::Refused(error) | Stop::Unproven(error) => error,
        }
    }
}

/// The context of passes.
pub(super) struct Way<'a> {
    plan: &'a Plan,
    /// For each ring, the depth of the innermost loop around all its operations at the start of whose iterations it is empty; 0 if there is
    /// none.
    anew: &'a [usize],
}

/// A pass, and what it needs and leaves of the facts about a kernel.
#[derive(Debug)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// The facts that must hold before it.
    pub needs: &'static [Fact],
    /// The fact that holds behind it.
    pub gives: Fact,
    /// The facts that the pass invalidates.
    pub ends: &'static [Fact],
    run: fn(Kernel, &Way<'_>) -> Result<Kernel, Stop>,
}

impl Pass {
    /// The facts that hold behind the pass if these hold before it; `None` if it may not be run.
    #[must_use]
    pub fn after(&self, facts: &[Fact]) -> Option<Vec<Fact>> {
        let needed = self.needs.iter().all(|need| facts.contains(need));
        let kept = facts.iter().copied().filter(|fact| !self.ends.contains(fact) && *fact != self.gives);
        needed.then(|| kept.chain([self.gives]).collect())
    }
}

/// What is told behind each pass: the kernel that it made, and the facts that hold about that.
type Told<'a> = &'a mut dyn FnMut(&'static Pass, &Kernel, &[Fact]);

/// The passes over a laid-out kernel whose loops are expanded, in order.
pub const ROAD: &[Pass] = &[
    Pass {
        name: "complete",
        needs: &[Fact::LaidOut],
        gives: Fact::Counted,
        ends: &[Fact::Placed, Fact::Synchronized, Fact::Fenced, Fact::Proven],
        run: |kernel, way| Ok(complete::complete(&kernel, way.plan.target.lane_copies().is_some())),
    },
    Pass {
        name: "expand",
        needs: &[Fact::LaidOut, Fact::Counted],
        gives: Fact::Barriers,
        ends: &[Fact::Placed, Fact::Synchronized, Fact::Fenced, Fact::Proven],
        run: |kernel, way| Ok(expand::expand(&kernel, &way.plan.target, REGISTERS, way.anew)?),
    },
    Pass {
        name: "allocate",
        needs: &[Fact::Barriers],
        gives: Fact::Placed,
        ends: &[Fact::Synchronized, Fact::Fenced, Fact::Proven],
        run: placed,
    },
    Pass {
        name: "synchronize",
        needs: &[Fact::Barriers, Fact::Placed],
        gives: Fact::Synchronized,
        ends: &[Fact::Proven],
        run: |mut kernel, _| {
            synchronize::synchronize(&mut kernel);
            Ok(kernel)
        },
    },
    Pass {
        name: "fence",
        needs: &[Fact::Barriers, Fact::Placed, Fact::Synchronized],
        gives: Fact::Fenced,
        ends: &[Fact::Proven],
        run: |kernel, _| Ok(fenced(&kernel)),
    },
    Pass {
        name: "verify",
        needs: &[Fact::Barriers, Fact::Placed, Fact::Synchronized, Fact::Fenced],
        gives: Fact::Proven,
        ends: &[],
        run: proven,
    },
];

/// A laid-out kernel whose loops have schedules, and what was made of it by them: its loops in their stages and their order.
///
/// There is none that the checker of expanded loops has not confirmed: whoever looks for a schedule makes one to see whether it can be carried
/// out, and hands it on to the passes behind.
#[derive(Clone, Debug)]
pub(super) struct InStages {
    scheduled: Kernel,
    loops: Kernel,
}

impl InStages {
    /// Expands the loops of a laid-out kernel by their schedules, and checks the result.
    pub(super) fn of(laid_out: &Kernel, bodies: &[Body]) -> Result<Self, Stop> {
        let unknown = || "a schedule names operations that do not exist".to_owned();
        let refused = || LowerError::refused(laid_out, None, unknown(), FOR_KERNEL);
        let scheduled = order::annotate(laid_out, bodies).ok_or_else(refused)?;
        InStages::expanded(&scheduled).map_err(|why| {
            // What the rule chose and cannot be carried out is not the user's mistake: a simpler schedule is taken, and said.
            Stop::Unproven(LowerError::refused(&scheduled, Some(why.op), why.message, FOR_KERNEL))
        })
    }

    /// Expands the loops of a laid-out kernel whose operations have the schedules, and checks the result.
    pub(super) fn expanded(scheduled: &Kernel) -> Result<Self, Violation> {
        let loops = modulo::expand(scheduled)?;
        modulo::check(scheduled, &loops)?;
        Ok(InStages { scheduled: scheduled.clone(), loops })
    }

    /// The kernel with the schedules of its loops, and the one with its loops expanded by them. If `unmasked` says so, loops that have iterations
    /// without masks are marked in the former and split in the latter.
    pub(super) fn kernels(self, unmasked: bool) -> Result<[Kernel; 2], Stop> {
        let InStages { mut scheduled, mut loops } = self;
        for of in if unmasked { mark(&mut loops) } else { Vec::new() } {
            scheduled.ops.get_mut(of.index()).into_iter().for_each(|op| op.unmasked = true);
        }
        let apart = unmask(&loops).map_err(|why| (Some(why.op), why.message)).and_then(|apart| {
            let why = |(op, why)| (op, format!("iterations without masks: {why}"));
            verify::unmasked(&loops, &apart).map(|()| apart).map_err(why)
        });
        match apart {
            Ok(apart) => Ok([scheduled, apart]),
            Err((op, why)) => Err(Stop::Unproven(LowerError::refused(&loops, op, why, FOR_KERNEL))),
        }
    }
}

/// Marks the expanded loops that have iterations without masks, to be split; returns the laid-out loops that these were.
fn mark(loops: &mut Kernel) -> Vec<OpId> {
    let mut were = Vec::new();
    for looped in with_masks(loops) {
        let op = &mut loops.ops[looped.index()];
        op.unmasked = true;
        were.extend(op.origin.map(|origin| origin.op));
    }
    were
}

/// What to do about a schedule that cannot be carried out.
const FOR_KERNEL: &str =
    "take the schedule that was chosen for this kernel, or one that differs from it in legal places";

fn placed(mut kernel: Kernel, way: &Way<'_>) -> Result<Kernel, Stop> {
    let bytes = allocate::allocate(&mut kernel);
    if bytes > way.plan.target.shared_bytes {
        return Err(LowerError::shared_memory(&kernel, bytes, &way.plan.target).into());
    }
    Ok(kernel)
}

fn proven(kernel: Kernel, _: &Way<'_>) -> Result<Kernel, Stop> {
    match verify::barrier_program(&kernel) {
        Ok(()) => Ok(kernel),
        Err(errors) => Err(Stop::Unproven(LowerError::unproven(&kernel, &errors))),
    }
}

/// Runs the passes from a laid-out kernel, whose loops were expanded by the schedules of these bodies, to its barrier program; and finds what
/// its threads hold in registers.
pub(super) fn barriers(
    kernel: &Verified,
    plan: &Plan,
    (laid_out, bodies): (&Kernel, &[Body]),
    loops: &Kernel,
    told: Told<'_>,
) -> Result<(Kernel, Held), Stop> {
    let anew = ahead::rings_begin_anew(kernel, laid_out, bodies, loops);
    let made = run(loops.clone(), &Way { plan, anew: &anew }, told)?;
    // Expansion may make a store at several places; these passes keep stores one by one.
    for of in [&**kernel, loops] {
        verify::stores_of(of, &made).map_err(|errors| Stop::Unproven(LowerError::unproven(&made, &errors)))?;
    }
    let held = Held::of(&made, &plan.target);
    accumulators::check(&made, &plan.target, &held)?;
    Ok((made, held))
}

/// Runs the passes; tells of each what it made, and the facts that hold about that.
fn run(mut made: Kernel, way: &Way<'_>, told: &mut dyn FnMut(&'static Pass, &Kernel, &[Fact])) -> Result<Kernel, Stop> {
    let check = |made: &Kernel, after: &str| {
        let errors = || verify::well_formed(made.clone()).err();
        debug_assert!(errors().is_none(), "after `{after}`: {:?}", errors());
    };
    check(&made, "expand loops");
    let mut facts = vec![Fact::LaidOut];
    for pass in ROAD {
        let after = pass.after(&facts);
        debug_assert!(after.is_some(), "`{}` needs {:?}", pass.name, pass.needs);
        made = (pass.run)(made, way)?;
        facts = after.unwrap_or_default();
        check(&made, pass.name);
        told(pass, &made, &facts);
    }
    Ok(made)
}

/// The verified barrier program of a kernel for a plan, with the loop order of the rule.
///
/// # Errors
/// Returns an error if the target does not support an operation or has too little shared memory; or if the program fails verification,
/// which is a defect.
pub fn barrier_program(kernel: &Verified, plan: &Plan) -> Result<Kernel, LowerError> {
    barrier_program_ahead(kernel, plan, 0, false)
}

/// The same, with the copies of all rings issued so many iterations in advance where one role fills and reads them; and with stages waited
/// for one iteration early if `carried` says so.
///
/// # Errors
/// The errors of [`barrier_program`]; the distance must be less than the number of slots.
pub fn barrier_program_ahead(
    kernel: &Verified,
    plan: &Plan,
    distance: u32,
    carried: bool,
) -> Result<Kernel, LowerError> {
    followed(kernel, plan, (distance, carried), &mut |_, _, _| ())
}

/// The same; tells of each pass what it made.
///
/// # Errors
/// The errors of [`barrier_program_ahead`].
pub fn followed(
    kernel: &Verified,
    plan: &Plan,
    (distance, carried): (u32, bool),
    told: Told<'_>,
) -> Result<Kernel, LowerError> {
    let rings = if distance > 0 { kernel.pipes.len() } else { 0 };
    let ahead: Vec<Prefetched> = (0..rings).map(|at| Prefetched { pipe: Pipe::new(at), distance, carried }).collect();
    let mut own = plan.clone();
    if plan.target.fetches {
        own.fetched = ahead.iter().map(|ring| ring.pipe).collect();
    }
    let plan = &own;
    let laid_out = lay_out::lay_out(kernel, plan)?;
    let bodies = order::choose(&laid_out, &ahead, &plan.target);
    let made = InStages::of(&laid_out, &bodies).and_then(|made| {
        let [_, loops] = made.kernels(false)?;
        barriers(kernel, plan, (&laid_out, &bodies), &loops, told)
    });
    made.map(|(program, _)| program).map_err(Stop::error)
}

/// Whether bulk stores of a program may be in flight while the next tile is computed: it waits for all of them to have read their buffers,
/// before it writes these again.
fn stores_over_tiles(program: &Kernel) -> bool {
    let wait = OpKind::Nv(NvOp::WaitGroup { group: NvGroup::BulkStore, n: 0, read: true });
    program.ops.iter().any(|op| op.kind == wait)
}

/// Whether threads fetch a tile of a ring to registers, before they store it to a stage.
fn fetches(laid_out: &Kernel, pipe: Pipe) -> bool {
    laid_out.ops.iter().any(|op| match (&op.kind, &op.args[..]) {
        (OpKind::Ttg(TtgOp::AsyncProduce { .. }), [slot, copied @ ..]) => {
            let of_ring = laid_out.ty(*slot).ring() == Some(pipe);
            of_ring && copied.iter().any(|v| matches!(laid_out.ty(*v), Ty::Tile(..)))
        }
        _ => false,
    })
}

/// The resources of a multiprocessor that a program of the kernel uses, and which products of its loops are late.
///
/// If the program does not fit because the buffers of stores in flight cannot share bytes with other regions, the plan is changed to one
/// that waits for the stores. So they never cost a slot of a ring.
pub(super) fn estimate(
    kernel: &Verified,
    plan: &mut Plan,
    schedule: &Schedule,
) -> Result<(Estimate, Late), LowerError> {
    let laid_out = lay_out::lay_out(kernel, plan)?;
    plan.fetched.retain(|pipe| fetches(&laid_out, *pipe));
    // What is in flight from one iteration to the next takes registers.
    let (bodies, late) = overlapped(&laid_out, Late::of(kernel, schedule));
    let loops = order::annotate(&laid_out, &bodies).and_then(|scheduled| modulo::expand(&scheduled).ok());
    let loops = loops.filter(|_| !bodies.is_empty());
    let loops = loops.as_ref().unwrap_or(&laid_out);
    let staged = order::staged(&laid_out, &schedule.prefetched(), &plan.target);
    let mut anew = ahead::rings_begin_anew(kernel, &laid_out, &staged, loops);
    if schedule.unmasked && anew.iter().any(|depth| *depth > 0) {
        let mut marked = loops.clone();
        mark(&mut marked);
        let apart = unmask(&marked).map_err(|why| LowerError::refused(loops, Some(why.op), why.message, FOR_KERNEL))?;
        anew = ahead::rings_begin_anew(kernel, &laid_out, &staged, &apart);
    }
    let counted = complete::complete(loops, plan.target.lane_copies().is_some());
    let mut program = expand::expand(&counted, &plan.target, REGISTERS, &anew)?;
    let bytes = allocate::allocate(&mut program);
    if bytes > plan.target.shared_bytes {
        if !plan.stores_waited && stores_over_tiles(&program) && allocate::stores_need_more(&program) {
            plan.stores_waited = true;
            return estimate(kernel, plan, schedule);
        }
        return Err(LowerError::shared_memory(&program, bytes, &plan.target));
    }
    let held = Held::of(&program, &plan.target).with_fetched(&laid_out);
    accumulators::check(&program, &plan.target, &held)?;
    Ok((Estimate::of(&program, bytes, &held), late))
}
