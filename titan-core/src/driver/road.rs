//! From a kernel with its rings to the lanes of a machine: the passes, what each needs, and what it makes untrue.
//!
//! | pass | takes | gives |
//! |---|---|---|
//! | lay out | tiles and rings | tiles in layouts, loads of fragments, scratch memory |
//! | order | the same | the same, loops in the order of the schedule |
//! | expand | rings | barriers, counters, commit groups, waits |
//! | allocate | regions | regions with offsets |
//! | synchronize | | barriers between the warps of a role |
//! | fence | | fences between proxies |
//! | verify | | the same, shown to do what the kernel asks of its rings |
//!
//! Lanes are made from what comes out of the last one. Builds with debug assertions check after each pass that the parts of the
//! kernel fit together, and before each that what it needs holds.

use super::estimate::Estimate;
use super::order;
use super::schedule::Body;
use crate::ir::Kernel;
use crate::pipeline::fence::{Options, fence};
use crate::plan::{LowerError, Plan};
use crate::verify::{self, Verified};
use crate::{allocate, expand, lay_out, synchronize};

/// What holds of a kernel on the road.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fact {
    /// Its tiles have layouts.
    LaidOut,
    /// Its rings are barriers.
    Barriers,
    /// Its regions have places.
    Placed,
    /// Its warps meet where they must.
    Synchronized,
    /// Its fences between proxies are complete.
    Fenced,
    /// It does what the kernel asks of its rings.
    Proven,
}

/// Why a kernel goes no further.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// The target cannot do what it asks, or has not enough of something.
    Refused(LowerError),
    /// Its barriers are not shown to be right: a defect.
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

/// What passes are told.
struct Way<'a> {
    plan: &'a Plan,
    /// The rings that begin anew each time they are come to.
    anew: &'a [usize],
    bodies: &'a [Body],
}

struct Pass {
    name: &'static str,
    needs: &'static [Fact],
    gives: Fact,
    /// What may not hold any more.
    ends: &'static [Fact],
    run: fn(Kernel, &Way<'_>) -> Result<Kernel, Stop>,
}

/// The passes over a laid-out kernel, in their order.
const ROAD: &[Pass] = &[
    Pass {
        name: "order",
        needs: &[Fact::LaidOut],
        gives: Fact::LaidOut,
        ends: &[Fact::Placed, Fact::Synchronized, Fact::Fenced, Fact::Proven],
        run: ordered,
    },
    Pass {
        name: "expand",
        needs: &[Fact::LaidOut],
        gives: Fact::Barriers,
        ends: &[Fact::Placed, Fact::Synchronized, Fact::Fenced, Fact::Proven],
        run: |kernel, way| Ok(expand::expand(&kernel, &way.plan.target, way.anew)?),
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
        run: |kernel, _| Ok(fence(&kernel, &Options::default()).kernel),
    },
    Pass {
        name: "verify",
        needs: &[Fact::Barriers, Fact::Placed, Fact::Synchronized, Fact::Fenced],
        gives: Fact::Proven,
        ends: &[],
        run: proven,
    },
];

fn ordered(kernel: Kernel, way: &Way<'_>) -> Result<Kernel, Stop> {
    let made = order::apply(&kernel, way.bodies);
    made.ok_or_else(|| {
        LowerError::internal(&kernel, "a schedule names operations that are not there".to_owned()).into()
    })
}

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

/// The barrier program of a kernel that is laid out.
pub(super) fn barriers(kernel: &Verified, plan: &Plan, laid_out: Kernel, bodies: &[Body]) -> Result<Kernel, Stop> {
    let way = Way { plan, anew: kernel.rings_begin_anew(), bodies };
    let mut facts = vec![Fact::LaidOut];
    let mut made = laid_out;
    for pass in ROAD {
        debug_assert!(pass.needs.iter().all(|need| facts.contains(need)), "`{}` needs {:?}", pass.name, pass.needs);
        made = (pass.run)(made, &way)?;
        facts.retain(|fact| !pass.ends.contains(fact));
        facts.push(pass.gives);
        debug_assert!(
            verify::well_formed(made.clone()).is_ok(),
            "after `{}`: {:?}",
            pass.name,
            verify::well_formed(made.clone()).err()
        );
    }
    Ok(made)
}

/// The barrier program of a kernel for a plan, its loops in the order of the rule. That it does what the kernel asks of its rings
/// is verified.
///
/// # Errors
/// If the target cannot do what the kernel asks, or has not enough shared memory; if the program is not shown to be right, which
/// is a defect.
pub fn barrier_program(kernel: &Verified, plan: &Plan) -> Result<Kernel, LowerError> {
    let laid_out = lay_out::lay_out(kernel, plan)?;
    let bodies = order::choose(&laid_out);
    barriers(kernel, plan, laid_out, &bodies).map_err(Stop::error)
}

/// What a kernel takes of a multiprocessor.
pub(super) fn estimate(kernel: &Verified, plan: &Plan) -> Result<Estimate, LowerError> {
    let laid_out = lay_out::lay_out(kernel, plan)?;
    let mut program = expand::expand(&laid_out, &plan.target, kernel.rings_begin_anew())?;
    let bytes = allocate::allocate(&mut program);
    if bytes > plan.target.shared_bytes {
        return Err(LowerError::shared_memory(&program, bytes, &plan.target));
    }
    Ok(Estimate::of(&program, bytes))
}
