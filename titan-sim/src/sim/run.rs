//! One run: the programs of a grid, cluster after cluster, in the order of a schedule.

use super::finding::{Choice, Finding, Found, Kind, Schedule};
use super::grid::Grid;
use super::machine::Machine;
use super::plan::Plan;
use super::state::Moved;
use super::store::Store;
use super::tensor::{Setup, Tensor, engine_of, outputs};
use super::trace::Tracer;
use super::value::Num;
use super::watch::Watch;
use super::work::Res;
use super::{Arg, Options, Report, Statistics};
use crate::engine::{Completion, Schedule as Order, Scheduler, Space};
use std::cell::RefCell;
use std::rc::Rc;
use titan_core::ir::{Access, Const, GridSpec, Kernel, ParamKind};
use titan_core::launch::{self, ArgInfo, BindError, bind, bind_with_grid};
use titan_core::verify::WellFormed;

/// The number of programs of a persistent grid, unless the caller sets it.
const PERSISTENT: u32 = 2;

/// Runs a kernel. `grid` overrides the kernel's own; a persistent grid has two programs unless it is given.
///
/// # Errors
/// Arguments that do not fit the signature. Errors of the run itself are in the report.
pub fn run(
    kernel: &WellFormed,
    args: &mut [Arg],
    grid: Option<[u32; 3]>,
    options: &Options,
) -> Result<Report, BindError> {
    launch(kernel, args, grid, options, None)
}

/// Runs a kernel by a schedule; beyond it, agents run in turn, and operations complete as late as possible.
///
/// # Errors
/// As for [`run`].
pub fn replay(
    kernel: &WellFormed,
    args: &mut [Arg],
    grid: Option<[u32; 3]>,
    options: &Options,
    schedule: &Schedule,
) -> Result<Report, BindError> {
    let options = Options { completion: Completion::Late, seed: None, ..options.clone() };
    launch(kernel, args, grid, &options, Some(schedule))
}

/// The arguments of a run in the form that it keeps, and the extents of its grid.
pub(super) fn setup(kernel: &WellFormed, args: &[Arg], grid: Option<[u32; 3]>) -> Result<Setup, BindError> {
    let info: Vec<ArgInfo<'_>> = args.iter().map(info).collect();
    let persistent = grid.or(match kernel.sig.grid {
        GridSpec::Persistent => Some([PERSISTENT.next_multiple_of(own_cluster(kernel)), 1, 1]),
        GridSpec::Extents(_) => None,
    });
    let bound = match persistent {
        Some(grid) => bind_with_grid(&kernel.sig, &info, grid)?,
        None => bind(&kernel.sig, &info)?,
    };
    let mut setup = Setup::default();
    if let launch::Grid::Extents(grid) = bound.grid {
        setup.grid = grid;
    }
    let mut base = 4096;
    for (param, arg) in kernel.sig.params.iter().zip(args) {
        let (mut tensor, mut scalar) = (None, None);
        match (arg, &param.kind) {
            (Arg::Scalar(Const::Int(_, v)), _) => scalar = Some(Num::Int(*v)),
            (Arg::Scalar(Const::Float(e, x)), _) => scalar = Some(Num::Float(super::arith::float::round(*e, *x))),
            (Arg::Tensor { elem, shape, strides, bytes }, ParamKind::Tensor { access, .. }) => {
                let input = *access == Access::In;
                tensor = Some(Tensor {
                    name: param.name.clone(),
                    elem: *elem,
                    extents: shape.clone(),
                    strides: strides.clone(),
                    bytes: input.then(|| bytes.clone()),
                    base,
                });
                base += if input { 0 } else { (bytes.len() as u64).next_multiple_of(256) + 256 };
            }
            (Arg::Tensor { .. } | Arg::Absent, _) => {}
        }
        setup.tensors.push(tensor);
        setup.scalars.push(scalar);
    }
    Ok(setup)
}

fn info(arg: &Arg) -> ArgInfo<'_> {
    match arg {
        Arg::Scalar(c) => ArgInfo::Scalar(*c),
        Arg::Tensor { elem, shape, strides, .. } => ArgInfo::Tensor { elem: *elem, extents: shape, strides },
        Arg::Absent => ArgInfo::Absent,
    }
}

/// The programs of a cluster that a kernel was compiled for; 1 for kernels without clusters.
pub(super) fn own_cluster(kernel: &Kernel) -> u32 {
    kernel.laid_out.as_deref().map_or(1, |laid| laid.cluster.max(1))
}

