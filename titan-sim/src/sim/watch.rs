//! The observers of one run: they check the order of accesses, and report findings in terms of the kernel.

use super::explore::Certificate;
use super::finding::{Found, Kind, Side};
use super::grid::Grid;
use super::machine::{Machine, index};
use super::plan::{
    BULK_LOAD, BULK_STORE, BULK_WRITE, CP_ASYNC, LGKMCNT, Plan, RING_COPY, TENSOR_COMMIT, TENSOR_LOAD, TENSOR_STORE,
    VMCNT, WGMMA,
};
use super::tcgen05::{COLUMN, pipelined, tracked};
use super::tensor::{Memories, Tensor};
use super::work::{Res, Span, Touch};
use crate::engine::{Agent, BarrierId, Class, Deadlock, Event, Observer, SpaceId, StateHasher, Stop};
use crate::sanitize::{self, Config, MAX_PARTITIONS, Names, Rule, Sanitizer, TooManyPartitions, Unit, Work};
use std::cell::RefCell;
use std::hash::Hash;
use std::rc::Rc;
use titan_core::ir::OpId;

/// The observers of a run: the sanitizer, and the accesses of other clusters to outputs.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    sanitizer: Option<Sanitizer>,
    /// The accesses of programs of other clusters, and the memory that they share.
    grid: Option<(Rc<RefCell<Grid>>, SpaceId)>,
    /// The observer that decides whether the synchronization is the same in every order, if it is enabled.
    certificate: Option<Certificate>,
    pub(super) issued: u64,
}

/// The properties of the simulator's classes of asynchronous operations.
const CLASSES: [(Class, Work); 11] = [
    (CP_ASYNC, Work::CP_ASYNC),
    (WGMMA, Work::WGMMA),
    (BULK_STORE, Work::TMA_STORE),
    (BULK_WRITE, Work { name: "TMA store", unit: Unit::Tma, ordered: false, must_end: false }),
    (VMCNT, Work::AMD_COPY),
    (LGKMCNT, Work { name: "LDS access", unit: Unit::TensorCore, ordered: true, must_end: true }),
    (BULK_LOAD, Work::TMA_LOAD),
    (RING_COPY, Work { name: "copy", ..Work::CP_ASYNC }),
    (TENSOR_LOAD, Work::TENSOR_LOAD),
    (TENSOR_STORE, Work::TENSOR_STORE),
    (TENSOR_COMMIT, Work::TENSOR_COMMIT),
];

impl Watch {
    /// Creates the observers of a cluster's agents.
    ///
    /// # Errors
    /// A finding, if there are more agents than the sanitizer can distinguish.
    pub(super) fn new(plan: &Plan<'_>, memories: &Memories, strict: bool) -> Res<Watch> {
        let (ctas, per) = (memories.shared.len(), plan.agents());
        let many = |_| {
            Found::not_modelled(format_args!(
                "a cluster of {ctas} programs with {per} threads of control each: the sanitizer distinguishes at most {MAX_PARTITIONS}"
            ))
        };
        let sanitizer = sanitizer((ctas, per), memories, plan.mmas.len(), strict).map_err(many)?;
        Ok(Watch { sanitizer: Some(sanitizer), ..Watch::default() })
    }

    /// Also observes accesses to this memory, for conflicts with programs of other clusters.
    pub(super) fn beside(self, grid: Option<&Rc<RefCell<Grid>>>, global: SpaceId) -> Watch {
        Watch { grid: grid.map(|g| (Rc::clone(g), global)), ..self }
    }

    /// Also observes whether the synchronization is determinate.
    pub(super) fn certified(self, certificate: Option<Certificate>) -> Watch {
        Watch { certificate, ..self }
    }

    pub(super) const fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// The observers' state on which future findings depend.
    pub(super) fn knowledge(&self) -> impl Hash {
        self.sanitizer.as_ref().map(StateHasher::of)
    }

    /// The finding that stopped the run, or the machine's own finding.
    pub(super) fn told(&self, machine: &Machine<'_>, found: Box<Found>) -> Box<Found> {
        if found.message.is_empty() { self.found(machine).unwrap_or(found) } else { found }
    }

    /// The finding of the observer that stopped the run, if one did.
    fn found(&self, machine: &Machine<'_>) -> Option<Box<Found>> {
        if let Some(found) = self.sanitizer.as_ref().and_then(|s| s.findings().first()) {
            return Some(said(machine, found));
        }
        let (grid, global) = self.grid.as_ref()?;
        grid.borrow().found(machine, |at| output(machine, *global, at))
    }
}

fn sanitizer(
    (ctas, per): (usize, usize),
    memories: &Memories,
    mmas: usize,
    strict: bool,
) -> Result<Sanitizer, TooManyPartitions> {
    let mut config = Config::new();
    for cta in 0..ctas {
        for _ in 0..per {
            let partition = config.partition(index(cta))?;
            config.agents(partition, 1);
        }
    }
    for (cta, space) in memories.shared.iter().enumerate() {
        config.home(*space, index(cta));
    }
    if !memories.tensor.is_empty() {
        tensor_memory(&mut config, memories, mmas);
    }
    for (class, work) in CLASSES {
        config.class(class, work);
    }
    config.strict(strict);
    Ok(Sanitizer::new(config))
}

