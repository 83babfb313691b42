//! The four ways to compute a kernel: the executor, its rings in the simulator, the barrier program that they become in the
//! simulator, and the code that is made of that in the emulator. They agree, whenever copies complete and whoever runs first, and
//! neither the sanitizer nor the fence pass finds anything.

use super::chosen::{ORDERS, Order, orders_of};
use super::gpu::{Code, NO_MAP, blackwell, hopper, machine};
use super::{agree, execute, program_grid};
use titan_core::driver::{barrier_program, stages};
use titan_core::ir::{FreeBy, Kernel, LocalOp, NvOp, OpId, OpKind};
use titan_core::lower::lower as lower_barriers;
use titan_core::pipeline::fence::{Options as Fences, fence};
use titan_core::plan::{Plan, plan};
use titan_core::verify::{Verified, WellFormed, well_formed};

use titan_sim::sim;

/// The way by bulk copies and MMAs of warpgroups.
const HOPPER: &str = "for sm_90a";

/// The way by bulk copies and MMAs of warps.
const BLACKWELL: &str = "for sm_100a";

/// One way from a kernel to code.
pub(super) struct Way {
    name: &'static str,
    /// The kernel with the rings that were made of its loops; `None` if it is the kernel itself.
    rings: Option<WellFormed>,
    pub(super) barriers: Kernel,
    code: Code,
}

/// How many runs there were of each kind, and of how many kernels.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// The number of the first kernel, by which orders take turns.
    pub(super) first: usize,
    pub(super) kernels: usize,
    pub(super) rings: usize,
    pub(super) barriers: usize,
    pub(super) code: usize,
    pub(super) not_of_the_target: usize,
    /// Kernels with roles; kernels of whose loops rings were made, or whose roles were fused.
    pub(super) with_roles: usize,
    pub(super) made_rings: usize,
    /// Kernels whose code for sm_90a was run, and for sm_100a.
    pub(super) hopper: usize,
    /// Those of which programs of a cluster share copies.
    pub(super) clusters: usize,
    /// Those of which bulk copies and threads fill the same stages.
    pub(super) mixed: usize,
    pub(super) blackwell: usize,
}

/// Why a comparison ended early.
enum End {
    /// The kernel traps, does not end, or races by what it says itself; or the executor does not run it.
    NotForThis,
    Wrong(String),
}

/// Every way to code: as the compiler chooses it, and with the roles as they are written, whose slots mbarriers or counters free.
pub(super) fn ways(kernel: &Verified, aligned: bool) -> Result<Vec<Way>, String> {
    let mut ways = Vec::new();
    if let Ok(all) = stages(kernel, machine(), aligned, None) {
        let code = Code::of(&all.lanes, machine())?;
        let rings = (*all.rings != **kernel).then(|| all.rings.into());
        ways.push(Way { name: "as compiled", rings, barriers: all.barriers, code });
    }
    for (name, free) in [("mbarriers", FreeBy::Mbarrier), ("counters", FreeBy::Sequence)] {
        if kernel.roles.is_empty() {
            continue;
        }
        let plan = Plan { free, ..plan(kernel, &titan_nv::target(machine()), aligned) };
        let Ok(barriers) = barrier_program(kernel, &plan) else { continue };
        let lowered = lower_barriers(&barriers, &plan.target).map_err(|e| e.to_string())?;
        ways.push(Way { name, rings: None, barriers, code: Code::of(&lowered.func, machine())? });
    }
    for (name, machine) in [(HOPPER, hopper()), (BLACKWELL, blackwell())] {
        if let Ok(all) = stages(kernel, machine, aligned, None)
            && (!all.lanes.maps.is_empty() || uses_warpgroups(&all.barriers))
        {
            let code = Code::of(&all.lanes, machine)?;
            let rings = (*all.rings != **kernel).then(|| all.rings.into());
            ways.push(Way { name, rings, barriers: all.barriers, code });
        }
    }
    Ok(ways)
}

fn uses_warpgroups(program: &Kernel) -> bool {
    program.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(NvOp::Wgmma)))
}

/// Whether rows begin where copies of 16 bytes may.
pub(super) fn is_aligned(args: &[sim::Arg]) -> bool {
    args.iter().all(|arg| match arg {
        sim::Arg::Tensor { elem, strides, .. } => strides
            .iter()
            .take(strides.len().saturating_sub(1))
            .all(|stride| (stride * i64::from(elem.bits())) % 128 == 0),
        sim::Arg::Scalar(_) | sim::Arg::Absent => true,
    })
}

/// The fence pass has nothing to do for a barrier program.
fn fences_are_complete(program: &Kernel) -> Result<(), End> {
    let fenced = fence(program, &Fences { remove_unneeded: true, ..Fences::default() });
    match fenced.report.is_unchanged() && fenced.report.left.is_empty() && fenced.kernel == *program {
        true => Ok(()),
        false => Err(End::Wrong(format!("the fence pass finds something: {}", fenced.report))),
    }
}

/// Runs a kernel in the simulator.
fn simulate(
    kernel: &WellFormed,
    args: &[sim::Arg],
    grid: [u32; 3],
    (completion, seed): Order,
) -> (Vec<Option<Vec<u8>>>, Option<sim::Finding>) {
    let mut after = args.to_vec();
    let options = sim::Options { completion, seed, max_steps: 300_000, ..sim::Options::default() };
    let report = sim::run(kernel, &mut after, Some(grid), &options).unwrap();
    let bytes = |arg: sim::Arg| if let sim::Arg::Tensor { bytes, .. } = arg { Some(bytes) } else { None };
    (after.into_iter().map(bytes).collect(), report.findings.into_iter().next())
}