/// The clusters of a grid, each as the coordinates of its programs; axis 0 varies fastest.
pub(super) fn clusters(grid: [u32; 3], size: u32) -> Res<Vec<Vec<[u32; 3]>>> {
    if size == 0 || size > 16 || !grid[0].is_multiple_of(size) {
        return Err(Found::new(
            Kind::Declaration,
            format!("clusters of {size} programs do not divide a grid of {}", grid[0]),
        ));
    }
    let mut out = Vec::new();
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            out.extend((0..grid[0] / size).map(|c| (0..size).map(|i| [c * size + i, y, z]).collect()));
        }
    }
    Ok(out)
}

fn launch(
    kernel: &WellFormed,
    args: &mut [Arg],
    grid: Option<[u32; 3]>,
    options: &Options,
    schedule: Option<&Schedule>,
) -> Result<Report, BindError> {
    let setup = Rc::new(setup(kernel, args, grid)?);
    let mut report = Report::default();
    let initial: Vec<Option<&[u8]>> =
        args.iter().map(|a| if let Arg::Tensor { bytes, .. } = a { Some(&bytes[..]) } else { None }).collect();
    let written: Vec<Option<&[u8]>> = initial
        .iter()
        .zip(&setup.tensors)
        .map(|(bytes, t)| bytes.filter(|_| t.as_ref().is_some_and(|t| t.bytes.is_none())))
        .collect();
    let mut global = outputs(&setup, &written);
    let done = all(kernel, &setup, &mut global, options, schedule, &mut report);
    if let Err(found) = done {
        report.findings.push(found);
    }
    for (arg, tensor) in args.iter_mut().zip(&setup.tensors) {
        if let (Arg::Tensor { bytes, .. }, Some(t)) = (arg, tensor)
            && t.bytes.is_none()
        {
            // `bytes` has had the length of the allocation since it was made.
            let _ = global.read_any(t.base, bytes);
        }
    }
    Ok(report)
}

fn all(
    kernel: &WellFormed,
    setup: &Rc<Setup>,
    global: &mut Space,
    options: &Options,
    schedule: Option<&Schedule>,
    report: &mut Report,
) -> Result<(), Finding> {
    let early = |e: Box<Found>| e.with(Schedule::default());
    let plan = Plan::of(kernel).map_err(early)?;
    let clusters = clusters(setup.grid, options.cluster.unwrap_or_else(|| own_cluster(kernel))).map_err(early)?;
    report.strayed = schedule.is_some_and(|s| s.cluster as usize >= clusters.len());
    let grid = Grid::new(setup, &clusters).filter(|_| options.sanitize).map(|g| Rc::new(RefCell::new(g)));
    for (number, programs) in clusters.iter().enumerate() {
        let cluster = super::machine::index(number);
        grid.iter().for_each(|g| g.borrow_mut().cluster = cluster);
        let choices = schedule.filter(|s| s.cluster == cluster).map_or(&[][..], |s| &s.choices);
        report.schedule = Schedule { cluster, choices: Vec::new() };
        let mut one = Cluster::new(
            &plan,
            setup,
            std::mem::replace(global, Space::new("device")),
            programs,
            options,
            (cluster, grid.as_ref()),
        )
        .map_err(early)?;
        let done = one.run(choices);
        *global = one.machine.engine.space(one.machine.store.global).cloned().unwrap_or_else(|| Space::new("device"));
        report.schedule = one.schedule.clone();
        report.strayed |= one.strayed;
        report.statistics.programs += programs.len() as u64;
        report.statistics.steps += one.steps;
        report.statistics.issued += one.watch.issued;
        report.statistics.times = report.statistics.times.max(one.machine.times());
        report.printed.append(&mut one.machine.printed);
        report.trace = one.tracer.finish(one.steps);
        done.map_err(|e| e.with(one.schedule))?;
    }
    Ok(())
}

/// The state of a cluster while it runs.
struct Cluster<'k> {
    machine: Machine<'k>,
    watch: Watch,
    tracer: Tracer,
    scheduler: Scheduler,
    schedule: Schedule,
    options: Options,
    steps: u64,
    /// Whether a choice of the replayed schedule was impossible.
    strayed: bool,
}