/// Declares tensor memory, and its operations: MMAs of this number of units, copies, shifts.
fn tensor_memory(config: &mut Config, memories: &Memories, mmas: usize) {
    for (cta, space) in memories.tensor.iter().enumerate() {
        config.home(*space, index(cta)).out_of_order(*space);
    }
    let tracked = tracked(mmas);
    for class in &tracked {
        config.class(*class, Work::TENSOR_WORK);
    }
    for (before, after) in pipelined(&tracked) {
        config.in_order(before, after);
    }
    config.arrives_for(TENSOR_COMMIT, tracked);
}

/// Translates a finding of the sanitizer into terms of the kernel.
fn said(machine: &Machine<'_>, found: &sanitize::Finding) -> Box<Found> {
    if found.rule == Rule::Deadlock {
        let agents = std::iter::once(&found.now).chain(&found.others).map(|s| s.agent);
        let waits = agents.zip(&found.waits).map(|(agent, wait)| (agent, *wait, String::new())).collect();
        return machine.deadlocked(&Deadlock { waits });
    }
    let kind = match found.rule {
        Rule::OutstandingWrite | Rule::OutstandingRead | Rule::PendingAccess | Rule::UnorderedAsync => Kind::Race,
        Rule::MissingFence | Rule::NarrowFence | Rule::MissingSyncFence => Kind::Fence,
        Rule::ExitInFlight | Rule::ExitedMemory => Kind::InFlight,
        Rule::Deadlock => Kind::Deadlock,
        Rule::BarrierBytes
        | Rule::BarrierOverlap
        | Rule::BarrierReinit
        | Rule::BarrierNotLive
        | Rule::BarrierCount
        | Rule::ArriveUnderflow
        | Rule::BytesOverflow
        | Rule::InvalidateWaiting
        | Rule::InvalidatePending => Kind::Barrier,
        Rule::UnknownAgent => Kind::NotModelled,
    };
    let names = InKernel(machine);
    let mut out = Found::new(kind, found.headline(&names));
    for side in std::iter::once(&found.now).chain(&found.others) {
        out = out.side(one_side(machine, side));
    }
    out
}

fn one_side(machine: &Machine<'_>, s: &sanitize::Side) -> Side {
    let touch = s.bytes.and_then(|(space, lo, len)| touch_of(machine, space, lo, len, s.deed.writes()));
    let mut side =
        machine.side(s.agent.index(), OpId::new(s.place.index()), touch.as_ref(), (s.tag > 0).then_some(s.tag));
    if let Some((space, at, _)) = s.bytes.filter(|_| touch.is_none() && side.what.is_empty()) {
        side.what = output(machine, space, at);
    }
    if let Some(barrier) = s.barrier {
        side.what = machine.barrier_name(barrier);
    }
    side.helper = s.class.is_some();
    side
}

fn touch_of(machine: &Machine<'_>, space: SpaceId, lo: u64, len: u64, write: bool) -> Option<Touch> {
    if let Some(cta) = machine.store.tensor.iter().position(|s| *s == space) {
        let column = |byte: u64| u32::try_from(byte / COLUMN).unwrap_or(u32::MAX);
        let span = Span::Columns { cta, lo: column(lo), hi: column(lo + len) };
        return Some(Touch { span, write, strong: false });
    }
    let cta = machine.store.shared.iter().position(|s| *s == space)?;
    Some(super::access::shared(cta, lo, lo + len, write))
}

/// The name of the output that contains a byte of device memory.
fn output(machine: &Machine<'_>, space: SpaceId, at: u64) -> String {
    let holds = |t: &&Tensor| t.bytes.is_none() && at >= t.base && space == machine.store.global;
    let t = machine.store.setup.tensors.iter().flatten().filter(holds).max_by_key(|t| t.base);
    t.map(|t| t.name.clone()).unwrap_or_default()
}

/// The kernel's names for the engine's numbers.
struct InKernel<'a, 'k>(&'a Machine<'k>);

impl Names for InKernel<'_, '_> {
    fn agent(&self, agent: Agent) -> String {
        self.0.role(agent.index())
    }
    fn bytes(&self, space: SpaceId, address: u64, len: u64) -> String {
        let side = touch_of(self.0, space, address, len, false).map(|t| self.0.side(0, OpId::new(0), Some(&t), None));
        match side {
            Some(Side { what, stage: Some(stage), .. }) => format!("`{what}` slot {stage}"),
            Some(side) => format!("`{}`", side.what),
            None => format!("`{}`", output(self.0, space, address)),
        }
    }
    fn barrier(&self, barrier: BarrierId) -> String {
        format!("`{}`", self.0.barrier_name(barrier))
    }
}

impl Observer for Watch {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        self.issued += u64::from(matches!(event, Event::Issue { .. }));
        self.sanitizer.event(event)?;
        if let Some(certificate) = &mut self.certificate {
            certificate.told(event);
        }
        match (&self.grid, event) {
            (Some((grid, global)), Event::Access(access)) => grid.borrow_mut().access(access, *global),
            (_, _) => Ok(()),
        }
    }
}