struct Compared<'a> {
    args: &'a [sim::Arg],
    wanted: Vec<Option<Vec<u8>>>,
    /// Numbers are whole: every byte is the same.
    exact: bool,
}

impl Compared<'_> {
    fn same(&self, found: &[Option<Vec<u8>>], who: impl FnOnce() -> String) -> Result<(), End> {
        for ((arg, found), wanted) in self.args.iter().zip(found).zip(&self.wanted) {
            let (sim::Arg::Tensor { elem, .. }, Some(found), Some(wanted)) = (arg, found, wanted) else { continue };
            let differs = if self.exact {
                (found != wanted).then(|| agree(*elem, found, wanted).unwrap_or_else(|| "other bytes".to_owned()))
            } else {
                agree(*elem, found, wanted)
            };
            if let Some(differs) = differs {
                return Err(End::Wrong(format!("{}: {differs}", who())));
            }
        }
        Ok(())
    }
}

/// Compares all ways of a kernel; what differs or is not clean.
pub(super) fn compare(
    kernel: &Verified,
    (args, grid): (&[sim::Arg], [u32; 3]),
    exact: bool,
    counts: &mut Counts,
) -> Option<String> {
    match all_agree(kernel, (args, grid), exact, counts) {
        Ok(()) | Err(End::NotForThis) => None,
        Err(End::Wrong(what)) => Some(what),
    }
}

fn all_agree(
    kernel: &Verified,
    (args, grid): (&[sim::Arg], [u32; 3]),
    exact: bool,
    counts: &mut Counts,
) -> Result<(), End> {
    let source: WellFormed = kernel.clone().into();
    let number = counts.first + counts.kernels;
    let orders = orders_of(number);
    let (first, finding) = simulate(&source, args, grid, orders[0]);
    if let Some(finding) = finding {
        // What a kernel does wrong by itself is for other tests: programs that race through `shared`, traps.
        let by_itself = orders[0] == ORDERS[0] || simulate(&source, args, grid, ORDERS[0]).1.is_some();
        return Err(if by_itself { End::NotForThis } else { End::Wrong(format!("rings, {:?}: {finding}", orders[0])) });
    }
    let Some(wanted) = execute(kernel, args, grid) else { return Err(End::NotForThis) };
    let compared = Compared { args, wanted, exact };
    compared.same(&first, || "rings".to_owned())?;
    let ways = ways(kernel, is_aligned(args)).map_err(End::Wrong)?;
    counts.not_of_the_target += usize::from(ways.is_empty());
    counts.kernels += usize::from(!ways.is_empty());
    counts.with_roles += usize::from(!kernel.roles.is_empty());
    counts.made_rings += usize::from(ways.iter().any(|w| w.rings.is_some()));
    for order in &orders[1..] {
        in_simulator(&source, &compared, grid, *order, || "rings".to_owned())?;
    }
    counts.rings += orders.len();
    for (nth, way) in ways.iter().enumerate() {
        let number = number + nth + 1;
        let grid = program_grid(&way.barriers, grid);
        fences_are_complete(&way.barriers)?;
        let barriers = well_formed(way.barriers.clone()).map_err(|e| End::Wrong(format!("{e:?}")))?;
        let before = counts.code;
        for order in orders_of(number) {
            if let Some(rings) = &way.rings {
                in_simulator(rings, &compared, grid, order, || format!("{}, rings", way.name))?;
                counts.rings += 1;
            }
            in_simulator(&barriers, &compared, grid, order, || format!("{}, barriers", way.name))?;
            counts.barriers += 1;
            // The code of the only way in every order; of several, each in another one, in turn.
            if ways.len() > 1 && ORDERS[number % ORDERS.len()] != order {
                continue;
            }
            let found = way.code.run(kernel, args, grid, order.0);
            if found.as_ref().is_err_and(|e| e.starts_with(NO_MAP)) {
                continue;
            }
            let who = || format!("{}, code, {:?}", way.name, order.0);
            compared.same(&found.map_err(|e| End::Wrong(format!("{}: {e}", who())))?, who)?;
            counts.code += 1;
        }
        let ran = way.name == HOPPER && counts.code > before;
        counts.hopper += usize::from(ran);
        counts.clusters += usize::from(ran && way.barriers.laid_out.as_deref().is_some_and(|laid| laid.cluster > 1));
        counts.mixed += usize::from(ran && is_mixed(&way.barriers));
        counts.blackwell += usize::from(way.name == BLACKWELL && counts.code > before);
    }
    Ok(())
}

/// Whether bulk copies and threads fill the same stages.
pub(super) fn is_mixed(program: &Kernel) -> bool {
    let has = |ops: &[OpId], holds: fn(&OpKind) -> bool| ops.iter().any(|id| holds(&program.op(*id).kind));
    program.blocks.iter().any(|block| {
        has(&block.ops, |kind| matches!(kind, OpKind::Nv(NvOp::BulkLoad { .. })))
            && has(&block.ops, |kind| matches!(kind, OpKind::Local(LocalOp::Copy { .. })))
    })
}

fn in_simulator(
    kernel: &WellFormed,
    compared: &Compared<'_>,
    grid: [u32; 3],
    order: Order,
    who: impl Fn() -> String,
) -> Result<(), End> {
    let who = || format!("{}, {order:?}", who());
    match simulate(kernel, compared.args, grid, order) {
        (found, None) => compared.same(&found, who),
        (_, Some(finding)) => Err(End::Wrong(format!("{}: {finding}", who()))),
    }
}