impl<'k> Cluster<'k> {
    fn new(
        plan: &'k Plan<'k>,
        setup: &Rc<Setup>,
        global: Space,
        programs: &[[u32; 3]],
        options: &Options,
        (number, grid): (u32, Option<&Rc<RefCell<Grid>>>),
    ) -> Res<Cluster<'k>> {
        // The seeds of different clusters differ.
        let seed = |s: u64| s.wrapping_add(u64::from(number).wrapping_mul(0x9E37_79B9));
        let completion = match options.completion {
            Completion::Seeded(s) => Completion::Seeded(seed(s)),
            early_or_late @ (Completion::Early | Completion::Late) => early_or_late,
        };
        let (engine, memories) = engine_of(plan, global, programs.len(), options.data, completion);
        let mut watch = Watch::default();
        if options.sanitize {
            watch = Watch::new(plan, &memories, options.strict)?.beside(grid, memories.global);
        }
        let defined = vec![super::store::Ranges::default(); programs.len()];
        let store = Store {
            setup: Rc::clone(setup),
            data: options.data,
            global: memories.global,
            shared: memories.shared,
            defined,
            tensor: memories.tensor,
            columns: vec![super::store::Ranges::default(); programs.len()],
            results: Default::default(),
            kept: Default::default(),
        };
        let machine = Machine::new(plan, store, engine, programs, &mut watch)?;
        let order = options.seed.map_or(Order::InTurn, |s| Order::Seeded(seed(s)));
        Ok(Cluster {
            machine,
            watch,
            tracer: Tracer::new(options.trace),
            scheduler: Scheduler::new(order),
            schedule: Schedule { cluster: number, choices: Vec::new() },
            options: options.clone(),
            steps: 0,
            strayed: false,
        })
    }

    fn run(&mut self, choices: &[Choice]) -> Res<()> {
        for choice in choices {
            match *choice {
                Choice::Complete(op) => {
                    self.strayed |= self.machine.engine.pending().iter().all(|(id, _)| id != op);
                    self.complete(op)?;
                }
                Choice::Run { agent, ops } => {
                    for _ in 0..ops {
                        if agent as usize >= self.machine.threads.len() || !self.machine.is_ready(agent as usize) {
                            self.strayed = true;
                            break;
                        }
                        self.step(agent as usize)?;
                    }
                }
            }
        }
        let n = self.machine.threads.len();
        loop {
            let machine = &self.machine;
            let Some(agent) = self.scheduler.pick(n, |i| machine.is_ready(i)) else {
                if let Some(op) = self.machine.engine.pending().oldest() {
                    self.complete(op)?;
                    continue;
                }
                return self.stuck();
            };
            let most = self.scheduler.quantum(if self.options.seed.is_some() { 16 } else { u32::MAX });
            for _ in 0..most {
                if self.step(agent)? != Moved::On {
                    break;
                }
            }
        }
    }

    /// Handles a state in which no agent is ready and nothing is in flight: all agents have ended, or it is a deadlock.
    fn stuck(&self) -> Res<()> {
        let Some(deadlock) = self.machine.engine.deadlock() else { return Ok(()) };
        Err(self.machine.deadlocked(&deadlock))
    }

    fn step(&mut self, agent: usize) -> Res<Moved> {
        if self.steps >= self.options.max_steps {
            return Err(Found::new(Kind::Steps, format!("the kernel has not ended after {} operations", self.steps)));
        }
        self.steps += 1;
        let about = self.tracer.about(&self.machine, agent, self.steps);
        let issued = self.watch.issued;
        self.schedule.ran(agent, 1);
        let moved = self.machine.step(agent, &mut self.watch).map_err(|e| self.watch.told(&self.machine, e))?;
        self.tracer.stepped(&self.machine, agent, (about, moved), self.steps);
        match self.options.completion {
            Completion::Early if self.watch.issued > issued => {
                while let Some(op) = self.machine.engine.pending().oldest() {
                    self.complete(op)?;
                }
            }
            Completion::Seeded(_) => {
                while let Some(op) = self.machine.engine.happens() {
                    self.complete(op)?;
                }
            }
            Completion::Early | Completion::Late => {}
        }
        Ok(moved)
    }

    fn complete(&mut self, op: crate::engine::OpId) -> Res<()> {
        self.schedule.choices.push(Choice::Complete(op));
        self.machine.complete(op, &mut self.watch).map_err(|e| self.watch.told(&self.machine, e))?;
        self.tracer.look(&self.machine, self.steps);
        Ok(())
    }
}

impl Statistics {
    /// The number of operations and asynchronous operations together.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.steps + self.issued
    }
}

impl Machine<'_> {
    /// The finding of a deadlock: which agent waits for what.
    pub(super) fn deadlocked(&self, deadlock: &crate::engine::Deadlock) -> Box<Found> {
        let mut said = Vec::new();
        let mut found = Found::new(Kind::Deadlock, "");
        for (agent, wait, _) in &deadlock.waits {
            if *wait == crate::engine::Wait::Other(super::control::ROLES_JOIN) {
                continue;
            }
            said.push(self.waiting(agent.index()));
            if let Some(op) = self.next_op(agent.index()) {
                found.sides.push(self.side(agent.index(), op, None, None));
            }
        }
        found.message = said.join("; ");
        found
    }
}
